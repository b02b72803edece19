package builtin

import (
	"context"
	_ "embed"

	"github.com/pillion-dev/pillion/tools"
)

//go:embed invalid.txt
var invalidText string

// invalidParams are filled in by the agent: the name that was called, and what was wrong.
type invalidParams struct {
	Tool  string `json:"tool,omitempty"`
	Error string `json:"error,omitempty"`
}

// Invalid answers calls that could not be made: an unknown tool, arguments that are no JSON. The agent
// sends them here; no model is offered it. It never fails, so the model reads what was wrong and calls
// again.
func Invalid() tools.Tool {
	return tools.New("invalid", invalidText, func(_ context.Context, p invalidParams, _ *tools.Call) (tools.Result, error) {
		return tools.Result{Title: "Invalid Tool", Output: "The arguments provided to the tool are invalid: " + p.Error, Metadata: map[string]any{"tool": p.Tool}}, nil
	}, tools.WithReadOnly())
}
