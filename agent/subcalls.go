package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
)

// notInside are tools that no other tool may call: they act for the model itself (plan, questions, todo list), or would nest. A further
// tool of these kinds must be added here.
var notInside = []string{"batch", "task", "invalid", "question", "plan_enter", "plan_exit", "todowrite", "todoread"}

// subCalls makes calls on behalf of another call. Each is like a call by hand: it has a card and does not enter the history, because no
// model made it.
type subCalls struct{ c *call }

// callable returns the offered tools that may be called from inside another: Pillion's own, not those of servers or plugins.
func (sc subCalls) callable() []tools.Tool {
	own := sc.c.s.made
	return slices.DeleteFunc(slices.Clone(sc.c.offered), func(t tools.Tool) bool {
		return t.ID == sc.c.name || slices.Contains(notInside, t.ID) || !slices.ContainsFunc(own, func(o tools.Tool) bool { return o.ID == t.ID })
	})
}

// Callable implements tools.Calls.
func (sc subCalls) Callable() []string {
	var out []string
	for _, t := range sc.callable() {
		out = append(out, t.ID)
	}
	return out
}

// CallTool implements tools.Calls.
func (sc subCalls) CallTool(ctx context.Context, name string, input json.RawMessage) (tools.Result, error) {
	offered := sc.callable()
	c := &call{s: sc.c.s, agent: sc.c.agent, id: newID("call_"), offered: offered, complete: true}
	c.data = ToolData{CallID: c.id, Parent: sc.c.id}
	c.resolve(name)
	c.raw.set(input)
	c.ungroup()
	if !c.known {
		why := "Tool '" + name + "' is not one that can be called from inside another; available are: " + strings.Join(sc.Callable(), ", ") + "."
		if slices.ContainsFunc(sc.c.offered, func(t tools.Tool) bool { return t.ID == name }) {
			why = "Tool '" + name + "' is not allowed here; call it directly. Available are: " + strings.Join(sc.Callable(), ", ") + "."
		}
		return tools.Result{}, &tools.Error{Kind: "not_callable", Message: why}
	}
	err := c.run(ctx)
	d := c.snapshot()
	return tools.Result{Title: d.Title, Output: d.Output, Metadata: d.Metadata, Attachments: d.Attachments, Locations: d.Locations}, err
}
