package lspbridge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// defaultBudget is how long an edit waits for the servers when its context has no deadline. A person waits for the edit; later answers
// arrive through Options.Diagnostics.
const defaultBudget = 1500 * time.Millisecond

// budget adds defaultBudget to a context without a deadline.
func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultBudget)
}

// verdicts asks the servers about texts: of a proposal, of written files, of the project as it is.
type verdicts struct {
	*fleet
	newFiles newFiles
}

// Check returns the verdict on a proposal. Each server gets the proposed texts in its open documents, its problems are compared with those
// before, and the documents are restored in every case. The disk is not touched. It returns within ctx's deadline (1.5 s without one); a
// server that has not answered by then makes the verdict Pending.
func (v *verdicts) Check(ctx context.Context, files []Proposal) Delta {
	ctx, cancel := budget(ctx)
	defer cancel()
	ctx, end := waits(ctx, "check", len(files))
	defer end(nil)
	v.newFiles.note(files)
	d := v.askServers(ctx, files, func(ctx context.Context, c *client, files []Proposal) serverVerdict { return c.check(ctx, files) })
	v.markUnasked(ctx, &d, files, false)
	return d
}

// markUnasked lowers the certainty of a verdict where a server that was not asked uses one of the files.
func (v *verdicts) markUnasked(ctx context.Context, d *Delta, files []Proposal, written bool) {
	if d.Certainty != change.Fresh && !d.Unserved {
		return
	}
	why := v.readFromDisk(ctx, files, written)
	switch {
	case why == "":
		return
	case d.Unserved: // it matters to a server after all
		d.Unserved, d.Reason = false, why
	default:
		d.Certainty, d.Reason = change.Partial, why
	}
	for i := range d.Files {
		d.Files[i].Certainty, d.Files[i].Reason = d.Certainty, why
	}
}

// Changed tells the servers what was written, and waits for the problems of exactly those texts. The verdict compares them with what was
// known before the write; Files has all problems of the written files. Deadlines are as for Check.
func (v *verdicts) Changed(ctx context.Context, files []Proposal) Delta {
	ctx, cancel := budget(ctx)
	defer cancel()
	ctx, end := waits(ctx, "settle", len(files))
	defer end(nil)
	created := v.newFiles.take(files)
	v.mu.Lock()
	w := v.watcher
	v.mu.Unlock()
	if w != nil {
		// Else the watcher would report Pillion's own write to the servers a second time.
		w.noteOwnWrite(files)
	}
	v.tellOthers(ctx, files, created)
	d := v.askServers(ctx, files, func(ctx context.Context, c *client, files []Proposal) serverVerdict {
		return c.written(ctx, files, created)
	})
	v.markUnasked(ctx, &d, files, true)
	return d
}

// tellOthers tells the running servers that do not serve a written file of it: one may be configured by it or import it, and watcher leaves out
// what Pillion itself writes. It waits a moment until they have heard, because they may be asked about another file of the change.
func (v *verdicts) tellOthers(ctx context.Context, files []Proposal, created map[string]bool) {
	var told []*client
	order, own := v.askedAbout(files, v.slotsFor)
	for _, s := range v.running() {
		c := s.current()
		if c == nil {
			continue
		}
		var asked []Proposal
		if own[s] != nil {
			asked = questionFor(s, order, files, own)
		}
		var events []fileEvent
		for _, f := range files {
			if !slices.ContainsFunc(asked, func(a Proposal) bool { return a.Path == f.Path }) {
				events = append(events, eventOf(f, created))
			}
		}
		if len(events) > 0 {
			if s.outdate(events) {
				continue
			}
			c.disk.add(events)
			told = append(told, c)
		}
	}
	if len(told) == 0 {
		return
	}
	short, cancel := context.WithTimeout(ctx, told[0].host.baselineWait())
	defer cancel()
	for _, c := range told {
		_ = c.await(short, c.disk.isIdle)
	}
}

// eventOf is the event of a written file.
func eventOf(f Proposal, created map[string]bool) fileEvent {
	switch {
	case f.Delete:
		return fileEvent{f.Path, 3}
	case created[f.Path]:
		return fileEvent{f.Path, 1}
	}
	return fileEvent{f.Path, 2}
}

// newFiles are the proposed files that did not exist when they were checked. After the write this cannot be seen any more, but the servers
// must be told "created" instead of "changed".
type newFiles struct {
	mu    sync.Mutex
	paths map[string]bool // guarded by mu
}

// maxNewFiles bounds the memory for proposals that were never written. Beyond it all are forgotten, and a server is told "changed".
const maxNewFiles = 10_000

// note records which of the proposed files do not exist.
func (n *newFiles) note(files []Proposal) {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); errors.Is(err, os.ErrNotExist) && !f.Delete {
			n.mu.Lock()
			if n.paths == nil || len(n.paths) > maxNewFiles {
				n.paths = map[string]bool{}
			}
			n.paths[f.Path] = true
			n.mu.Unlock()
		}
	}
}

// take returns which of the written files were new, and forgets them.
func (n *newFiles) take(files []Proposal) map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	created := map[string]bool{}
	for _, f := range files {
		created[f.Path] = n.paths[f.Path]
		delete(n.paths, f.Path)
	}
	return created
}

// askServers asks the servers of the files concurrently and merges their answers.
func (v *verdicts) askServers(ctx context.Context, files []Proposal, ask func(context.Context, *client, []Proposal) serverVerdict) Delta {
	v.flushIfBusy(ctx)
	order, own := v.askedAbout(files, v.serversOf)
	if len(order) == 0 {
		return Delta{Verdict: change.Verdict{Certainty: change.Unavailable, Unserved: true, Reason: "no language server for " + kinds(files)}}
	}
	parts := make([]serverVerdict, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		// Concurrently: the slowest server decides, not the sum.
		wg.Go(func() {
			// After a crash the verdict of the first run is dropped: its documents are gone.
			for range 2 { // after a crash the restarted server is asked once more
				c, err := s.get(ctx)
				if err != nil {
					parts[i] = serverVerdict{state: failState(err), reason: err.Error()}
					return
				}
				if parts[i] = ask(ctx, c, questionFor(s, order, files, own)); parts[i].state != change.Pending || !c.dead() {
					return // the answer is valid even if the server ends after it
				}
			}
		})
	}
	wg.Wait()
	for i, s := range order {
		// A foreign file is there for what imports it; its own server knows what is wrong in it.
		foreign := func(p change.Problem) bool {
			return !own[s][p.Path] && slices.ContainsFunc(files, func(f Proposal) bool { return f.Path == p.Path })
		}
		parts[i].introduced, parts[i].fixed = slices.DeleteFunc(parts[i].introduced, foreign), slices.DeleteFunc(parts[i].fixed, foreign)
	}
	return merge(files, order, parts)
}

// askedAbout returns the servers of some files, and which of the files each of them serves.
func (v *verdicts) askedAbout(files []Proposal, serversOf func(path string) []*slot) (order []*slot, own map[*slot]map[string]bool) {
	own = map[*slot]map[string]bool{}
	for _, f := range files {
		for _, s := range serversOf(f.Path) {
			if own[s] == nil {
				order, own[s] = append(order, s), map[string]bool{}
			}
			own[s][f.Path] = true
		}
	}
	return order, own
}

// questionFor returns what a server is asked about in one question, because files may depend on each other: its own files, and those of the same
// row's servers for other roots, such as a module that its own module replaces by a folder.
func questionFor(s *slot, order []*slot, files []Proposal, own map[*slot]map[string]bool) []Proposal {
	return slices.DeleteFunc(slices.Clone(files), func(f Proposal) bool {
		return !slices.ContainsFunc(order, func(o *slot) bool { return o.spec.ID == s.spec.ID && own[o][f.Path] })
	})
}

// kinds lists the kinds of files that have no server, by extension, for the reason of a verdict.
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

// failState returns the certainty after a server gave no answer: Pending when the answer may still come.
func failState(err error) change.Certainty {
	var gone unavailable
	if errors.As(err, &gone) || errors.Is(err, errMute) {
		return change.Unavailable
	}
	return change.Pending
}

// merge combines the servers' answers. The verdict is as certain as the least certain of them. A server that is unavailable makes it
// Partial; it is Unavailable only when all are.
func merge(files []Proposal, order []*slot, parts []serverVerdict) Delta {
	d := Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	var reasons, silent []string
	missing := 0
	for i, p := range parts {
		if p.state == change.Unavailable && (order[i].spec.Extra || p.mute) {
			missing++ // a linter that is not installed, or a server without diagnostics: the others' answers are complete without it
			if p.mute && !slices.Contains(silent, p.reason) {
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
		// Two servers may report the same problem; unique keeps one.
		for _, p := range parts {
			r.Items = append(r.Items, p.files[f.Path].items()...)
			r.Version = max(r.Version, p.versions[f.Path])
		}
		r.Items = unique(r.Items)
		d.Files = append(d.Files, r)
	}
	return d
}

// Busy returns what the servers for some files are doing instead of answering: starting, loading, indexing. It is "" when no server says
// so. It does not block.
func (v *verdicts) Busy(files []Proposal) string {
	var out []string
	seen := map[*slot]bool{}
	for _, f := range files {
		for _, s := range v.serversOf(f.Path) {
			if what := s.busy(); !seen[s] && what != "" {
				out = append(out, what)
			}
			seen[s] = true
		}
	}
	return strings.Join(out, "; ")
}

// busy returns what the server is doing; "" when it does not say.
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

// pathsOf are the paths of a proposal, each once.
func pathsOf(files []Proposal) []string {
	out := make([]string, 0, len(files))
	for _, f := range files {
		if !slices.Contains(out, f.Path) {
			out = append(out, f.Path)
		}
	}
	return out
}
