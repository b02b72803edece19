package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
)

// check is the transaction of a proposal on one server: get the problems before, lay the proposed texts
// over the documents, wait, compare, and put the documents back. The order matters: uses are looked for
// before the overlay, and undo runs before anything can return.
func (c *client) check(ctx context.Context, files []Proposal) (v serverVerdict) {
	if c.commanded() {
		return serverVerdict{state: change.Pending, reason: c.id + " runs a command that waits for the decision on this edit"}
	}
	if c.readsDisk() {
		return c.publishedVerdict()
	}
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		return serverVerdict{state: change.Pending, reason: err.Error()}
	}
	// From here to release the documents belong to this proposal.
	paths := pathsOf(files)
	c.sync(c.withBuffers(paths))
	// The problems before, with the final texts and unsaved buffers.
	scope, used, err := c.baseline(ctx, files, paths)
	if err != nil {
		release()
		return serverVerdict{state: failState(err), mute: errors.Is(err, errMute), reason: c.why(ctx, err), files: c.ledger.snapshot()}
	}
	before := c.ledger.snapshot()
	undo := c.applyOverlay(files)
	c.dependents.recompile(used.files)
	// Whatever comes of the wait, the snapshot is taken and the documents are put back.
	err = c.settle(ctx, scope)
	if err == nil && used.incomplete == nil {
		used.incomplete = c.dependents.hidden(ctx, used)
	}
	after := c.ledger.snapshot()
	v = c.compare(before, after, paths)
	v.versions = c.docs.versionsOf(paths)
	// Put the documents back before anything else, also after a failed wait: a proposal that stays in the
	// server would be reported as the project's.
	undo()
	c.dependents.recompile(used.files)
	release()
	if err != nil {
		v.state, v.mute, v.reason = failState(err), errors.Is(err, errMute), c.why(ctx, err)
		// What was compared is half of a check, and would read like all of it.
		v.introduced, v.fixed, v.unchanged = nil, nil, 0
		return v
	}
	c.markUnseen(&v, files)
	if used.incomplete != nil && v.state == change.Fresh {
		v.state, v.reason = change.Partial, c.id+" "+used.incomplete.Error()
	}
	return v
}

// baseline makes sure that the problems before the proposal are final, in its files and in those that use
// what it changes. Without that, old problems would count as introduced.
func (c *client) baseline(ctx context.Context, files []Proposal, paths []string) (scope []string, used uses, err error) {
	scope = c.scope(paths, nil)
	if !c.ledger.settled() { // a server that is still loading has other things to do than to look for uses
		if err := c.settle(ctx, c.docs.among(scope)); err != nil {
			return nil, used, err
		}
	}
	used = c.dependents.find(ctx, files)
	if len(used.files) == 0 {
		return scope, used, nil
	}
	told := c.sync(used.files)
	scope = c.scope(paths, used.files)
	if told || !c.ledger.settled() {
		err = c.settle(ctx, c.docs.among(scope))
	}
	return scope, used, err
}

// applyOverlay begins the overlay, new files first, so that files that import them find them. The caller must call
// undo, which puts every document back as it was.
func (c *client) applyOverlay(files []Proposal) (undo func()) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.openOrder(a) - c.openOrder(b) })
	base := map[string]*string{} // nil: it was not open
	var touched []string
	seq := c.ledger.begin()
	for _, f := range files {
		if _, seen := base[f.Path]; !seen {
			base[f.Path] = nil
			if doc, open := c.docs.get(f.Path); open {
				base[f.Path] = &doc.text
			}
		}
		text := f.Text
		if f.Delete {
			if base[f.Path] == nil {
				continue
			}
			text = c.deletedText(*base[f.Path])
		}
		touched = append(touched, f.Path)
		c.docs.put(f.Path, text)
	}
	return func() {
		from, _ := c.ledger.state()
		for _, f := range files {
			t, ok := base[f.Path]
			if !ok {
				continue
			}
			delete(base, f.Path)
			if t == nil {
				c.docs.close(f.Path)
			} else {
				c.docs.put(f.Path, *t)
			}
		}
		if c.mode() == byMarker {
			c.ledger.rolledBack() // settleMarker promotes the reports when they are final
		} else {
			c.ledger.end(seq, from, c.docs.copies(touched))
		}
	}
}

// openOrder orders the files of a proposal: new ones, changed ones, deletions. An import is then resolved before what uses it is looked at.
func (c *client) openOrder(f Proposal) int {
	switch {
	case f.Delete:
		return 2
	case !c.docs.has(f.Path):
		return 0
	}
	return 1
}

// deletedText is the text that stands for a deleted file, since LSP cannot express that an open document is
// gone.
func (c *client) deletedText(old string) string {
	if c.spec.hooks.deletedText != nil {
		return c.spec.hooks.deletedText(old)
	}
	return c.spec.Quirks.EmptyText
}

// markUnseen lowers the certainty where the server could not see something of the proposal, and removes the
// errors that it reports only for that reason.
func (c *client) markUnseen(v *serverVerdict, files []Proposal) {
	var unseen []string
	deleted := false
	for _, f := range files {
		deleted = deleted || f.Delete
		if f.Delete {
			continue
		}
		_, err := os.Lstat(f.Path)
		_, errDir := os.Lstat(filepath.Dir(f.Path))
		switch q := c.spec.Quirks.BlindToNew; {
		case q == "file" && err != nil, q == "dir" && errDir != nil:
			unseen = append(unseen, f.Path)
		}
	}
	if deleted {
		v.state, v.reason = change.Partial, "deleted files were checked as empty ones"
	}
	if len(unseen) == 0 {
		return
	}
	v.state, v.reason = change.Partial, fmt.Sprintf("%s sees new files only once they are written", c.id)
	v.introduced = slices.DeleteFunc(v.introduced, func(d change.Problem) bool { return missesModule(d, unseen) })
}

// missesModule reports an error that one of these files cannot be imported. It goes by the words of the TypeScript server and of pyright,
// and by the file's name in the message; for index and __init__ that is the folder's.
func missesModule(d change.Problem, files []string) bool {
	msg := strings.ToLower(d.Message)
	if !strings.Contains(msg, "cannot find module") && !strings.Contains(msg, "could not be resolved") && !strings.Contains(msg, "unknown import symbol") {
		return false
	}
	return slices.ContainsFunc(files, func(p string) bool {
		base := filepath.Base(p)
		stem := strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))
		if stem == "__init__" || stem == "index" {
			stem = strings.ToLower(filepath.Base(filepath.Dir(p)))
		}
		return strings.Contains(msg, stem)
	})
}

// compare makes a server's verdict of two snapshots. Files that the server has not reported on in between
// have the same value in both and are skipped.
func (c *client) compare(before, after map[string]*fileDiags, paths []string) serverVerdict {
	v := serverVerdict{state: change.Fresh, files: after}
	seen := map[string]bool{}
	for _, files := range []map[string]*fileDiags{after, before} {
		for p := range files {
			if seen[p] || before[p] == after[p] && !slices.Contains(paths, p) {
				continue
			}
			seen[p] = true
			in, fixed, same := DiffDiagnostics(before[p].items(), after[p].items())
			v.introduced = append(v.introduced, in...)
			v.fixed = append(v.fixed, fixed...)
			if slices.Contains(paths, p) { // of other files a server may or may not have spoken again
				v.unchanged += same
			}
		}
	}
	v.fixed = stillKnown(v.introduced, v.fixed)
	return v
}

// stillKnown are those of the fixed problems that really are fixed. A server that finds an error skips its
// further analyses of that code: warnings that vanish with a new error are unknown, not fixed. When it
// cannot even parse a file, the errors in its folder (often a package) are unknown too.
func stillKnown(introduced, fixed []change.Problem) []change.Problem {
	broken, unparsed := false, map[string]bool{}
	for _, p := range introduced {
		broken = broken || p.IsError()
		if isSyntax(p) {
			unparsed[filepath.Dir(p.Path)] = true
		}
	}
	if !broken {
		return fixed
	}
	return slices.DeleteFunc(slices.Clone(fixed), func(p change.Problem) bool {
		return !p.IsError() || unparsed[filepath.Dir(p.Path)] && !isSyntax(p)
	})
}

// isSyntax reports a syntax error, after which servers analyse no further. gopls marks them by source,
// TypeScript by codes from 1000 to 1999; for others the wording decides.
func isSyntax(p change.Problem) bool {
	if !p.IsError() {
		return false
	}
	switch p.Server {
	case "gopls":
		return p.Source == "syntax" || p.Source == "go list"
	case typescriptID:
		return len(p.Code) == 4 && p.Code[0] == '1'
	}
	m := strings.ToLower(p.Message)
	return strings.Contains(m, "expected") || strings.Contains(m, "syntax") || strings.Contains(m, "unterminated") || strings.Contains(m, "unclosed")
}
