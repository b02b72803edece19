package lspbridge

import (
	"slices"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// liveEvery is how long changes of problems are gathered before somebody is told.
const liveEvery = 50 * time.Millisecond

// news notes that what is known of a file's problems has changed. c.mu is held.
func (c *client) news(path string) {
	if c.host.changed == nil {
		return
	}
	if c.fresh == nil {
		c.fresh = map[string]bool{}
		time.AfterFunc(liveEvery, c.flushNews)
	}
	c.fresh[path] = true
}

// flushNews tells of the files, or waits while a proposal is being checked: its problems are nobody's yet.
func (c *client) flushNews() {
	c.mu.Lock()
	if c.dead() {
		c.mu.Unlock()
		return
	}
	if c.overlay != nil && !c.promote() {
		time.AfterFunc(liveEvery, c.flushNews)
		c.mu.Unlock()
		return
	}
	paths := make([]string, 0, len(c.fresh))
	for p := range c.fresh {
		paths = append(paths, p)
	}
	c.fresh = nil
	c.mu.Unlock()
	slices.Sort(paths)
	c.host.changed(paths)
}

// promote makes what was said since the overlay was taken back the truth, once every diagnosis has ended. It reports
// whether no overlay is left. c.mu is held.
func (c *client) promote() bool {
	if c.overlay == nil {
		return true
	}
	if !c.overlay.over || !c.allEnded() {
		return false
	}
	for p, f := range c.overlay.files {
		if c.files[p] != f {
			c.news(p)
		}
	}
	c.files, c.overlay = c.overlay.files, nil
	return true
}

// allEnded: every diagnosis we caused has come to its end. c.mu is held.
func (c *client) allEnded() bool {
	if c.ended[causeInitial] == 0 {
		return false
	}
	for cause, n := range c.sent {
		if c.ended[cause] < n {
			return false
		}
	}
	return true
}

// state is how certain the present word on a file is. c.mu is held.
func (c *client) state(path string) change.Certainty {
	f, d := c.files[path], c.docs[path]
	final := false
	switch {
	case c.way() == byMarker:
		final = c.allEnded()
	case f == nil:
	case f.hasPull:
		final = f.pullSeq == c.seq
	case f.pushVer > 0:
		final = d == nil || f.pushVer >= d.version
	default:
		final = d == nil || f.pushSeq >= d.seq
	}
	if final {
		return change.Fresh
	}
	return change.Pending
}

// live tells of files whose problems have changed, all servers together. One telling ends before the next one looks:
// what is told last must be what was seen last.
func (m *Manager) live(paths []string) {
	m.telling.Lock()
	defer m.telling.Unlock()
	for _, p := range paths {
		r := FileReport{Path: p, Certainty: change.Fresh}
		for _, s := range m.running() {
			c := s.current()
			if c == nil {
				continue
			}
			c.mu.Lock()
			if f := c.files[p]; f != nil {
				r.Items = append(r.Items, f.items()...)
				r.Certainty = change.LeastCertain(r.Certainty, c.state(p))
			}
			if d := c.docs[p]; d != nil {
				r.Version = max(r.Version, d.version)
			}
			c.mu.Unlock()
		}
		if r.Certainty != change.Fresh {
			r.Reason = "being checked"
		}
		r.Items = unique(r.Items)
		m.mu.Lock()
		before := m.told[p]
		same := before.Certainty == r.Certainty || len(before.Items)+len(r.Items) == 0
		same = same && sameProblems(before.Items, r.Items)
		m.told[p] = r
		if len(r.Items) == 0 {
			delete(m.told, p)
		}
		m.mu.Unlock()
		if !same {
			m.o.Diagnostics(r)
		}
	}
}
