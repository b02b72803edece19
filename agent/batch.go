package agent

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
)

// maxParallel is how many read-only calls of a step run at the same time.
const maxParallel = 8

// batch runs the calls of one step. Read-only calls run in parallel, at most maxParallel at a time. A call that may change something waits
// for all calls before it and runs alone, so that it finds the files as the model expects them. Read-only is a property of the tool, not of
// the arguments; see call.readOnly.
type batch struct {
	a     *answer
	wg    sync.WaitGroup
	slots chan struct{}
}

func newBatch(a *answer) *batch { return &batch{a: a, slots: make(chan struct{}, maxParallel)} }

// ready starts a read-only call as soon as its arguments are complete, while the answer still streams, provided that only read-only calls
// precede it. Reads then overlap with the rest of the answer. The caller holds the answer's mu.
func (b *batch) ready(ctx context.Context, c *call) {
	// A call that may change something holds back all calls behind it.
	for _, before := range b.a.calls {
		if !before.readOnly() {
			return
		}
		if before == c {
			b.start(ctx, c)
			return
		}
	}
}

// start runs a call in a goroutine of its own. calls waits for it through wg.
func (b *batch) start(ctx context.Context, c *call) {
	c.started = true
	b.wg.Go(func() {
		if c.tool.Parallel { // a sub-agent would hold a slot for minutes; taskSet limits them instead
			b.one(ctx, c)
			return
		}
		select {
		case b.slots <- struct{}{}:
			defer func() { <-b.slots }()
		case <-ctx.Done(): // one reports it as cancelled
		}
		b.one(ctx, c)
	})
}

// one runs a call. A rejection without a message ends the step, and calls behind it do not run: the person said no and named no
// alternative.
func (b *batch) one(ctx context.Context, c *call) {
	if rejectedWithoutMessage(c.run(ctx)) {
		b.a.t.rejected.Store(true)
	}
}

// calls runs the calls that have not run yet and returns when every call has a result. Calls that were cut off get one too, because
// providers refuse a conversation with a call that has no result. failed says why the answer is incomplete; nil when it is complete.
func (t *turn) calls(ctx context.Context, set *setup, a *answer, failed error) {
	// An external agent's calls ran while it answered. One without a result must be closed here, or other models' providers would refuse
	// the conversation.
	if isExternal(set.via) {
		for _, c := range a.calls {
			if ctx.Err() != nil {
				c.fail("cancelled", cancelledText)
			} else {
				c.fail("cut", "The agent ended its turn before this call had a result.")
			}
		}
		return
	}
	for _, c := range a.calls {
		if c.started {
			continue
		}
		if raw := c.raw.bytes(); !c.complete && failed == nil && a.stop != provider.StopMaxTokens && len(raw) > 0 && json.Valid(raw) {
			c.complete = true // the arguments are whole, only the end event is missing
			c.ungroup()
		} else if c.complete && a.stop == provider.StopMaxTokens && len(raw) > 0 && !json.Valid(raw) {
			c.complete = false // announced as complete, but cut by the output limit
		}
		// Read-only calls that still run must not see half of what this call changes.
		if !c.readOnly() {
			a.batch.wg.Wait()
		}
		switch {
		case ctx.Err() != nil:
			c.fail("cancelled", cancelledText)
		case !c.complete && a.stop == provider.StopMaxTokens:
			c.cut = true
			c.fail("cut", cutText)
		case !c.complete:
			c.fail("cut", brokenText)
		case t.rejected.Load():
			c.fail("not_run", notRunText)
		case c.readOnly():
			a.batch.start(ctx, c)
		default:
			c.started = true
			a.batch.one(ctx, c)
		}
	}
	a.batch.wg.Wait()
	t.checkForLoops(ctx, a.calls)
}
