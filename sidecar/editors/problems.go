package editors

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Problems are the diagnostics that editors report by themselves, from their own extensions. They count where none of our servers covers
// a file, and are marked as the editor's. It is safe for concurrent use.
type Problems struct {
	mu   sync.Mutex
	said map[string]*editorWord // by path; guarded by mu
	news chan struct{}          // closed and replaced when something is said; guarded by mu
}

// editorWord is what an editor says of one file. It is copied out under Problems.mu; its lists are replaced, never written to, so a copy
// may be read without the lock.
type editorWord struct {
	version *int32 // of the buffer; nil when it does not say
	items   []change.Problem
	before  []change.Problem // what was said of an older version
	// nth counts the reports of this file, to tell a new report from an old one where the editor names no version.
	nth int
}

// NewProblems knows of no file yet.
func NewProblems() *Problems {
	return &Problems{said: map[string]*editorWord{}, news: make(chan struct{})}
}

// editorName marks the editor's problems.
const editorName = "editor"

// DidChange replaces what the editor says of one file, and wakes those who wait for it. Ranges come as LSP has them, from
// 0 and in UTF-16 units; they are kept from 1.
func (e *Problems) DidChange(p protocol.EditorDiagnostics) {
	path, ok := URIPath(p.URI)
	if !ok {
		return
	}
	items := editorItems(path, p.Diagnostics)
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.said[path]
	if w == nil {
		w = &editorWord{}
		e.said[path] = w
	}
	// The same version again is more about the same text, so before stays that of the text before.
	if w.version == nil || p.Version == nil || *w.version != *p.Version {
		w.before = w.items
	}
	w.version, w.items = p.Version, items
	w.nth++
	close(e.news)
	e.news = make(chan struct{})
}

// editorItems are an editor's diagnostics as problems of Pillion: LSP counts lines and characters from 0, a Problem from 1.
func editorItems(path string, list []protocol.FileDiagnostic) []change.Problem {
	items := make([]change.Problem, 0, len(list))
	for _, d := range list {
		items = append(items, change.Problem{Path: path, Line: int(d.Range.Start.Line) + 1, Column: int(d.Range.Start.Character) + 1, EndLine: int(d.Range.End.Line) + 1, EndColumn: int(d.Range.End.Character) + 1,
			Severity: change.SeverityOf(int(d.Severity)), Code: d.Code, Source: strings.TrimSpace(d.Source + " (" + editorName + ")"), Server: editorName, Message: d.Message})
	}
	return items
}

// of is what was said of a file, if anything. news is closed with the next word about any file, so the caller looks again after it.
func (e *Problems) of(path string) (w editorWord, news <-chan struct{}, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if have := e.said[path]; have != nil {
		return *have, e.news, true
	}
	return editorWord{}, e.news, false
}

// speaks reports whether some editor has reported anything: where none does, Changed need not wait for one.
func (e *Problems) speaks() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.said) > 0
}

// paths are the files with problems below some folders.
func (e *Problems) paths(tops []string) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for path, w := range e.said {
		if len(w.items) > 0 && slices.ContainsFunc(tops, func(top string) bool { return paths.Within(top, path) }) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// TextChecker lets an editor check a text that no document has yet.
type TextChecker interface {
	// CheckText gives the problems of two texts of a file. ok is false where no editor could check them: then the lists say
	// nothing, and the absence of problems means nothing either.
	CheckText(ctx context.Context, path, before, after string) (old, new []change.Problem, ok bool)
}

// Bridge asks the language servers, and the editor where no server covers a file.
type Bridge struct {
	*lspbridge.Manager
	root    string
	buffers files.Buffers
	theirs  *Problems
	texts   TextChecker // nil: no editor checks proposals
}

// NewBridge makes the bridge of one session in the worktree whose root is given. texts may be nil.
func NewBridge(m *lspbridge.Manager, root string, buffers files.Buffers, theirs *Problems, texts TextChecker) Bridge {
	return Bridge{m, root, buffers, theirs, texts}
}

// inCopy says in a verdict why the editor's check of a proposal is never fresh.
const inCopy = "checked by the editor in a copy of the file, not in the project"

// Check is the verdict on a proposal. Files that no language server of Pillion looks at are checked by the editor that shows
// them, in hidden copies of the text before and after: a person should read of a new problem before they approve it, not
// after. Such a verdict is partial at best, because other files still see the text before. Where the editor cannot check
// either, the servers' verdict is returned as it is.
func (b Bridge) Check(ctx context.Context, proposed []lspbridge.Proposal) lspbridge.Delta {
	d := b.Manager.Check(ctx, proposed)
	if b.texts == nil {
		return d
	}
	for _, f := range proposed {
		if f.Delete || d.Certainty != change.Unavailable && b.Manager.Serves(f.Path) {
			continue
		}
		open, shown := b.buffers.Buffer(f.Path)
		if !shown {
			continue // an editor checks what it shows
		}
		before, after, ok := b.texts.CheckText(ctx, f.Path, open.Text, f.Text)
		if !ok {
			continue
		}
		// Nothing is known yet but what the editor says: the servers' reason for having no verdict no longer applies.
		if d.Certainty == change.Unavailable {
			d.Verdict = change.Verdict{Certainty: change.Partial}
		}
		introduced, fixed, same := lspbridge.DiffDiagnostics(before, after)
		d.Introduced, d.Fixed, d.Unchanged = append(d.Introduced, introduced...), append(d.Fixed, fixed...), d.Unchanged+same
		d.Certainty = change.LeastCertain(d.Certainty, change.Partial)
		if d.Reason == "" {
			d.Reason = filepath.Base(f.Path) + ": " + inCopy
		}
	}
	return d
}

// editorLate is the reason of a report when the editor has not looked at the present text yet.
const editorLate = "no language server of Pillion's covers this file, and the editor has not said what it thinks of its present text"

// word is what the editor says of a file, with its certainty: pending until the editor has checked the buffer's present version, partial
// where it names no version. ok is false where it has said nothing of the file.
func (b Bridge) word(path string) (lspbridge.FileReport, editorWord, bool) {
	w, _, ok := b.theirs.of(path)
	if !ok {
		return lspbridge.FileReport{}, w, false
	}
	r := lspbridge.FileReport{Path: path, Certainty: change.Fresh, Items: w.items}
	open, shown := b.buffers.Buffer(path)
	switch {
	case w.version == nil:
		r.Certainty, r.Reason = change.Partial, "the editor does not say which text its problems are of"
	case shown && *w.version < open.Version:
		r.Certainty, r.Reason = change.Pending, editorLate
	}
	return r, w, true
}

// Diagnostics are the problems of one file.
func (b Bridge) Diagnostics(ctx context.Context, path string) lspbridge.FileReport {
	r := b.Manager.Diagnostics(ctx, path)
	if r.Certainty != change.Unavailable {
		return r
	}
	if theirs, _, ok := b.word(path); ok {
		return theirs
	}
	return r
}

// ProjectDiagnostics are the problems of all files: the servers', and the editor's of files they say nothing of.
func (b Bridge) ProjectDiagnostics(ctx context.Context, paths ...string) []lspbridge.FileReport {
	all := b.Manager.ProjectDiagnostics(ctx, paths...)
	if len(paths) == 0 {
		paths = []string{b.root}
	}
	for _, path := range b.theirs.paths(paths) {
		if slices.ContainsFunc(all, func(r lspbridge.FileReport) bool { return r.Path == path }) {
			continue
		}
		if r := b.Manager.Diagnostics(ctx, path); r.Certainty != change.Unavailable {
			continue
		}
		if r, _, ok := b.word(path); ok {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(x, y lspbridge.FileReport) int { return strings.Compare(x.Path, y.Path) })
	return all
}

// editorWait is how long an edit waits for the editor's own checks when its context has no deadline. An extension that never checks this file
// again would otherwise hold up the turn.
const editorWait = 1500 * time.Millisecond

// Changed is the verdict on a change that was written. Where no server covers the files the editor's diagnostics are waited for, until ctx or
// editorWait ends. Files that no editor shows, or of which none has ever said anything, are left out.
func (b Bridge) Changed(ctx context.Context, changed []lspbridge.Proposal) lspbridge.Delta {
	d := b.Manager.Changed(ctx, changed)
	if d.Certainty != change.Unavailable || !b.theirs.speaks() {
		return d
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, editorWait)
		defer cancel()
	}
	out := lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	asked := false
	for _, f := range changed {
		if _, open := b.buffers.Buffer(f.Path); f.Delete || !open {
			continue // an editor checks what it shows
		}
		if _, _, ok := b.theirs.of(f.Path); !ok {
			continue // and it has no checks for this kind of file
		}
		asked = true
		r, w := b.await(ctx, f.Path)
		out.Files = append(out.Files, r)
		if r.Certainty == change.Pending {
			out.Certainty, out.Reason = r.Certainty, r.Reason
			continue
		}
		introduced, fixed, same := lspbridge.DiffDiagnostics(w.before, w.items)
		out.Introduced, out.Fixed, out.Unchanged = append(out.Introduced, introduced...), append(out.Fixed, fixed...), out.Unchanged+same
	}
	if !asked {
		return d
	}
	return out
}

// await waits until the editor has looked at the present text of a file. An editor that names no versions must speak once more than it had
// when the wait began. The report is pending when ctx ends first.
func (b Bridge) await(ctx context.Context, path string) (lspbridge.FileReport, editorWord) {
	first, _, _ := b.theirs.of(path)
	for {
		// Taken before the word is looked at: one that comes in between closes this channel, and is not missed.
		_, news, _ := b.theirs.of(path)
		r, w, _ := b.word(path)
		if r.Certainty == change.Fresh || r.Certainty == change.Partial && w.nth > first.nth {
			return r, w
		}
		select {
		case <-news:
		case <-ctx.Done():
			r.Certainty, r.Reason = change.Pending, editorLate
			return r, w
		}
	}
}
