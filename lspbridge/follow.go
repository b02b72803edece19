package lspbridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Servers that only speak when asked are asked again by ourselves where somebody follows the problems live: after the
// person typed, after another program changed files, after the server said that things look different now.
const (
	followAfter = 300 * time.Millisecond // gathers what comes in quick succession
	followFor   = 10 * time.Second
)

// Touched says that the buffer of a file has changed. Servers that have it open look again, soon and in the background,
// when somebody listens to live problems. It does not block.
func (m *Manager) Touched(path string) {
	if m.o.Diagnostics == nil {
		return
	}
	for _, s := range m.running() {
		if c := s.current(); c != nil {
			if c.docs.has(path) {
				c.follow(path)
			}
		}
	}
}

// looks plans what is looked at again in the background, and gives way to whoever needs the documents.
type looks struct {
	look func()

	mu      sync.Mutex      // guards what follows
	touched map[string]bool // files to bring up to date first; nil when no look is planned
	giveWay func()          // ends the look that is under way
}

// plan plans a look at these files and at the others that are open.
func (l *looks) plan(paths ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.touched == nil {
		l.touched = map[string]bool{}
		time.AfterFunc(followAfter, l.look)
	}
	for _, p := range paths {
		l.touched[p] = true
	}
}

// begin takes the planned files over; cancel ends the look when somebody else needs the documents.
func (l *looks) begin(cancel func()) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveWay = cancel
	touched := slices.Sorted(maps.Keys(l.touched))
	l.touched = nil
	return touched
}

// end says that the look is over.
func (l *looks) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveWay = nil
}

// drop forgets a planned look that could not be made.
func (l *looks) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = nil
}

// shove makes a look that is under way give the documents back.
func (l *looks) shove() {
	l.mu.Lock()
	giveWay := l.giveWay
	l.mu.Unlock()
	if giveWay != nil {
		giveWay()
	}
}

// follow plans a look where somebody follows the problems live.
func (c *client) follow(paths ...string) {
	if c.host.changed != nil {
		c.looks.plan(paths...)
	}
}

// look brings the touched files up to date and asks for what is open. Whoever else needs the documents goes first: the
// look is then made later.
func (c *client) look() {
	ctx, cancel := context.WithTimeout(context.Background(), followFor)
	defer cancel()
	release, err := c.lock(ctx)
	if err != nil {
		c.looks.drop()
		return
	}
	defer release()
	touched := c.docs.among(c.looks.begin(cancel))
	c.sync(touched)
	if w := c.way(); w == byPull || w == byTSServer { // the others speak by themselves
		err = c.settlePull(ctx, c.docs.among(c.related(touched)), w)
	}
	c.looks.end()
	if errors.Is(ctx.Err(), context.Canceled) && err != nil && !c.dead() {
		c.follow(touched...)
	}
}
