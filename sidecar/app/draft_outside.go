package app

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// outsideAsked are the tools that a person has let run outside of a session's draft. It is not stored: after a restart of the sidecar the
// person is asked again.
type outsideAsked struct {
	mu sync.Mutex
	// done is guarded by mu; by the session that a person talks to and the tool's id. A sub-agent's call counts for its parent.
	done map[[2]string]bool
}

// outside are tools of MCP servers, of the person's own code and of editors as they are called in a session. Their processes
// see the project and not the draft, and what they write is in the project at once. A draft promises that nothing is written before its
// end, so each is asked about when a session that works in a draft uses it for the first time, also where a rule allows the tool: the rule
// was not made with that promise in mind. The model is told as well, or it would look for such a tool's output in the draft.
func (d *Drafts) outside(list []tools.Tool) []tools.Tool {
	out := slices.Clone(list)
	for i, t := range out {
		// The review style is looked up at each call, since it can be changed while the list is in use.
		out[i].Run = func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			s, ok := d.app.Runtime.Session(call.SessionID)
			if !ok {
				return t.Run(ctx, input, call)
			}
			top := d.top(s.Info())
			if d.app.Runtime.ReviewOf(top) != agent.ReviewDraft {
				return t.Run(ctx, input, call)
			}
			if err := d.askOutside(ctx, t, top.ID, input, call); err != nil {
				return tools.Result{}, err
			}
			r, err := t.Run(ctx, input, call)
			r.Output = strings.TrimRight(r.Output, "\n") + "\n\n(" + t.ID + " ran outside of the draft: it saw the project as the user has it, and what it wrote is there.)"
			return r, err
		}
	}
	return out
}

// askOutside asks about a tool's first call in a session. A person who has said yes is not asked again in it; one who has said no is, at the
// next call. The error is the gate's.
func (d *Drafts) askOutside(ctx context.Context, t tools.Tool, session string, input json.RawMessage, call *tools.Call) error {
	key := [2]string{session, t.ID}
	d.asked.mu.Lock()
	done := d.asked.done[key]
	d.asked.mu.Unlock()
	if done {
		return nil
	}
	// mu is not held while the person thinks, so two first calls side by side may both ask. The tool's own permission is what is asked for:
	// a rule that denies it still counts.
	_, err := call.Host.Gate.Ask(ctx, permission.Request{SessionID: call.SessionID, CallID: call.CallID, Tool: call.Tool, Permission: t.ID, Patterns: []string{"*"}, Added: true, MustAsk: true,
		Title: "Use " + t.ID + " outside of the draft", Why: "its process does not see the draft, and what it writes is in the project at once; the answer holds for this session", Metadata: map[string]any{"input": input}})
	if err != nil {
		return err
	}
	d.asked.mu.Lock()
	defer d.asked.mu.Unlock()
	if d.asked.done == nil {
		d.asked.done = map[[2]string]bool{}
	}
	d.asked.done[key] = true
	return nil
}
