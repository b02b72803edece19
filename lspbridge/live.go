package lspbridge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// feedDelay is how long changed files are collected before a report: a server publishes many files within milliseconds.
const feedDelay = 50 * time.Millisecond

// liveFeed collects the files whose problems have changed, and reports them together.
type liveFeed struct {
	report func(paths []string) (later bool) // later asks for the same report again soon

	mu    sync.Mutex
	paths map[string]bool // guarded by mu; nil when no report is planned
}

// add schedules a report of these files. A nil feed does nothing: Options.Diagnostics is not set.
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

// flush reports the collected files, and schedules them again when report asks for that.
func (n *liveFeed) flush() {
	n.mu.Lock()
	paths := slices.Sorted(maps.Keys(n.paths))
	n.paths = nil
	n.mu.Unlock()
	if n.report(paths) {
		n.add(paths...)
	}
}

// reportFeed reports files to the manager. While a proposal is being checked it asks to be called later: the problems of a proposal are not
// the project's.
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

// liveReports reports changed problems to Options.Diagnostics, for each file those of all servers together.
type liveReports struct {
	fleet *fleet

	// mu guards reported and is held while Options.Diagnostics is called: calls must not overlap, and an older state must not be reported
	// after a newer one. It is acquired before any other lock.
	mu       sync.Mutex
	reported map[string]FileReport // the last report of each file that has problems
}

// reportChanged reports the files whose problems or certainty differ from the last report.
func (l *liveReports) reportChanged(paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported == nil {
		l.reported = map[string]FileReport{}
	}
	for _, p := range paths {
		r := l.fleet.presentProblems(p)
		before := l.reported[p]
		// A changed certainty is not reported for a file that has no problems before and after.
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

// presentProblems returns what all running servers have reported about a file so far, outside a proposal. It sends no request.
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
