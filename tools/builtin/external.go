package builtin

import (
	"context"
	"errors"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// The tools in this file carry out what an external agent asks of its client over ACP. They are offered to no model: they are made for a
// program that has tools of its own, so they take and return whole texts without line numbers.

// The ids of those tools that also run in a draft's worker.
const (
	ReadTextID  = "read_text"
	WriteTextID = "write_text"
)

// TextMember is the member of read_text's metadata that has the text. Callers take it out before the result is stored.
const TextMember = "text"

// readTextParams are those of ACP's fs/read_text_file. Line counts from 1; 0 is the beginning. Limit is a number of lines, 0 is all.
type readTextParams struct {
	FilePath string `json:"filePath"`
	Line     int    `json:"line,omitempty" minimum:"0"`
	Limit    int    `json:"limit,omitempty" minimum:"0"`
}

// ReadText returns the text of a file as the person sees it, under the permission of the tool read. The text is in the metadata: the
// output of a tool is cut at a size that suits a model, and an agent writes back what it has read.
func ReadText(env Env) tools.Tool {
	rd := reader{env.workspace(), env.Tracker, env.Bridge}
	return tools.New(ReadTextID, "The text of a file, for an agent that is not Pillion's.", func(ctx context.Context, p readTextParams, call *tools.Call) (tools.Result, error) {
		path, err := rd.abs(p.FilePath)
		if err != nil {
			return tools.Result{}, err
		}
		at, err := rd.place(path)
		if err != nil {
			return tools.Result{}, err
		}
		if err := rd.askRead(ctx, call, at); err != nil {
			return tools.Result{}, err
		}
		if at.dir {
			return tools.Result{}, &tools.Error{Kind: "folder", Message: path + " is a folder, not a file"}
		}
		f, err := files.OpenAt(at.path, at.real, rd.Buffers)
		if err != nil {
			return tools.Result{}, pathError(at.path, err)
		}
		if !f.Exists && !f.Dirty {
			return tools.Result{}, missing(at.path)
		}
		if isBinary(f) {
			return tools.Result{}, &tools.Error{Kind: "binary", Message: "Cannot read binary file: " + path}
		}
		rd.Tracker.Read(f)
		if rd.Bridge != nil {
			rd.Bridge.Warm(at.path)
		}
		return tools.Result{Title: rd.rel(path), Output: "The file was read.", Locations: []tools.Location{{Path: path, Line: p.Line}},
			Metadata: map[string]any{TextMember: someLines(f.Text, p.Line, p.Limit)}}, nil
	}, tools.WithPermission("read"), tools.WithKind(tools.KindRead), tools.WithReadOnly())
}

// someLines are the limit lines of a text from the line from on, which counts from 1. 0 stands for the first line, and for all lines.
func someLines(text string, from, limit int) string {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[min(max(from-1, 0), len(lines)):]
	if limit > 0 {
		lines = lines[:min(limit, len(lines))]
	}
	return strings.Join(lines, "")
}

// writeTextParams are those of ACP's fs/write_text_file.
type writeTextParams struct {
	FilePath string `json:"filePath"`
	Content  string `json:"content"`
}

// WriteText proposes the whole text of a file, as the tool write does. A file that was never read may be written, because agents read with
// tools of their own that nobody sees. One that was read and has changed since is refused: the agent would drop what the person typed.
func WriteText(env Env) tools.Tool {
	c := env.changes()
	return tools.New(WriteTextID, "Writes a file, for an agent that is not Pillion's.", func(ctx context.Context, p writeTextParams, call *tools.Call) (tools.Result, error) {
		f, err := c.open(ctx, call, p.FilePath)
		if err != nil {
			return tools.Result{}, err
		}
		var unread *files.UnreadError
		if err := c.Tracker.Check(f); err != nil && !errors.As(err, &unread) {
			return tools.Result{}, c.requireRead(f)
		}
		if isBinary(f) {
			return tools.Result{}, &tools.Error{Kind: "binary", Message: "Cannot change binary file: " + f.Path}
		}
		m := member{File: change.File{Path: f.Path, Kind: change.Create, New: p.Content}, base: f}
		exists := f.Exists || f.Dirty
		if exists {
			m.Kind, m.Old, m.New = change.Edit, f.Text, likeFile(f, p.Content)
		}
		return c.propose(ctx, call, proposal{done: "The file was written.", members: []member{m}, meta: map[string]any{"filepath": f.Path, "exists": exists}})
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit))
}

// AskCommand asks for a command that an external agent is about to run itself, with the analysis and the rules of the tool bash, and runs
// nothing. Without an error the command may run. held means that the agent runs in a draft, where the kernel keeps its writes: as in a draft
// of Pillion's own agent, a command that stays there needs no question. The network is open to such an agent, so what the analysis cannot see
// through is asked there too, and elsewhere nothing is allowed because a sandbox would hold it.
func AskCommand(env Env, held bool) tools.Tool {
	e := env.commands()
	support := e.Shell.Sandbox.support
	e.Shell.Sandbox = SandboxSettings{Mode: SandboxOff}
	if held {
		e.Shell.Sandbox = DraftSandbox(SandboxSettings{Support: func() sandbox.Support {
			s := support()
			s.Mounts = false // no code is read less or without the network; see SandboxSettings.bounds
			return s
		}})
	}
	return tools.New("bash", "Asks about a command.", func(ctx context.Context, p bashParams, call *tools.Call) (tools.Result, error) {
		dir := e.workdir(p.Workdir)
		sh, err := run.Detect(e.Shell.Shell)
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: "no_shell", Message: err.Error(), Err: err}
		}
		a := e.analyzed(p.Command, dir, sh, e.Shell.Environ(), e.hidden(ctx, call.Host.Gate, call.SessionID))
		_, err = e.askCommand(ctx, call, a, p, dir)
		return tools.Result{Title: visible.Text(p.Command), Output: "The command may run.", Metadata: map[string]any{}}, err
	}, tools.WithKind(tools.KindExecute))
}
