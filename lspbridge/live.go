package lspbridge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// liveEvery is how long changes are collected before they are reported: a server publishes many files
// within milliseconds.
const liveEvery = 50 * time.Millisecond

// news collects the files whose problems have changed, and reports them together.
type news struct {
	tell func(paths []string) (later bool) // later: not now, ask again soon

	mu    sync.Mutex
	paths map[string]bool // guarded by mu; nil when no telling is planned
}

// add plans a report of these files.
func (n *news) add(paths ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(paths) == 0 {
		return
	}
	if n.paths == nil {
		n.paths = map[string]bool{}
		time.AfterFunc(liveEvery, n.flush)
	}
	for _, p := range paths {
		n.paths[p] = true
	}
}

// flush reports the collected files, and plans them again when the client asks for that.
func (n *news) flush() {
	n.mu.Lock()
	paths := slices.Sorted(maps.Keys(n.paths))
	n.paths = nil
	n.mu.Unlock()
	if n.tell(paths) {
		n.add(paths...)
	}
}

// tellOf plans a report on these files, if somebody follows the problems live.
func (c *client) tellOf(paths ...string) {
	if c.host.changed != nil {
		c.news.add(paths...)
	}
}

// tellNews reports files to the manager. While a proposal is being checked it asks to be called later: the
// problems of a proposal are not the project's.
func (c *client) tellNews(paths []string) (later bool) {
	if c.dead() {
		return false
	}
	if c.ledger.overlaid() && !(c.progress.allEnded() && c.promote()) {
		return true
	}
	c.host.changed(paths)
	return false
}

// certainty is how certain the present problems of a file are.
func (c *client) certainty(path string) change.Certainty {
	final := false
	if c.way() == byMarker {
		final = c.progress.allEnded()
	} else {
		doc, open := c.docs.get(path)
		seq, _ := c.ledger.now()
		final = c.ledger.truth(path).isFinal(doc, open, seq)
	}
	if final {
		return change.Fresh
	}
	return change.Pending
}

// live reports files whose problems have changed, with the problems of all servers together. telling is
// held throughout: otherwise an older state could be reported after a newer one.
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
			if f := c.ledger.truth(p); f != nil {
				r.Items = append(r.Items, f.items()...)
				r.Certainty = change.LeastCertain(r.Certainty, c.certainty(p))
			}
			if doc, open := c.docs.get(p); open {
				r.Version = max(r.Version, doc.version)
			}
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
