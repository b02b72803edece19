package lspbridge

import (
	"context"
	"errors"
	"slices"
	"time"
)

// errQuiet ends a wait for a push that never came: nothing can be said.
var errQuiet = errors.New("published nothing for this version")

// errMute ends a wait that experience says is in vain.
var errMute = errors.New("publishes no problems for this file")

// Times of the push way.
const (
	muteAfter  = 3 * time.Second        // waited for a file in all without one publish: not waited for again
	muteWait   = 50 * time.Millisecond  // … but for this
	pushSettle = 200 * time.Millisecond // after a publish, for the second one of the same version
	idleSettle = 300 * time.Millisecond // for the idle report of servers that send them
	quietMin   = time.Second            // without a publish from an unversioned server
)

// settlePush waits for a publish of the present version of every path, and for the server to be done with it.
func (c *client) settlePush(ctx context.Context, paths []string) error {
	start := time.Now()
	seq, _ := c.ledger.now()
	missing := func() (out []string) {
		for _, p := range paths { // what is closed is waited for by nobody
			if doc, open := c.docs.get(p); open && !c.ledger.word(p).publishedFor(doc) {
				out = append(out, p)
			}
		}
		return out
	}
	unversioned := c.ledger.unversioned()
	still := missing()
	if len(still) == 0 {
		return c.settleLast(ctx, paths, seq, unversioned)
	}
	mute := !c.busy() && slices.ContainsFunc(still, c.ledger.mute)
	wait, cancel := ctx, context.CancelFunc(func() {})
	switch {
	case mute:
		wait, cancel = context.WithTimeout(ctx, muteWait)
	case unversioned:
		wait, cancel = context.WithTimeout(ctx, max(quietMin, 3*c.ledger.delay()))
	}
	defer cancel()
	other := false
	err := c.await(wait, func() bool {
		other = c.way() != byPush
		return other || len(missing()) == 0
	})
	if err != nil && !other {
		c.ledger.inVain(paths, time.Since(start))
	}
	switch {
	case other:
		return errOtherWay
	case err != nil && mute && ctx.Err() == nil && wait.Err() != nil:
		return errMute
	case err != nil && ctx.Err() == nil && wait.Err() != nil:
		return errQuiet
	case err != nil:
		return err
	}
	c.ledger.learn(time.Since(start))
	return c.settleLast(ctx, paths, seq, unversioned)
}

// settleLast gives a server that has published for the present texts the time to say that it is done with them, or to
// publish once more. Where its last word is older than that there is nothing to wait for.
func (c *client) settleLast(ctx context.Context, paths []string, seq uint64, unversioned bool) error {
	settle := pushSettle
	if unversioned {
		settle = max(150*time.Millisecond, c.ledger.delay())
	}
	var last time.Time
	for _, p := range paths {
		if f := c.ledger.word(p); f != nil && f.pushAt.After(last) {
			last = f.pushAt
		}
	}
	if settle -= time.Since(last); settle <= 0 {
		return nil
	}
	if c.ledger.reportsIdle() {
		done, cancel := context.WithTimeout(ctx, idleSettle)
		defer cancel()
		_ = c.await(done, func() bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return c.docs.has(p) && !c.ledger.idleSince(p, seq) })
		})
		return ctx.Err()
	}
	select {
	case <-time.After(settle):
		return nil
	case <-c.gone:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}
