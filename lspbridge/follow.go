package lspbridge

import (
	"context"
	"errors"
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
			c.mu.Lock()
			if c.docs[path] != nil {
				c.follow(path)
			}
			c.mu.Unlock()
		}
	}
}

// follow plans a look at these files and at the others that are open. c.mu is held.
func (c *client) follow(paths ...string) {
	if c.host.changed == nil {
		return
	}
	if c.touched == nil {
		c.touched = map[string]bool{}
		time.AfterFunc(followAfter, c.look)
	}
	for _, p := range paths {
		c.touched[p] = true
	}
}

// look brings the touched files up to date and asks for what is open. Whoever else needs the documents goes first: the
// look is then made later.
func (c *client) look() {
	ctx, cancel := context.WithTimeout(context.Background(), followFor)
	defer cancel()
	release, err := c.lock(ctx)
	if err != nil {
		c.mu.Lock()
		c.touched = nil
		c.mu.Unlock()
		return
	}
	defer release()
	c.mu.Lock()
	c.giveWay = cancel
	touched := make([]string, 0, len(c.touched))
	for p := range c.touched {
		if c.docs[p] != nil {
			touched = append(touched, p)
		}
	}
	c.touched = nil
	w := c.way()
	c.mu.Unlock()
	c.sync(touched)
	if w == byPull || w == byTSServer { // the others speak by themselves
		err = c.settlePull(ctx, c.stillThere(c.related(touched)), w)
	}
	c.mu.Lock()
	c.giveWay = nil
	if errors.Is(ctx.Err(), context.Canceled) && err != nil && !c.dead() {
		c.follow(touched...)
	}
	c.mu.Unlock()
}

// shove makes a look that is under way give the documents back.
func (c *client) shove() {
	c.mu.Lock()
	if c.giveWay != nil {
		c.giveWay()
	}
	c.mu.Unlock()
}
