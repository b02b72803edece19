package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// toolset holds the tools of a session. Only the session's runner uses it, so it has no lock.
type toolset struct {
	rt    *Runtime
	head  *Head
	of    lineage
	made  []tools.Tool // Pillion's own tools, made at the first turn; nil before
	tools []tools.Tool // all tools of this step: those of plugins, then made, then those of servers
}

// makeTools makes Pillion's own tools once for a session, because they remember which files were read, and then adds the tools that come
// and go.
func (ts *toolset) makeTools(ctx context.Context) error {
	if ts.made == nil {
		made, err := ts.rt.o.Toolbox.Tools(ctx, ts.head.Info())
		if err != nil {
			return fmt.Errorf("the tools could not be created: %w", err)
		}
		ts.made, ts.tools = made, made
	}
	var over []tools.Tool
	if e := ts.rt.extensions(ts.head.Info().Cwd); e.Over != nil {
		over = e.Over(ctx)
	}
	more := ts.rt.o.Toolbox.More(ctx, ts.head.Info())
	if len(over)+len(more) == 0 {
		ts.tools = ts.made
		return nil
	}
	// Tools of plugins come first, because the first tool of a name counts: they replace Pillion's own. over is clipped, so that append
	// copies it.
	ts.tools = append(append(over[:len(over):len(over)], ts.made...), more...)
	return nil
}

// offerOptions returns which tools the model is offered. A tool that the rules deny is not offered at all: a model calls the tools that it
// sees.
func (ts *toolset) offerOptions(a Agent, model string) tools.OfferOptions {
	cwd := ts.head.Info().Cwd
	o := tools.OfferOptions{
		UsesPatch: tools.UsesPatch(model), Rules: ts.rt.rules(cwd, a), Within: ts.of.rules(ts.rt), Switches: ts.rt.switches(cwd, a),
		HasQuestioner: ts.rt.o.Questions != nil, HasSpawner: ts.of.depth() < ts.rt.maxDepth(cwd),
	}
	switch {
	case ts.of.depth() > 0: // the plan and the mode belong to the parent session
		o.Without = []string{"todowrite", "todoread", "plan_enter", "plan_exit"}
	case a.Name == PlanAgent:
		o.Without = []string{"plan_enter"}
	default:
		o.Without = []string{"plan_exit"}
	}
	return o
}

// regroup returns a conversation whose calls have the names that the model is offered. The history has the names of the tools that ran, and
// stays as it is: messages with such calls are copied.
func (set *setup) regroup(all []provider.Message) []provider.Message {
	var out []provider.Message // nil: nothing was changed yet
	for i, m := range all {
		own := false
		for k, p := range m.Parts {
			// A result's name must be that of its call, which Gemini checks.
			if p.Type != provider.PartToolCall && p.Type != provider.PartToolResult {
				continue
			}
			name, input := tools.Regroup(p.Name, p.Input, set.offered)
			if name == p.Name {
				continue
			}
			if out == nil {
				out = slices.Clone(all)
			}
			if !own {
				own, out[i].Parts = true, slices.Clone(m.Parts)
			}
			out[i].Parts[k].Name = name
			if p.Type == provider.PartToolCall {
				out[i].Parts[k].Input = input
			}
		}
	}
	if out == nil {
		return all
	}
	return out
}
