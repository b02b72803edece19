package agent

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// DiffStat counts changed files and lines as a diff does. Hunks that the person undid later are included.
type DiffStat struct {
	Files     int `json:"files"`
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
	// Paths are the changed files of one turn, at most maxPaths. sessionDiff uses them to count a file that several turns changed once.
	Paths []string `json:"paths,omitempty"`
}

// maxPaths limits the paths in a turn's end event, because that is stored.
const maxPaths = 1000

// String returns one line for a person: "2 files changed, +10 −3 lines".
func (d DiffStat) String() string {
	return fmt.Sprintf("%s changed, +%d −%d lines", textutil.Plural(d.Files, "file"), d.Additions, d.Deletions)
}

// sessionDiff sums up the turns of a conversation. The zero value counts nothing.
type sessionDiff struct {
	sum   DiffStat
	paths map[string]bool
}

// add adds a turn; nil means that it changed nothing. A file that two turns changed counts once.
func (d *sessionDiff) add(turn *DiffStat) {
	if turn == nil {
		return
	}
	if d.paths == nil {
		d.paths = map[string]bool{}
	}
	for _, p := range turn.Paths {
		d.paths[p] = true
	}
	// max of both counts: a turn with more than maxPaths files has fewer paths than files.
	d.sum.Files = max(len(d.paths), d.sum.Files, turn.Files)
	d.sum.Additions += turn.Additions
	d.sum.Deletions += turn.Deletions
}

// stat returns a copy of the sum; nil when nothing was changed.
func (d *sessionDiff) stat() *DiffStat {
	if d.sum.Files == 0 {
		return nil
	}
	sum := d.sum
	return &sum
}

// diffStats collects the change sets that were applied in a turn, including its sub-agents'. A set is reported more than once (applied, then
// with its verdict); the last report counts.
type diffStats struct {
	mu  sync.Mutex
	set map[string]map[string][2]int // guarded by mu; by change set id, then path: lines added, lines deleted
}

// note records an applied change set. It ignores an undo, which would count the same lines twice.
func (s *diffStats) note(state change.State, set *change.Set) {
	if state != change.Applied || set.Back() {
		return
	}
	id, files := set.Lines()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[string]map[string][2]int{}
	}
	s.set[id] = files
}

// take returns the sum of the sets since the last call, and resets it; nil when nothing was changed.
func (s *diffStats) take() *DiffStat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d DiffStat
	seen := map[string]bool{}
	for _, files := range s.set {
		for path, n := range files {
			if !seen[path] {
				seen[path] = true
				if d.Files++; len(d.Paths) < maxPaths {
					d.Paths = append(d.Paths, path)
				}
			}
			d.Additions += n[0]
			d.Deletions += n[1]
		}
	}
	s.set = nil
	if d.Files == 0 {
		return nil
	}
	slices.Sort(d.Paths)
	return &d
}
