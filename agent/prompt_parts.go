package agent

import (
	"context"
	"encoding/json"

	"github.com/pillion-dev/pillion/agent/provider"
)

// Entering is a prompt that has not yet become an event.
type Entering struct {
	Session   SessionInfo
	MessageID string
	Parts     []provider.Part
	// Call makes a tool call by hand, as Runner.Tool does, with approval, a card and the output limit.
	Call func(ctx context.Context, tool string, input json.RawMessage) (ToolData, error)
}

// complete adds the content of the prompt's mentions to its parts, and lets plugins change the parts. Pictures are scaled last, because
// mentions may add some. added are texts for the model that come with the prompt. An error means that an extension refused the prompt.
func (e Entering) complete(ctx context.Context, rt *Runtime, added []string) ([]provider.Part, error) {
	written := e.Parts
	e.Parts = rt.o.Project.Mentioned(ctx, e)
	x := rt.extensions(e.Session.Cwd)
	if x.Prompt != nil {
		more, err := x.Prompt(ctx, e)
		if err != nil {
			return nil, err
		}
		added = append(added, more...)
	}
	if x.Message != nil {
		e.Parts = x.Message(ctx, e)
	}
	// Ignore a plugin that leaves no part: the provider would refuse an empty message.
	if len(e.Parts) == 0 {
		e.Parts = written
	}
	e.Parts = addContext(e.Parts, added)
	out := make([]provider.Part, len(e.Parts))
	for i, part := range e.Parts {
		out[i] = fitPictures(part)
	}
	return out, nil
}
