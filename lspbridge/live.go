package lspbridge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// feedDelay is how long changes are collected before they are reported: a server publishes many files
// within milliseconds.
const feedDelay = 50 * time.Millisecond

// liveFeed collects the files whose problems have changed, and reports them together.
type liveFeed struct {
	report func(paths []string) (later bool) // later: not now, ask again soon

	mu    sync.Mutex
	paths map[string]bool // guarded by mu; nil when no report is planned
}

// add plans a report of these files. A nil feed does nothing: Options.Diagnostics is not set.
func (n *liveFeed) add(paths ...string) {
	if n == nil || len(paths) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paths == nil {
		n.paths = map[string]bool{}
		time.AfterFunc(feedDelay, n.flush)
	}
	for _, p := range paths {
		n.paths[p] = true
	}
}

// flush reports the collected files, and plans them again when the client asks for that.
func (n *liveFeed) flush() {
	n.mu.Lock()
	paths := slices.Sorted(maps.Keys(n.paths))
	n.paths = nil
	n.mu.Unlock()
	if n.report(paths) {
		n.add(paths...)
	}
}

// reportFeed reports files to the manager. While a proposal is being checked it asks to be called later: the
// problems of a proposal are not the project's.
func (c *client) reportFeed(paths []string) (later bool) {
	if c.dead() {
		return false
	}
	if c.ledger.overlaid() && !(c.progress.allEnded() && c.promote()) {
		return true
	}
	c.host.changed(paths)
	return false
}

// liveReports passes changed problems to Options.Diagnostics, those of all servers for a file together.
type liveReports struct {
	fleet *fleet

	// mu guards reported and is held while Options.Diagnostics is called: calls must not overlap, and an older state must not be
	// reported after a newer one. It is taken before any other lock.
	mu       sync.Mutex
	reported map[string]FileReport // what it got last; files without problems are not kept
}

// reportChanged reports those of the files whose problems or their certainty differ from the last report.
func (l *liveReports) reportChanged(paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported == nil {
		l.reported = map[string]FileReport{}
	}
	for _, p := range paths {
		r := l.fleet.presentProblems(p)
		before := l.reported[p]
		// The certainty of a file without problems, before and after, is not worth a report.
		same := before.Certainty == r.Certainty || len(before.Items)+len(r.Items) == 0
		same = same && sameProblems(before.Items, r.Items)
		l.reported[p] = r
		if len(r.Items) == 0 {
			delete(l.reported, p)
		}
		if !same {
			l.fleet.o.Diagnostics(r)
		}
	}
}

// presentProblems is what all running servers have said of a file so far, without any proposal. It asks none.
func (f *fleet) presentProblems(path string) FileReport {
	r := FileReport{Path: path, Certainty: change.Fresh}
	for _, s := range f.running() {
		c := s.current()
		if c == nil {
			continue
		}
		if known := c.ledger.project(path); known != nil {
			r.Items = append(r.Items, known.items()...)
			r.Certainty = change.LeastCertain(r.Certainty, c.certainty(path))
		}
		if doc, open := c.docs.get(path); open {
			r.Version = max(r.Version, doc.version)
		}
	}
	if r.Certainty != change.Fresh {
		r.Reason = "being checked"
	}
	r.Items = unique(r.Items)
	return r
}
