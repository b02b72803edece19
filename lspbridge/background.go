package lspbridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Servers that only answer are asked again in the background when Options.Diagnostics is set:
// after the person has typed, after another program has changed files, and when the server asks for a
// refresh.
const (
	refreshDelay   = 300 * time.Millisecond // collects events that follow each other quickly
	refreshTimeout = 10 * time.Second       // how long one pull may take
)

// Touched tells that the editor's buffer of a file has changed. When problems are followed live, servers
// that have it open are asked again soon, in the background. It does not block.
func (m *Manager) Touched(path string) {
	if m.o.Diagnostics == nil {
		return
	}
	for _, s := range m.running() {
		if c := s.current(); c != nil {
			if c.docs.has(path) {
				c.background.plan(path)
			}
		}
	}
}

// backgroundPulls plans pulls that no caller waits for. Every other operation that needs the documents interrupts
// them.
type backgroundPulls struct {
	pull     func()
	followed bool // Options.Diagnostics is set; else nothing is planned

	mu      sync.Mutex      // guards what follows
	touched map[string]bool // files to update first; nil when nothing is planned
	cancel  func()          // cancels the pull that is under way; nil without one
}

// plan plans a pull for these files and the other open ones, after refreshDelay.
func (l *backgroundPulls) plan(paths ...string) {
	if !l.followed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.touched == nil {
		l.touched = map[string]bool{}
		time.AfterFunc(refreshDelay, l.pull)
	}
	for _, p := range paths {
		l.touched[p] = true
	}
}

// begin takes over the planned files; interrupt calls cancel from now on.
func (l *backgroundPulls) begin(cancel func()) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	touched := slices.Sorted(maps.Keys(l.touched))
	l.touched = nil
	return touched
}

// end notes that the pull is over: there is nothing left to interrupt.
func (l *backgroundPulls) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = nil
}

// forget drops a planned pull that could not get the documents in time.
func (l *backgroundPulls) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = nil
}

// interrupt cancels a pull that is under way, so that it releases the documents.
func (l *backgroundPulls) interrupt() {
	l.mu.Lock()
	giveWay := l.cancel
	l.mu.Unlock()
	if giveWay != nil {
		giveWay()
	}
}

// refreshOpen updates the touched files and asks for the problems of the open ones. When it is interrupted it
// plans itself again.
func (c *client) refreshOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		c.background.forget()
		return
	}
	defer release()
	// Files that were closed meanwhile are of no interest.
	touched := c.docs.among(c.background.begin(cancel))
	c.sync(touched)
	if w := c.mode(); w == byPull || w == byTSServer { // the others speak by themselves
		err = c.waitForPulls(ctx, c.docs.among(c.related(touched)), w)
	}
	c.background.end()
	// Interrupted, not out of time: a server that is too slow is asked again only after the next event.
	if errors.Is(ctx.Err(), context.Canceled) && err != nil && !c.dead() {
		c.background.plan(touched...)
	}
}
