package builtin

import (
	"context"
	_ "embed"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/replace"
)

//go:embed write.txt
var writeText string

// writeParams has the names of OpenCode's tool.
type writeParams struct {
	FilePath string `json:"filePath"`
	Content  string `json:"content"`
}

// Write replaces a whole file or creates one. The model must have read an existing file before: if it wrote from memory, it
// would remove what others have added.
func Write(env Env) tools.Tool {
	c := env.changes()
	return tools.New("write", writeText, func(ctx context.Context, p writeParams, call *tools.Call) (tools.Result, error) {
		f, err := c.open(ctx, call, p.FilePath)
		if err != nil {
			return tools.Result{}, err
		}
		if err := c.requireRead(f); err != nil {
			return tools.Result{}, err
		}
		// A file can be open in an editor and not yet on the disk; for the person it exists.
		m := member{File: change.File{Path: f.Path, Kind: change.Create, New: p.Content}, base: f}
		exists := f.Exists || f.Dirty
		if exists {
			m.Kind, m.Old, m.New = change.Edit, f.Text, likeFile(f, p.Content)
			if why := replace.Misgiven("content", f.Text, p.Content); why != "" {
				return tools.Result{}, &tools.Error{Kind: replace.Conflict, Message: c.rel(f.Path) + ": " + why}
			}
		}
		return c.propose(ctx, call, proposal{
			done: "Wrote file successfully.", members: []member{m},
			meta: map[string]any{"filepath": f.Path, "exists": exists},
		})
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit), writeNames)
}

// likeFile converts a text to CRLF if the file has only CRLF, and removes a byte order mark. Models write LF; without the conversion
// every line of the diff would change.
func likeFile(f *files.File, text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	if f.EOL == files.CRLF {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	return text
}
