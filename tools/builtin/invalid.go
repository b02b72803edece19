package builtin

import (
	"context"
	_ "embed"

	"github.com/pillion-dev/pillion/tools"
)

//go:embed invalid.txt
var invalidText string

// invalidParams are set by the agent: the name of the tool that the model called, and the error.
type invalidParams struct {
	Tool  string `json:"tool,omitempty"`
	Error string `json:"error,omitempty"`
}

// Invalid answers calls that cannot run: the tool is unknown, or the arguments are not valid JSON. The agent calls it
// instead of the named tool; models do not see it in their list. Its result is the error, so that the model can correct
// its call.
func Invalid() tools.Tool {
	return tools.New("invalid", invalidText, func(_ context.Context, p invalidParams, _ *tools.Call) (tools.Result, error) {
		return tools.Result{Title: "Invalid Tool", Output: "The arguments provided to the tool are invalid: " + p.Error, Metadata: map[string]any{"tool": p.Tool}}, nil
	}, tools.WithReadOnly())
}
