package lspbridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Servers that only answer are asked again in the background when somebody follows the problems live:
// after the person has typed, after another program has changed files, and when the server asks for a
// refresh.
const (
	followAfter = 300 * time.Millisecond // collects events that follow each other quickly
	followFor   = 10 * time.Second       // how long one look may take
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
				c.follow(path)
			}
		}
	}
}

// looks plans background requests. They give way to everybody else who needs the documents.
type looks struct {
	look func()

	mu      sync.Mutex      // guards what follows
	touched map[string]bool // files to update first; nil when no look is planned
	giveWay func()          // cancels the look that is under way; nil without one
}

// plan plans a look at these files and at the other open ones.
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

// begin takes over the planned files; shove calls cancel.
func (l *looks) begin(cancel func()) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveWay = cancel
	touched := slices.Sorted(maps.Keys(l.touched))
	l.touched = nil
	return touched
}

// end is called when the look is over.
func (l *looks) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveWay = nil
}

// drop forgets a planned look that could not get the documents.
func (l *looks) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = nil
}

// shove cancels a look that is under way, so that it releases the documents.
func (l *looks) shove() {
	l.mu.Lock()
	giveWay := l.giveWay
	l.mu.Unlock()
	if giveWay != nil {
		giveWay()
	}
}

// follow plans a look, if somebody follows the problems live.
func (c *client) follow(paths ...string) {
	if c.host.changed != nil {
		c.looks.plan(paths...)
	}
}

// look updates the touched files and asks for the problems of the open ones. When it is interrupted it
// plans itself again.
func (c *client) look() {
	ctx, cancel := context.WithTimeout(context.Background(), followFor)
	defer cancel()
	release, err := c.lock(ctx)
	if err != nil {
		c.looks.drop()
		return
	}
	defer release()
	// Files that were closed meanwhile are of no interest.
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
