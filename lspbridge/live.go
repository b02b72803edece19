package lspbridge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// liveEvery is how long changes of problems are gathered before somebody is told.
const liveEvery = 50 * time.Millisecond

// news gathers the files of which something new is known, so that what comes in quick succession is told once.
type news struct {
	tell func(paths []string) (later bool) // later: not now, ask again soon

	mu    sync.Mutex
	paths map[string]bool // guarded by mu; nil when no telling is planned
}

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

func (n *news) flush() {
	n.mu.Lock()
	paths := slices.Sorted(maps.Keys(n.paths))
	n.paths = nil
	n.mu.Unlock()
	if n.tell(paths) {
		n.add(paths...)
	}
}

// tellOf notes that what is known of files has changed, where somebody wants to hear of it.
func (c *client) tellOf(paths ...string) {
	if c.host.changed != nil {
		c.news.add(paths...)
	}
}

// tellNews tells the manager of files, unless a proposal is being checked: its problems are nobody's yet.
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

// certainty is how certain the present word on a file is.
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
