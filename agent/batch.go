package agent

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
)

// maxParallel is how many read-only calls of a step run at once.
const maxParallel = 8

// batch runs the calls of one step. Read-only calls run beside each other, at most maxParallel at once; a call that may change
// something waits for all before it and runs alone, so that what it sees is what the model expects.
// Read-only is a property of the tool, not of the call's arguments; see call.readOnly.
type batch struct {
	a     *answer
	wg    sync.WaitGroup
	slots chan struct{}
}

func newBatch(a *answer) *batch { return &batch{a: a, slots: make(chan struct{}, maxParallel)} }

// ready starts a read-only call as soon as its arguments are complete, while the answer
// still streams, provided that only read-only calls precede it. Reads then overlap with the
// rest of the answer. The answer's mu is held.
func (b *batch) ready(ctx context.Context, c *call) {
	// Calls are looked at in the model's order: one that may change something holds back all behind it.
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

// start runs a call beside others, in its own goroutine.
func (b *batch) start(ctx context.Context, c *call) {
	c.started = true
	b.wg.Go(func() {
		if c.tool.Parallel { // a sub-agent has its own limits (taskSet) and would hold a slot for minutes
			b.one(ctx, c)
			return
		}
		select {
		case b.slots <- struct{}{}:
			defer func() { <-b.slots }()
		case <-ctx.Done(): // run answers it as cancelled
		}
		b.one(ctx, c)
	})
}

// one runs a call. A rejection without a message rejects the whole step: the person said no and gave no other way, so the calls
// that follow are not run.
func (b *batch) one(ctx context.Context, c *call) {
	if rejectedWithoutMessage(c.run(ctx)) {
		b.a.t.rejected.Store(true)
	}
}

// calls runs what has not run yet and returns when every call is answered: read-only ones beside each other, others
// alone and in order. Every call gets an answer, also one that was cut: providers refuse a conversation with a call that has
// no result. failed is why the answer is not whole; nil when it is.
func (t *turn) calls(ctx context.Context, set *setup, a *answer, failed error) {
	for _, c := range a.calls {
		if c.started {
			continue
		}
		if raw := c.raw.String(); !c.complete && failed == nil && a.stop != provider.StopMaxTokens && raw != "" && json.Valid([]byte(raw)) {
			c.complete = true // whole, only its end was not announced
		} else if c.complete && a.stop == provider.StopMaxTokens && raw != "" && !json.Valid([]byte(raw)) {
			c.complete = false // announced, but cut
		}
		// What this call changes must not change under the calls that still read.
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
	// The step's results are complete, in the model's order, before the next request.
	a.batch.wg.Wait()
	t.checkForLoops(ctx, a.calls)
}
