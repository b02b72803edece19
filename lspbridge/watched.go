package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pillion-dev/pillion/tools/paths"
	"go.lsp.dev/protocol"
)

// watchGlob is one pattern a server wants to hear of.
type watchGlob struct {
	base    string // directory the pattern is relative to; "" matches whole paths
	pattern string
	kinds   int // 1 create, 2 change, 4 delete
}

// watchGlobs reads the options of a didChangeWatchedFiles registration.
func (c *client) watchGlobs(options json.RawMessage) []watchGlob {
	var o struct {
		Watchers []struct {
			GlobPattern json.RawMessage
			Kind        *int
		}
	}
	_ = json.Unmarshal(options, &o)
	var out []watchGlob
	for _, w := range o.Watchers {
		g := watchGlob{kinds: 7}
		if w.Kind != nil {
			g.kinds = *w.Kind
		}
		if json.Unmarshal(w.GlobPattern, &g.pattern) != nil {
			var rel struct {
				BaseURI json.RawMessage
				Pattern string
			}
			_ = json.Unmarshal(w.GlobPattern, &rel)
			var base string
			if json.Unmarshal(rel.BaseURI, &base) != nil {
				var folder struct{ URI string }
				_ = json.Unmarshal(rel.BaseURI, &folder)
				base = folder.URI
			}
			g.pattern, g.base = rel.Pattern, uriPath(base)
			if g.base == "" {
				continue
			}
		} else if !strings.HasPrefix(g.pattern, "/") && !filepath.IsAbs(g.pattern) {
			g.base = c.root
		}
		if doublestar.ValidatePattern(g.pattern) {
			out = append(out, g)
		}
	}
	return out
}

func (g watchGlob) match(e fileEvent) bool {
	if g.kinds&(1<<(e.kind-1)) == 0 {
		return false
	}
	name := e.path
	if g.base != "" {
		if !paths.Within(g.base, e.path) {
			return false
		}
		name, _ = filepath.Rel(g.base, e.path)
	}
	ok, _ := doublestar.Match(g.pattern, filepath.ToSlash(name))
	return ok
}

// wanted are the events the server registered for. c.mu is held.
func (c *client) wanted(events []fileEvent) []fileEvent {
	var out []fileEvent
	for _, e := range events {
		for _, r := range c.regs {
			if r.Method == protocol.MethodWorkspaceDidChangeWatchedFiles && r.wants(e) {
				out = append(out, e)
				break
			}
		}
	}
	return out
}

func (r registration) wants(e fileEvent) bool {
	for _, g := range r.globs {
		if g.match(e) {
			return true
		}
	}
	return false
}

// queueDisk hands events to the one goroutine per client that tells them, in order.
func (c *client) queueDisk(events []fileEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disk = append(c.disk, events...)
	if !c.telling {
		c.telling = true
		go c.tellDisk()
	}
}

func (c *client) tellDisk() {
	for {
		c.mu.Lock()
		events := c.disk
		c.disk = nil
		if c.telling = len(events) > 0; !c.telling {
			c.bump()
		}
		c.mu.Unlock()
		if len(events) == 0 {
			return
		}
		c.onDisk(events)
	}
}

// onDisk tells the server of changes somebody else made.
func (c *client) onDisk(events []fileEvent) {
	ctx, cancel := context.WithTimeout(context.Background(), watchLock)
	defer cancel()
	release, err := c.lock(ctx)
	if err != nil {
		return
	}
	defer release()
	var open []string
	c.mu.Lock()
	c.watched(c.wanted(events))
	for _, e := range events {
		if c.docs[e.path] != nil {
			open = append(open, e.path) // otherwise the server's buffer would win over the disk
		}
		if e.kind == 3 {
			delete(c.files, e.path)
			c.news(e.path)
		}
	}
	c.follow(open...)
	c.mu.Unlock()
	if len(open) > 0 {
		c.sync(open)
	}
}
