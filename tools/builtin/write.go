package builtin

import (
	"context"
	_ "embed"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

//go:embed write.txt
var writeText string

type writeParams struct {
	FilePath string `json:"filePath" jsonschema:"the file to write, absolute or relative to the working directory"`
	Content  string `json:"content" jsonschema:"the whole text of the file"`
}

// Write replaces a whole file or creates one.
func Write(env Env) tools.Tool {
	return tools.New("write", writeText, func(ctx context.Context, p writeParams, call *tools.Call) (tools.Result, error) {
		f, err := env.open(ctx, call, p.FilePath)
		if err != nil {
			return tools.Result{}, err
		}
		if err := env.known(f); err != nil {
			return tools.Result{}, err
		}
		m := member{File: change.File{Path: f.Path, Kind: change.Create, New: p.Content}, base: f}
		exists := f.Exists || f.Dirty
		if exists {
			m.Kind, m.Old, m.New = change.Edit, f.Text, likeFile(f, p.Content)
		}
		return env.propose(ctx, call, proposal{
			done: "Wrote file successfully.", members: []member{m},
			meta: map[string]any{"filepath": f.Path, "exists": exists},
		})
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit), writeNames)
}

// known refuses files that the session has not read, or that changed since; then it says what changed.
func (e Env) known(f *files.File) error {
	err := e.Tracker.Check(f)
	switch x := err.(type) {
	case nil:
		return nil
	case *files.UnreadError:
		return &tools.Error{Kind: "unread", Message: err.Error(), Err: err}
	case *files.StaleError:
		msg := err.Error()
		if !x.Now.Exists && !x.Now.Dirty {
			e.Tracker.Forget(f.Real)
			msg = "File " + x.Path + " has been deleted since it was last read; nothing was written. If it should exist again, repeat this call."
		}
		if x.HasThen && x.Now.Exists {
			msg = "File " + x.Path + " has been modified since it was last read; nothing was written." + e.told(f, x.Then)
		}
		return &tools.Error{Kind: "stale", Message: msg, Err: err}
	}
	return err
}

// likeFile gives a text the line ending of a file that has only CRLF, and takes off a byte order mark: the file's
// own stays or stays away.
func likeFile(f *files.File, text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	if f.EOL == files.CRLF {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	return text
}
