package lspbridge

import (
	"context"
	"errors"
	"slices"
	"time"
)

// errQuiet ends a wait in which the expected push did not come. The text follows the server's name.
var errQuiet = errors.New("published nothing for this version")

// errMute ends a wait for a server or file that isMute. The text follows the server's name.
var errMute = errors.New("publishes no problems for this file")

// Waits for servers that only push. They do not announce that they are done, so these times are a compromise between an early wrong answer
// and a late one.
const (
	muteAfter  = 3 * time.Second        // total wait for a file without a push, after which waits are only muteWait
	muteWait   = 50 * time.Millisecond  // wait for a file that is mute
	pushSettle = 200 * time.Millisecond // wait after a push for a second one of the same version (syntax first, types later)
	idleSettle = 300 * time.Millisecond // wait for the idle report of servers that send one
	quietMin   = time.Second            // least wait for a push of a server that sends no versions
	quietMax   = 10 * time.Second       // longest such wait
)

// waitForPush blocks until the server has pushed for the present text of every open path, and then until it seems to be done.
func (d *diagnostics) waitForPush(ctx context.Context, paths []string) error {
	start := time.Now()
	seq, _ := d.ledger.state()
	missing := func() (out []string) {
		for _, p := range paths { // a closed document gets no publish
			if doc, open := d.docs.get(p); open && !d.ledger.latest(p).publishedFor(doc) {
				out = append(out, p)
			}
		}
		return out
	}
	unversioned := d.ledger.unversioned()
	still := missing()
	if len(still) == 0 {
		return d.waitForLastPush(ctx, paths, seq, unversioned)
	}
	// A busy server is not mute: it had no time to publish.
	mute := !d.busy() && slices.ContainsFunc(still, d.ledger.isMute)
	wait, cancel := ctx, context.CancelFunc(func() {})
	switch {
	case mute:
		wait, cancel = context.WithTimeout(ctx, muteWait)
	case unversioned:
		wait, cancel = context.WithTimeout(ctx, min(max(quietMin, 3*d.ledger.delay()), quietMax))
	}
	defer cancel()
	other := false
	err := d.await(wait, func() bool {
		other = d.mode() != byPush
		return other || len(missing()) == 0
	})
	if err != nil && !other {
		d.ledger.addUnanswered(paths, time.Since(start))
	}
	switch {
	case other:
		return errModeChanged
	case err != nil && mute && ctx.Err() == nil && wait.Err() != nil:
		return errMute
	case err != nil && ctx.Err() == nil && wait.Err() != nil:
		// The next wait is longer: a check that gives up takes its texts back, and the server has to begin again.
		d.ledger.learnAtLeast(time.Since(start))
		return errQuiet
	case err != nil:
		return err
	}
	d.ledger.learn(time.Since(start))
	return d.waitForLastPush(ctx, paths, seq, unversioned)
}

// waitForLastPush gives a server that has pushed for the present texts time to report that it is idle, or to push again. When its last push
// is older than that time, it returns at once.
func (d *diagnostics) waitForLastPush(ctx context.Context, paths []string, seq uint64, unversioned bool) error {
	settle := pushSettle
	if unversioned {
		// Nothing marks the last push, so wait for the server's usual delay, at least 150 ms.
		settle = max(150*time.Millisecond, d.ledger.delay())
	}
	var last time.Time
	for _, p := range paths {
		if f := d.ledger.latest(p); f != nil && f.pushAt.After(last) {
			last = f.pushAt
		}
	}
	if settle -= time.Since(last); settle <= 0 {
		return nil
	}
	if d.ledger.reportsIdle() {
		done, cancel := context.WithTimeout(ctx, idleSettle)
		defer cancel()
		_ = d.await(done, func() bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return d.docs.has(p) && !d.ledger.idleSince(p, seq) })
		})
		return ctx.Err()
	}
	select {
	case <-time.After(settle):
		return nil
	case <-d.gone:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}
