package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// defaultBudget is how long an edit waits when its context has no deadline.
const defaultBudget = 1500 * time.Millisecond

func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultBudget)
}

// serverVerdict is one server's part of a Delta.
type serverVerdict struct {
	state      change.Certainty
	mute       bool // it is there, but publishes nothing of these files
	reason     string
	introduced []change.Problem
	fixed      []change.Problem
	unchanged  int
	files      map[string]*fileDiags
	versions   map[string]int32
}

// Check says what a proposal would do to the project's problems: its texts are laid over the servers' documents, the
// problems compared, and the documents put back, whatever happens. Nothing touches the disk. It returns within ctx's
// deadline (1.5 s without one); a server that is still starting or thinking then makes the answer Pending.
func (m *Manager) Check(ctx context.Context, files []Proposal) Delta {
	ctx, cancel := budget(ctx)
	defer cancel()
	ctx, end := waits(ctx, "check", len(files))
	defer end(nil)
	m.noteNew(files)
	return m.each(ctx, files, func(ctx context.Context, c *client, files []Proposal) serverVerdict { return c.check(ctx, files) })
}

// Changed tells the servers what is now on disk (or in the editor) and waits for the problems of exactly that. The
// delta is against what was known before; Files holds all problems of the changed files.
func (m *Manager) Changed(ctx context.Context, files []Proposal) Delta {
	ctx, cancel := budget(ctx)
	defer cancel()
	ctx, end := waits(ctx, "settle", len(files))
	defer end(nil)
	created := map[string]bool{}
	m.mu.Lock()
	for _, f := range files {
		created[f.Path] = m.newFiles[f.Path]
		delete(m.newFiles, f.Path)
	}
	w := m.watcher
	m.mu.Unlock()
	if w != nil {
		w.own(files)
	}
	d := m.each(ctx, files, func(ctx context.Context, c *client, files []Proposal) serverVerdict {
		return c.written(ctx, files, created)
	})
	return d
}

// noteNew remembers which proposed files do not exist yet.
func (m *Manager) noteNew(files []Proposal) {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); errors.Is(err, os.ErrNotExist) && !f.Delete {
			m.mu.Lock()
			if len(m.newFiles) > 10_000 {
				clear(m.newFiles)
			}
			m.newFiles[f.Path] = true
			m.mu.Unlock()
		}
	}
}

// each asks every server concerned, side by side, and puts the answers together.
func (m *Manager) each(ctx context.Context, files []Proposal, ask func(context.Context, *client, []Proposal) serverVerdict) Delta {
	m.flushIfBusy(ctx)
	groups := map[*slot][]Proposal{}
	var order []*slot
	for _, f := range files {
		for _, s := range m.slotsFor(f.Path) {
			if groups[s] == nil {
				order = append(order, s)
			}
			groups[s] = append(groups[s], f)
		}
	}
	if len(order) == 0 {
		return Delta{Verdict: change.Verdict{Certainty: change.Unavailable, Unserved: true, Reason: "no language server for " + kinds(files)}}
	}
	parts := make([]serverVerdict, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		wg.Go(func() {
			for range 2 { // a server that dies meanwhile gets a second chance
				c, err := s.get(ctx)
				if err != nil {
					parts[i] = serverVerdict{state: failState(err), reason: err.Error()}
					return
				}
				if parts[i] = ask(ctx, c, groups[s]); parts[i].state != change.Pending || !c.dead() {
					return // an answer that was given stands, whatever became of the server since
				}
			}
		})
	}
	wg.Wait()
	return merge(files, order, parts)
}

func kinds(files []Proposal) string {
	var out []string
	for _, f := range files {
		k := filepath.Ext(f.Path)
		if k == "" {
			k = filepath.Base(f.Path)
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return strings.Join(out, ", ")
}

func failState(err error) change.Certainty {
	var gone unavailable
	if errors.As(err, &gone) || errors.Is(err, errMute) {
		return change.Unavailable
	}
	return change.Pending
}

// merge is as certain as the least certain server; one that is not there (of several) leaves the answer partial.
func merge(files []Proposal, order []*slot, parts []serverVerdict) Delta {
	d := Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	var reasons, silent []string
	missing := 0
	for i, p := range parts {
		if p.state == change.Unavailable && (order[i].spec.Extra || p.mute) {
			missing++ // nobody's loss: a linter that is not installed, a server for names alone beside one for problems
			if p.mute {
				silent = append(silent, p.reason)
			}
			continue
		}
		if p.reason != "" && !slices.Contains(reasons, p.reason) {
			reasons = append(reasons, p.reason)
		}
		switch {
		case p.state == change.Unavailable:
			missing++
			d.Certainty = change.LeastCertain(d.Certainty, change.Partial)
		default:
			d.Certainty = change.LeastCertain(d.Certainty, p.state)
		}
		d.Introduced = append(d.Introduced, p.introduced...)
		d.Fixed = append(d.Fixed, p.fixed...)
		d.Unchanged += p.unchanged
	}
	if missing == len(parts) {
		d.Certainty = change.Unavailable
		reasons = append(reasons, silent...)
	}
	d.Reason = strings.Join(reasons, "; ")
	d.Introduced, d.Fixed = unique(d.Introduced), unique(d.Fixed)
	for _, f := range files {
		r := FileReport{Path: f.Path, Certainty: d.Certainty, Reason: d.Reason}
		for _, p := range parts {
			r.Items = append(r.Items, p.files[f.Path].items()...)
			r.Version = max(r.Version, p.versions[f.Path])
		}
		r.Items = unique(r.Items)
		d.Files = append(d.Files, r)
	}
	return d
}

// Busy says what the servers for some files are doing instead of answering: starting, loading, indexing. "" when none of them
// says. It waits for nothing.
func (m *Manager) Busy(files []Proposal) string {
	var out []string
	seen := map[*slot]bool{}
	for _, f := range files {
		for _, s := range m.slotsFor(f.Path) {
			if what := s.busy(); !seen[s] && what != "" {
				out = append(out, what)
			}
			seen[s] = true
		}
	}
	return strings.Join(out, "; ")
}

// busy is what the server is doing; "" when it does not say.
func (s *slot) busy() string {
	s.mu.Lock()
	state, c := s.state, s.cur
	s.mu.Unlock()
	switch {
	case state == starting || state == waiting:
		return s.name() + " is starting"
	case state != running || s.spec.Extra:
		return ""
	}
	if doing := c.doing(); doing != "" {
		return s.name() + " is still busy: " + doing
	}
	return ""
}

// doing is what the server says it is busy with; "" when nothing keeps it from answering.
func (c *client) doing() string {
	title := c.progress.loading()
	if title == "" && c.spec.Quirks.EndMarker && !c.progress.loaded() {
		title = "loading the workspace"
	}
	return title
}

// why turns the error of a wait into what a person reads.
func (c *client) why(ctx context.Context, err error) string {
	title := c.doing()
	switch {
	case errors.Is(err, errGone):
		return c.id + " stopped and is being started again"
	case errors.Is(err, errQuiet):
		return c.id + " " + errQuiet.Error()
	case errors.Is(err, errMute):
		return c.id + " " + errMute.Error()
	case c.isFrozen():
		return c.id + " does not answer"
	case ctx.Err() != nil && title != "":
		return fmt.Sprintf("%s is still busy: %s", c.id, title)
	case ctx.Err() != nil:
		return c.id + " has not answered yet"
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // servers send whole stacks
	return c.id + ": " + text
}

// related are documents a change may touch beside its own and those known to depend on it: what is open, for servers
// that only speak when asked.
func (c *client) related(paths []string) []string {
	if c.way() == byMarker {
		return slices.Clone(paths)
	}
	others := slices.DeleteFunc(c.docs.paths(), func(p string) bool { return slices.Contains(paths, p) })
	return slices.Concat(paths, others[:min(len(others), max(0, maxRelated-len(paths)))])
}

// maxRelated is how many files are asked about for one change, beside its own.
const maxRelated = 20

// scope is the files a server must be asked about or waited for.
func (c *client) scope(paths, dependents []string) []string {
	paths = slices.Concat(paths, dependents)
	if c.way() == byPush {
		if !c.spec.Quirks.WantDiagnostics {
			paths = paths[:len(paths)-len(dependents)] // nothing makes it publish others in a known time
		}
		return paths
	}
	return c.related(paths)
}

func pathsOf(files []Proposal) []string {
	out := make([]string, 0, len(files))
	for _, f := range files {
		if !slices.Contains(out, f.Path) {
			out = append(out, f.Path)
		}
	}
	return out
}
