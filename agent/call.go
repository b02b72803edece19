package agent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// What the model reads as the result of a call that did not run to its end. Each text says whether to call again, and how: a model that
// reads only "cut" repeats the same long call.
const (
	cancelledText = "This call was cancelled by the user."
	cutText       = "Your answer was cut at the output limit in the middle of this call, so it was not run. Send it again in smaller pieces: several calls, or a smaller change each."
	brokenText    = "Your answer broke off in the middle of this call, so it was not run. Send it again."
	notRunText    = "Not run: the user rejected another call of this step."
)

// call is one tool call: by a model, by the person (by hand), or by another call. While the answer streams, the fields above mu belong to
// it; afterwards they belong to the goroutine that runs the call.
type call struct {
	s         *Session
	agent     string
	message   string // id of the assistant message; empty: by hand
	id        string
	name      string
	offered   []tools.Tool
	find      func(name string) (tools.Tool, bool) // finds a tool that was not offered to the model; nil: only offered tools count
	tool      tools.Tool
	known     bool     // tool is set: the name was recognised
	raw       gathered // the arguments as written
	signature string
	complete  bool               // the arguments have arrived completely
	started   bool               // it runs or ran
	cut       bool               // the output limit cut its arguments
	note      string             // added to the result, for the model only
	seen      bool               // counted by loopWatch, which must count each call once
	part      bool               // it belongs to another call, which is shown instead of it
	alone     bool               // its approval request failed because no user is connected
	gate      tools.Gate         // asked instead of the session's; nil: the session's
	words     func() string      // returns the text of the answer so far; nil: by hand
	heard     func(tools.Update) // receives the tool's updates besides the event log; may be nil

	mu   sync.Mutex
	data ToolData // guarded by mu
	over bool     // guarded by mu; data has its final state, and later updates are dropped
	kept bool     // guarded by mu; an event with the whole input was emitted
}

// newCall makes a call of this answer with an id that is unique in the session.
func (a *answer) newCall(id, name string) *call {
	// Some providers number their calls from 0 in each answer, or send no id; two calls with one id would share a card and a result. 64
	// bytes is the longest id that OpenAI's Responses API accepts. Editors show a sub-agent's calls beside those of its parent, so they
	// always get ids of their own.
	used := a.t.s.hist.callIDs
	if id == "" || len(id) > 64 || used[id] || a.t.s.of.parent != nil {
		id = newID("call_")
	}
	used[id] = true
	c := &call{s: a.t.s, agent: a.set.info.Agent, message: a.id, id: id, offered: a.set.offered}
	c.find = func(name string) (tools.Tool, bool) { return a.set.find(a.t.s, name) }
	c.words = a.words
	c.data = ToolData{MessageID: a.id, CallID: id}
	c.resolve(name)
	return c
}

// resolve finds the tool that a name means: an offered tool of exactly this name, then one that was not offered, then one whose name
// differs in case or by a small slip. Without the last rule each slip would cost a failed call and a whole step.
func (c *call) resolve(name string) {
	c.name = name
	for _, t := range c.offered { // the first tool of a name counts, as in the list that the model got
		if t.ID == name {
			c.tool, c.known = t, true
			break
		}
	}
	if !c.known && name != "" && c.find != nil {
		c.tool, c.known = c.find(name)
	}
	if !c.known && name != "" {
		c.tool, c.known = tools.Repair(name, c.offered)
	}
	kind := tools.KindOther
	if c.known {
		c.name = c.tool.ID
		if c.tool.Kind != "" {
			kind = c.tool.Kind
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data.Tool, c.data.Kind = c.name, kind
}

// ungroup replaces a call of a group, such as symbol with an operation, by the tool that it means. It needs the complete arguments. From here
// on everything (approval, hooks, cards, the event log) sees that tool, so a rule for it holds however the model called it.
func (c *call) ungroup() {
	if c.known {
		return
	}
	if id, input, ok := tools.Ungroup(c.name, c.raw.bytes(), c.offered); ok {
		c.raw.set(input)
		c.resolve(id)
	}
}

// readOnly reports whether the call may run in parallel with its neighbours.
func (c *call) readOnly() bool { return c.known && (c.tool.ReadOnly || c.tool.Parallel) }

// show sets the call's status and emits the call. After the final state it does nothing.
func (c *call) show(status ToolStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.data.Status = status
	if status == ToolRunning {
		// The arguments are complete here; while they stream they are not valid JSON.
		c.data.Input, c.data.Started = inputJSON(c.raw.bytes()), now()
	}
	c.emit()
}

// emit publishes the call as it is now; c.mu is held.
func (c *call) emit() {
	switch stored := c.stored(); {
	case c.part:
	case stored.InputBefore:
		c.s.add(c.s.frozen(EventTool, c.data, stored))
	default:
		c.s.emit(EventTool, c.data)
	}
}

// stored is the call as it is now for the event log: without a long input that an earlier event has, so that a file that is written whole is
// not stored with each state of its call. c.mu is held.
func (c *call) stored() ToolData {
	d := c.data
	if len(d.Input) < longText {
		return d
	}
	if c.kept {
		d.Input, d.InputBefore = nil, true
	}
	c.kept = true
	return d
}

// snapshot returns a copy of the call's data. Its maps are never changed in place, so the caller may keep it.
func (c *call) snapshot() ToolData {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data
}

// fail closes a call that does not run. kind is the ErrorKind for programs, why the text for the model.
func (c *call) fail(kind, why string) {
	c.answerOnce(func(d *ToolData) { d.Status, d.ErrorKind, d.Error = ToolError, kind, why })
}

// answerOnce sets the call's final state and emits it. It reports false when the call already has one: an abandoned tool may return later.
func (c *call) answerOnce(f func(*ToolData)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.over = true
	// A call that never ran shows the arguments that have arrived.
	if c.data.Input == nil {
		c.data.Input = inputJSON(c.raw.bytes())
	}
	c.data.Ended = now()
	f(&c.data)
	c.emit()
	return true
}

// outcome is what a tool returned.
type outcome struct {
	result tools.Result
	err    error
}

// run runs the tool and closes the call. A tool that has not returned within cancelGrace after its context ended is abandoned: its
// goroutine continues, and its result and updates are dropped. The error is the tool's.
func (c *call) run(ctx context.Context) error {
	if ctx.Err() != nil {
		c.fail("cancelled", cancelledText)
		return nil
	}
	c.show(ToolRunning)
	ctx, span := c.toolSpan(ctx)
	// done is buffered, so the goroutine of an abandoned tool can end.
	done := make(chan outcome, 1)
	go func() {
		r, err := c.invoke(ctx)
		done <- outcome{r, err}
	}()
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(cancelGrace)
		defer timer.Stop()
		select {
		case out = <-done:
		case <-timer.C:
			out.err = ctx.Err()
			c.forget()
		}
	}
	c.end(ctx, out)
	c.endSpan(span)
	return out.err
}

// invoke runs the tool with its hooks, gate and output limit. For an unknown name it fails with the names that exist; where the session has
// the "invalid" tool, that tool words the error.
func (c *call) invoke(ctx context.Context) (tools.Result, error) {
	o := c.s.rt.o
	// Without a state folder, long outputs are cut and the model cannot read the rest.
	limit := tools.CapOptions{}
	if o.StateDir != "" {
		limit.Dir = filepath.Join(o.StateDir, "tool-output")
	}
	for _, t := range c.offered {
		limit.CanDelegate = limit.CanDelegate || t.ID == "task"
	}
	env := &tools.Call{SessionID: c.s.ID(), MessageID: c.message, CallID: c.id, Agent: c.agent, OnMetadata: c.update, Hooks: slices.Concat(c.s.masking(), o.Hooks, c.s.rt.extensions(c.s.Info().Cwd).Hooks),
		Host: tools.Host{Gate: c.gateOf(), Questions: c.s.questioner(), Todos: todoList{c.s.Head}, Spawner: spawner{c}, Agents: sessionAgents{c.s.Head}, Calls: subCalls{c}}}
	if c.words != nil {
		env.Words = c.s.mask(c.words())
	}
	if c.known && c.wouldWriteHidden() { // before the gate: the person must not be asked about a change that would destroy a key
		return tools.Result{}, &tools.Error{Kind: "hidden_key", Message: hiddenRefused}
	}
	if c.known {
		return tools.Invoke(ctx, c.tool, c.raw.bytes(), env, limit)
	}
	why := tools.Unavailable(c.name, c.offered)
	for _, t := range c.s.tools {
		if t.ID == "invalid" {
			input, _ := json.Marshal(map[string]string{"tool": c.name, "error": why})
			r, err := tools.Invoke(ctx, t, input, env, limit)
			if err == nil {
				err = &tools.Error{Kind: "unknown_tool", Message: r.Output}
			}
			return tools.Result{Title: r.Title}, err
		}
	}
	return tools.Result{}, &tools.Error{Kind: "unknown_tool", Message: why}
}

// gateOf returns the gate that the call asks: its own, such as that of FinishCall, or the session's.
func (c *call) gateOf() tools.Gate {
	if c.gate != nil {
		return c.gate
	}
	return c.s.gate
}

// Stopped is the cause (context.Cause) of a call that somebody else than the user has cancelled, as the call's error says it.
type Stopped string

// Error implements error.
func (s Stopped) Error() string { return string(s) }

// cancelledBy returns the error of a cancelled call.
func cancelledBy(ctx context.Context) string {
	var by Stopped
	if errors.As(context.Cause(ctx), &by) {
		return by.Error()
	}
	return cancelledText
}

// end closes the call with the tool's result. A failed call keeps its output: a command that failed has printed the reason there.
func (c *call) end(ctx context.Context, out outcome) {
	c.answerOnce(func(d *ToolData) {
		r := out.result
		if r.Title != "" {
			d.Title = r.Title
		}
		if len(r.Metadata) > 0 {
			d.Metadata = merged(d.Metadata, r.Metadata)
		}
		if len(r.Locations) > 0 {
			d.Locations = r.Locations
		}
		d.Output, d.Attachments, d.Status = r.Output, r.Attachments, ToolCompleted
		if out.err == nil {
			if aborted, _ := r.Metadata["aborted"].(bool); aborted && ctx.Err() != nil { // cancelled; the output has what the tool did before
				d.Status, d.Error, d.ErrorKind = ToolError, cancelledBy(ctx), "cancelled"
			}
			return
		}
		d.Status, d.Error, d.ErrorKind = ToolError, c.s.mask(out.err.Error()), "error"
		var known *tools.Error
		switch {
		case ctx.Err() != nil && errors.Is(out.err, ctx.Err()):
			d.Error, d.ErrorKind = cancelledBy(ctx), "cancelled"
		case errors.Is(out.err, permission.ErrRejected):
			d.ErrorKind = "rejected"
			var rejected *permission.RejectedError
			c.alone = errors.As(out.err, &rejected) && rejected.Unanswered
		case errors.Is(out.err, permission.ErrDenied):
			d.ErrorKind = "denied"
		case errors.Is(out.err, tools.ErrDismissed):
			d.ErrorKind = "dismissed"
		case errors.As(out.err, &known) && known.Kind != "":
			d.ErrorKind = known.Kind
		}
	})
}

// rejectedWithoutMessage reports a plain rejection, which ends the turn. A rejection with a message goes to the model, which tries another
// way.
func rejectedWithoutMessage(err error) bool {
	if !errors.Is(err, permission.ErrRejected) {
		return false
	}
	var r *permission.RejectedError
	return !errors.As(err, &r) || r.Message == ""
}

// update publishes the progress of a running call. The store gets a short version (see brief), because a build prints for minutes; the
// final state is stored whole.
func (c *call) update(u tools.Update) {
	if c.heard != nil {
		c.heard(u)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if u.Title != "" {
		c.data.Title = c.s.mask(u.Title)
	}
	if len(u.Metadata) > 0 {
		c.data.Metadata = merged(c.data.Metadata, c.s.maskMetadata(u.Metadata))
	}
	if u.Locations != nil {
		c.data.Locations = u.Locations
	}
	if !c.part && (u.Title != "" || len(u.Metadata) > 0 || u.Locations != nil) {
		stored := c.stored()
		stored.Metadata = brief(stored.Metadata)
		c.s.update(c.data, stored)
	}
	if u.Change != nil {
		c.s.showChange(c.id, u.ChangeState, u.Change)
	}
}

// forget drops everything but plain values from the metadata of an abandoned tool. The tool still runs and may change the maps that it
// passed, which would be a data race with the event log.
func (c *call) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]any{}
	for k, v := range c.data.Metadata {
		switch v.(type) {
		case string, bool, int, int64, float64, nil:
			kept[k] = v
		}
	}
	c.data.Metadata = kept
}

// merged returns a new map; the old one may still be read by a subscriber.
func merged(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// maxLive is how many bytes, counted from the end, the store keeps of each string in an update of a running call. Without a limit, a build
// that prints for minutes would fill the store.
const maxLive = 2 << 10

// brief cuts the long strings of a running call's metadata. The caller's map is not changed.
func brief(m map[string]any) map[string]any {
	out, own := m, false
	for k, v := range m {
		if s, ok := v.(string); ok && len(s) > maxLive {
			if !own {
				out, own = maps.Clone(m), true
			}
			s = s[len(s)-maxLive:]
			for len(s) > 0 && !utf8.RuneStart(s[0]) {
				s = s[1:]
			}
			out[k] = "…" + s
		}
	}
	return out
}
