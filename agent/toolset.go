package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

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
	past  regrouped    // the conversation of the last request
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

// toolSpecs keeps what models are shown of the tools that were offered last: sessions of one agent are offered the same, at each step.
type toolSpecs struct {
	mu      sync.Mutex
	offered []tools.Tool        // guarded by mu
	specs   []provider.ToolSpec // guarded by mu; replaced, never changed in place
}

// of returns what a model is shown of the tools; the caller must not change it.
func (t *toolSpecs) of(offered []tools.Tool) []provider.ToolSpec {
	t.mu.Lock()
	was, specs := t.offered, t.specs
	t.mu.Unlock()
	if specs != nil && tools.ShownAlike(was, offered) {
		return specs
	}
	shown := tools.Grouped(offered)
	specs = make([]provider.ToolSpec, len(shown))
	kept := make([]tools.Tool, len(offered))
	for i, tool := range offered {
		tool.Run, tool.Describe = nil, nil // which belong to a session
		kept[i] = tool
	}
	for i, tool := range shown {
		specs[i] = provider.ToolSpec{Name: tool.ID, Description: tool.Description, Parameters: tool.Parameters}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offered, t.specs = kept, specs
	return specs
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

// regrouped remembers a conversation with its names as a model sees them. A step looks only at the messages that are new in it, and the
// renamed ones are the same as in the request before, by which a provider knows that they are encoded already.
type regrouped struct {
	calls tools.GroupCalls
	from  []provider.Message // the messages as they were given
	to    []provider.Message // the same with the names that the model is offered; nil while no call was renamed
}

// regroup returns a conversation whose calls have the names that the model is offered. The history has the names of the tools that ran, and
// stays as it is: messages with such calls are copied.
func (ts *toolset) regroup(offered []tools.Tool, all []provider.Message) []provider.Message {
	was := &ts.past
	if calls := tools.GroupCallsOf(offered); was.calls == nil || !maps.Equal(calls, was.calls) {
		*was = regrouped{calls: calls}
	}
	same := 0
	for same < min(len(all), len(was.from)) && isSameMessage(&all[same], &was.from[same]) {
		same++
	}
	// An earlier request may still be read: what differs from it must not be written over it.
	if same < len(was.from) {
		was.from = was.from[:same:same]
		if was.to != nil {
			was.to = was.to[:same:same]
		}
	}
	for i := same; i < len(all); i++ {
		m := all[i]
		was.from = append(was.from, m)
		parts := was.rename(m.Parts)
		if parts != nil && was.to == nil {
			was.to = slices.Clone(all[:i])
		}
		if parts != nil {
			m.Parts = parts
		}
		if was.to != nil {
			was.to = append(was.to, m)
		}
	}
	if was.to == nil {
		return all
	}
	return slices.Clip(was.to)
}

// rename returns a copy of the parts in which calls have the names that the model is offered; nil when they have them already.
func (g *regrouped) rename(parts []provider.Part) (out []provider.Part) {
	for k, p := range parts {
		// A result's name must be that of its call, which Gemini checks.
		if p.Type != provider.PartToolCall && p.Type != provider.PartToolResult {
			continue
		}
		name, input := g.calls.Regroup(p.Name, p.Input)
		if name == p.Name {
			continue
		}
		if out == nil {
			out = slices.Clone(parts)
		}
		out[k].Name = name
		if p.Type == provider.PartToolCall {
			out[k].Input = input
		}
	}
	return out
}

// isSameMessage compares the parts by their address, because messages never change and comparing a long history word by word is the work
// that is to be saved.
func isSameMessage(a, b *provider.Message) bool {
	return a.ID == b.ID && a.Role == b.Role && a.Model == b.Model && len(a.Parts) == len(b.Parts) && (len(a.Parts) == 0 || &a.Parts[0] == &b.Parts[0])
}
