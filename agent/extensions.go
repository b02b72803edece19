package agent

import (
	"context"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Extensions are what the person's own code adds to the sessions of a directory. Nil functions are skipped.
type Extensions struct {
	// Over are tools that take the place of Pillion's own of the same name.
	Over func(ctx context.Context) []tools.Tool
	// Hooks stand around every call, inside those of Options.
	Hooks []tools.Hook
	// Define may word a tool's description and parameters anew.
	Define func(ctx context.Context, t tools.Tool) tools.Tool
	// Permission may answer a question before the person does; see permission.GateOptions.
	Permission func(ctx context.Context, r permission.Request) permission.Action
	// Message may change a prompt before it is stored.
	Message func(ctx context.Context, e Entering) []provider.Part
	// Params may change a request before it goes to the model.
	Params func(ctx context.Context, s SessionInfo, r *provider.Request)
	// Event hears what happens, one after the other; no turn waits for it. The names and shapes are OpenCode's.
	Event func(kind string, properties map[string]any)
}

// extensions are those of a directory; without any the result is empty and not nil.
func (rt *Runtime) extensions(cwd string) *Extensions {
	if e := rt.o.Plugins.Extensions(cwd); e != nil {
		return e
	}
	return &Extensions{}
}
