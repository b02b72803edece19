package agent

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
)

// toolset is the tools of a session. The session's runner owns it.
type toolset struct {
	rt    *Runtime
	head  *Head
	of    lineage
	made  []tools.Tool // made at the first turn
	tools []tools.Tool // made and those that come and go, as of this step
}

// makeTools makes the session's own tools once, since they carry its read state, and adds those that come and go.
func (ts *toolset) makeTools(ctx context.Context) error {
	if ts.made == nil {
		made, err := ts.rt.o.Toolbox.Tools(ctx, ts.head.Info())
		if err != nil {
			return fmt.Errorf("the tools could not be made: %w", err)
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
	// over comes first, because its tools take the place of Pillion's own of the same name.
	ts.tools = append(append(over[:len(over):len(over)], ts.made...), more...)
	return nil
}

// offerOptions says which tools the model is offered. What the rules deny is not offered at all: a model that sees a tool calls it.
func (ts *toolset) offerOptions(a Agent, model string) tools.OfferOptions {
	cwd := ts.head.Info().Cwd
	o := tools.OfferOptions{
		UsesPatch: tools.UsesPatch(model), Rules: ts.rt.rules(cwd, a), Within: ts.of.rules(ts.rt), Switches: ts.rt.switches(cwd, a),
		HasQuestioner: ts.rt.o.Questions != nil, HasSpawner: ts.of.depth() < ts.rt.maxDepth(cwd),
	}
	switch {
	case ts.of.depth() > 0: // the plan and the mode are the business of the session it works for
		o.Without = []string{"todowrite", "todoread", "plan_enter", "plan_exit"}
	case a.Name == PlanAgent:
		o.Without = []string{"plan_enter"}
	default:
		o.Without = []string{"plan_exit"}
	}
	return o
}
