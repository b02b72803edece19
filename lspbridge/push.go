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
	c.mu.Lock()
	start, seq := time.Now(), c.seq
	fresh := func(p string) bool {
		f, d := c.store()[p], c.docs[p]
		switch {
		case d == nil: // closed: nothing is said of it any more
			return true
		case f == nil || !f.hasPush:
			return false
		case f.pushVer > 0:
			return f.pushVer >= d.version
		}
		return f.pushSeq >= d.seq
	}
	all := func() bool { return !slices.ContainsFunc(paths, func(p string) bool { return !fresh(p) }) }
	already := all()
	unversioned := false
	for _, f := range c.files {
		unversioned = unversioned || f.hasPush && f.pushVer == 0
	}
	patience := max(quietMin, 3*c.latency)
	other := false
	c.mu.Unlock()
	if already {
		return c.settleLast(ctx, paths, seq, unversioned)
	}
	c.mu.Lock()
	mute := c.loading() == "" && slices.ContainsFunc(paths, func(p string) bool { return !fresh(p) && (c.waited[p] >= muteAfter || c.silent()) })
	c.mu.Unlock()
	wait, cancel := ctx, context.CancelFunc(func() {})
	switch {
	case mute:
		wait, cancel = context.WithTimeout(ctx, muteWait)
	case unversioned:
		wait, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	err := c.await(wait, func() bool {
		other = c.way() != byPush
		return other || all()
	})
	if err != nil && !other {
		c.mu.Lock()
		for _, p := range paths { // a file it never spoke of, however long it was given
			if f := c.store()[p]; f == nil || !f.hasPush {
				c.waited[p] += time.Since(start)
			}
		}
		c.mu.Unlock()
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
	c.mu.Lock()
	c.latency = (3*c.latency + time.Since(start)) / 4
	c.mu.Unlock()
	return c.settleLast(ctx, paths, seq, unversioned)
}

// silent: it has never published a thing, and was waited for long enough over several files: it is one for names or
// classes, and problems are not its business. c.mu is held.
func (c *client) silent() bool {
	var sum time.Duration
	for _, d := range c.waited { // a publish of a file takes its wait away
		sum += d
	}
	return sum >= 2*muteAfter && !c.everSpoke
}

// settleLast gives a server that has published for the present texts the time to say that it is done with them, or to
// publish once more. Where its last word is older than that there is nothing to wait for.
func (c *client) settleLast(ctx context.Context, paths []string, seq uint64, unversioned bool) error {
	c.mu.Lock()
	reports, settle := len(c.idleFile) > 0, pushSettle
	if unversioned {
		settle = max(150*time.Millisecond, c.latency)
	}
	var last time.Time
	for _, p := range paths {
		if f := c.store()[p]; f != nil && f.pushAt.After(last) {
			last = f.pushAt
		}
	}
	c.mu.Unlock()
	if settle -= time.Since(last); settle <= 0 {
		return nil
	}
	if reports {
		done, cancel := context.WithTimeout(ctx, idleSettle)
		defer cancel()
		_ = c.await(done, func() bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return c.docs[p] != nil && c.idleFile[p] < seq })
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
