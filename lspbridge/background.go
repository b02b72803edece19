package lspbridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Servers that do not publish diagnostics by themselves are asked again in the background when Options.Diagnostics is set: after the person
// has typed, after another program has changed files, and when the server requests a refresh.
const (
	refreshDelay   = 300 * time.Millisecond // joins events in quick succession to one pull
	refreshTimeout = 10 * time.Second       // limit for one pull
)

// Touched tells the manager that the editor's buffer of a file has changed. When problems are followed live (Options.Diagnostics), servers
// that have the file open are soon asked again in the background. It does not block.
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

// backgroundPulls schedules pulls that no caller waits for. Any other operation that needs the documents interrupts them.
type backgroundPulls struct {
	pull     func()
	followed bool // Options.Diagnostics is set; else nothing is planned

	mu      sync.Mutex      // guards what follows
	touched map[string]bool // files to update before the pull; nil when none is planned
	cancel  func()          // cancels the running pull; nil when none runs
}

// plan schedules a pull for these files and the other open ones after refreshDelay.
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

// begin returns the planned files and clears the plan; until end, interrupt calls cancel.
func (l *backgroundPulls) begin(cancel func()) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	touched := slices.Sorted(maps.Keys(l.touched))
	l.touched = nil
	return touched
}

// end marks the pull as finished, so that interrupt does nothing.
func (l *backgroundPulls) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = nil
}

// forget drops a planned pull that could not acquire the documents in time.
func (l *backgroundPulls) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = nil
}

// interrupt cancels a running pull, so that it releases the documents.
func (l *backgroundPulls) interrupt() {
	l.mu.Lock()
	giveWay := l.cancel
	l.mu.Unlock()
	if giveWay != nil {
		giveWay()
	}
}

// refreshOpen updates the touched files and requests the problems of the open ones. When it is interrupted it schedules itself again.
func (c *client) refreshOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		c.background.forget()
		return
	}
	defer release()
	// Skip files that were closed meanwhile.
	touched := c.docs.among(c.background.begin(cancel))
	c.sync(touched)
	if w := c.mode(); w == byPull || w == byTSServer { // in the other modes the server publishes by itself
		err = c.waitForPulls(ctx, c.docs.among(c.related(touched)), w)
	}
	c.background.end()
	// Only after an interruption: a server that was too slow is asked again only at the next event.
	if errors.Is(ctx.Err(), context.Canceled) && err != nil && !c.dead() {
		c.background.plan(touched...)
	}
}
