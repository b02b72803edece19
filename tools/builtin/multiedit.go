package builtin

import (
	"context"
	_ "embed"

	"github.com/pillion-dev/pillion/tools"
)

//go:embed multiedit.txt
var multiEditText string

// multiEditParams has the names of OpenCode's tool; each edit is made on the result of those before it.
type multiEditParams struct {
	FilePath string        `json:"filePath"`
	Edits    []replacement `json:"edits" minItems:"1"`
}

// MultiEdit makes several replacements in one file, all or nothing, and asks once.
func MultiEdit(env Env) tools.Tool {
	c := env.changes()
	return tools.New("multiedit", multiEditText, func(ctx context.Context, p multiEditParams, call *tools.Call) (tools.Result, error) {
		return c.edit(ctx, call, p.FilePath, p.Edits)
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit), multiNames)
}
