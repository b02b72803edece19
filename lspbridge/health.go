package lspbridge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"go.lsp.dev/protocol"
)

// Silence. A server that was asked something and says nothing at all is probed; one that fails the probe is frozen:
// nobody waits for it any more, the person is told once, and in the end it is started anew.
const (
	silentFor  = 10 * time.Second       // asked and silent so long: it is probed
	probeFor   = 5 * time.Second        // what the probe waits for any word
	frozenFor  = 3 * time.Minute        // frozen so long: it is ended and started again
	frozenWait = 100 * time.Millisecond // what an edit waits for a frozen server
	bannerFor  = 5 * time.Second        // from the first line that is no message to the first that is one
)

// health is what a client knows of whether its server is alive.
type health struct {
	mu      sync.Mutex // guards what follows
	banner  string     // the first output that was no message
	heard   bool       // a message has come
	waiting time.Time  // since when somebody waits in vain; zero: nobody, or it spoke meanwhile
	probing bool
	frozen  bool
}

// hear notes a sign of life.
func (h *health) hear() {
	h.mu.Lock()
	h.heard, h.frozen, h.waiting = true, false, time.Time{}
	h.mu.Unlock()
}

// garbage is what the server prints instead of messages; "" when it has ever sent one.
func (c *client) garbage() string {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	if c.health.heard {
		return ""
	}
	return c.health.banner
}

// noise takes output that is no message. A server that prints and prints and never speaks is given up.
func (c *client) noise(err error) {
	c.log.Warn("bad message", "server", c.spec.ID, "err", err)
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	if c.health.heard || c.health.banner != "" {
		return
	}
	_, text, ok := strings.Cut(err.Error(), rpc.NotLSP)
	if !ok {
		text = err.Error()
	}
	c.health.banner = text
	time.AfterFunc(bannerFor, func() {
		if c.garbage() != "" && !c.dead() {
			c.end()
		}
	})
}

// end ends a run that has gone wrong; the slot sees to what comes after.
func (c *client) end() {
	if c.proc != nil {
		c.proc.kill()
	}
	_ = c.peer.Close()
}

// patience is the context of a wait for the server: that of its asker, shorter while the server is frozen. done says
// how the wait ended.
func (c *client) patience(ctx context.Context) (wait context.Context, done func(error)) {
	c.health.mu.Lock()
	frozen := c.health.frozen
	first := c.health.waiting.IsZero()
	if first {
		c.health.waiting = time.Now()
	}
	c.health.mu.Unlock()
	cancel := context.CancelFunc(func() {})
	if wait = ctx; frozen {
		wait, cancel = context.WithTimeout(ctx, frozenWait)
	}
	return wait, func(err error) {
		cancel()
		c.health.mu.Lock()
		defer c.health.mu.Unlock()
		switch {
		case err == nil:
			if first { // there was nothing to wait for
				c.health.waiting = time.Time{}
			}
		case c.health.waiting.IsZero() || c.health.probing || c.dead():
		case time.Since(c.health.waiting) >= silentFor:
			c.health.probing = true
			go c.probe()
		}
	}
}

// probe asks what any server can answer, so that one that merely has nothing to say is not taken for dead.
func (c *client) probe() {
	defer func() {
		c.health.mu.Lock()
		c.health.probing = false
		c.health.mu.Unlock()
	}()
	c.mu.Lock()
	busy := c.loading() != ""
	c.mu.Unlock()
	if busy {
		return // it has said what it is doing
	}
	path := c.anyDocument()
	ask := func(wait time.Duration) bool {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		at := map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}
		switch {
		case path != "" && has(c.caps.DocSymbol):
			_ = c.peer.Call(ctx, protocol.MethodTextDocumentDocumentSymbol, at, nil)
		case path != "" && has(c.caps.Hover):
			at["position"] = map[string]int{"line": 0, "character": 0}
			_ = c.peer.Call(ctx, protocol.MethodTextDocumentHover, at, nil)
		default:
			return true // nothing it has promised to answer
		}
		return ctx.Err() == nil || c.spoke()
	}
	if ask(probeFor) || c.dead() {
		return
	}
	c.health.mu.Lock()
	c.health.frozen = true
	c.health.mu.Unlock()
	c.host.notice(c.spec.ID, fmt.Sprintf("%s has not answered for %v. Changes go on without waiting for it; it is started again if it stays silent.", c.spec.ID, silentFor+probeFor))
	if !ask(frozenFor) && !c.dead() {
		c.log.Warn("frozen server is ended", "server", c.spec.ID)
		c.end()
	}
}

func (c *client) isFrozen() bool {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.frozen
}

// spoke reports a sign of life since somebody began to wait.
func (c *client) spoke() bool {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.waiting.IsZero()
}

func (c *client) anyDocument() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	best, used := "", uint64(0)
	for p, d := range c.docs {
		if d.used >= used {
			best, used = p, d.used
		}
	}
	return best
}
