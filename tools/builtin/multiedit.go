package builtin

import (
	"context"
	_ "embed"

	"github.com/pillion-dev/pillion/tools"
)

//go:embed multiedit.txt
var multiEditText string

// multiEditParams has the parameter names of OpenCode's tool. Each edit is applied to the result of the edits before it.
type multiEditParams struct {
	FilePath string        `json:"filePath"`
	Edits    []replacement `json:"edits" minItems:"1"`
}

// MultiEdit makes several replacements in one file. If one of them fails, the file does not change. It asks once for all of them.
func MultiEdit(env Env) tools.Tool {
	c := env.changes()
	return tools.New("multiedit", multiEditText, func(ctx context.Context, p multiEditParams, call *tools.Call) (tools.Result, error) {
		return c.edit(ctx, call, p.FilePath, p.Edits)
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit), multiNames)
}
