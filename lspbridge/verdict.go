package lspbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
)

// serverVerdict is one server's part of a Delta.
type serverVerdict struct {
	state      change.Certainty // of this server's answer
	mute       bool             // the server runs, but publishes nothing about these files
	reason     string
	introduced []change.Problem
	fixed      []change.Problem
	unchanged  int                   // problems that were there before and after
	files      map[string]*fileDiags // the problems after the change
	versions   map[string]int32
}

// check checks a proposal on one server: get the problems before, lay the proposed texts over the documents, wait, compare, and restore the
// documents. The order matters: uses are searched before the overlay, and undo runs before anything can return.
func (c *client) check(ctx context.Context, files []Proposal) (v serverVerdict) {
	if c.commands.busy() {
		return serverVerdict{state: change.Pending, reason: c.id + " runs a command that waits for the decision on this edit"}
	}
	if c.readsDisk() {
		return c.publishedVerdict()
	}
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		return serverVerdict{state: change.Pending, reason: err.Error()}
	}
	// Until release the documents belong to this proposal.
	paths := pathsOf(files)
	opened := c.docs.unopened(paths)
	c.sync(c.withBuffers(paths))
	// Get the problems before, of the files' present texts, unsaved buffers included.
	scope, used, err := c.baseline(ctx, files, paths, opened)
	if err != nil {
		release()
		return serverVerdict{state: failState(err), mute: errors.Is(err, errMute), reason: c.why(ctx, err), files: c.ledger.snapshot()}
	}
	before := c.ledger.snapshot()
	unknown := c.dependents.unreported(before, paths)
	made := c.docs.unopened(paths)
	undo := c.applyOverlay(files)
	c.dependents.recompile(used.files)
	// Even if the wait fails, take the snapshot and restore the documents.
	err = c.waitForNew(ctx, made, scope)
	if err == nil && used.incomplete == nil {
		used.incomplete = c.dependents.waitForReports(ctx, used.files, nil)
	}
	if err == nil && used.incomplete == nil {
		used.incomplete = c.dependents.hidden(ctx, used)
	}
	after := c.ledger.snapshot()
	for _, p := range unknown {
		after[p] = before[p]
	}
	v = compare(before, after, paths)
	v.versions = c.docs.versionsOf(paths)
	// Restore the documents before anything else, also after a failed wait: a proposal that stays in the server would be reported as the
	// project's text.
	undo()
	if err == nil {
		used.incomplete = cmp.Or(used.incomplete, c.confirm(ctx, &v, paths))
	}
	c.dependents.restore(ctx, used)
	release()
	if err != nil {
		v.state, v.mute, v.reason = failState(err), errors.Is(err, errMute), c.why(ctx, err)
		// An incomplete comparison would look like a complete one.
		v.introduced, v.fixed, v.unchanged = nil, nil, 0
		return v
	}
	c.markUnseen(&v, files, len(used.importers) > 0)
	if used.incomplete != nil && v.state == change.Fresh {
		v.state, v.reason = change.Partial, c.id+" "+used.incomplete.Error()
	}
	c.markGap(&v, before, paths)
	c.markApart(&v, paths)
	return v
}

// confirm asks again about the other files in which a proposal seems to introduce errors, now that it is taken back, and keeps only what is
// absent then. In files that import each other, a server can find another error, or the same one elsewhere, when it checks them in another order
// or has just checked something else: the problems before a proposal are those of the same state only when what it invalidates is checked again.
// An error means that this was not done in time.
func (c *client) confirm(ctx context.Context, v *serverVerdict, paths []string) error {
	mode := c.mode()
	if mode != byPull && mode != byTSServer { // the others check each file by itself, or the workspace as a whole
		return nil
	}
	var doubtful []string
	for _, p := range v.introduced {
		if p.IsError() && !slices.Contains(paths, p.Path) && !slices.Contains(doubtful, p.Path) {
			doubtful = append(doubtful, p.Path)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	if c.pullAll(ctx, doubtful, mode) != nil {
		return errUnconfirmed
	}
	again := c.ledger.snapshot()
	for _, path := range doubtful {
		introduced, fixed, _ := DiffDiagnostics(again[path].items(), v.files[path].items())
		differs := func(confirmed []change.Problem) func(change.Problem) bool {
			return func(p change.Problem) bool {
				return p.Path == path && !slices.ContainsFunc(confirmed, func(q change.Problem) bool { return samePlace(p, q) && p.Message == q.Message })
			}
		}
		v.introduced, v.fixed = slices.DeleteFunc(v.introduced, differs(introduced)), slices.DeleteFunc(v.fixed, differs(fixed))
	}
	return nil
}

// errUnconfirmed means that errors in other files may not be new. The text follows a server's name.
var errUnconfirmed = errors.New("was not asked in time whether other files had these errors before")

// baseline waits until the problems before the proposal are final, in its files and in those that use what it changes. Without that, old
// problems would count as introduced. opened are the files that were opened for this check.
func (c *client) baseline(ctx context.Context, files []Proposal, paths, opened []string) (scope []string, used uses, err error) {
	scope = c.scope(paths, nil)
	if !c.ledger.stillFinal() { // wait first: a server that is still loading would be slow to find uses
		if err := c.waitForNew(ctx, opened, c.docs.among(scope)); err != nil {
			return nil, used, err
		}
	}
	if c.dependents.sendAgain(opened) {
		if err := c.dependents.waitForPush(ctx, opened); err != nil {
			return nil, used, err
		}
	}
	searching := c.dependents.waitForFiles(ctx)
	if searching != nil && !errors.Is(searching, errSearching) {
		return nil, used, searching
	}
	used = c.dependents.find(ctx, files)
	if searching != nil {
		used.incomplete = searching
	}
	if len(used.files) == 0 && c.mode() == byMarker && !c.ledger.stillFinal() {
		err = c.waitForDiagnostics(ctx, c.docs.among(scope)) // find may have made it load another module
	}
	if len(used.files) == 0 {
		return scope, used, err
	}
	opened = c.docs.unopened(used.files)
	told := c.sync(used.files)
	scope = c.scope(paths, used.files)
	if told || !c.ledger.stillFinal() {
		err = c.waitForDiagnostics(ctx, c.docs.among(scope))
	}
	if err == nil {
		used.incomplete = cmp.Or(used.incomplete, c.dependents.waitForReports(ctx, used.files, opened))
	}
	return scope, used, err
}

// waitForNew is waitForDiagnostics after files were opened. It sends those once more that the server may not know, to a server that else says
// nothing about them.
func (c *client) waitForNew(ctx context.Context, opened, scope []string) error {
	err := c.waitForDiagnostics(ctx, scope)
	if err != nil || !c.spec.Quirks.LateNew {
		return err
	}
	unknown := slices.DeleteFunc(c.docs.among(opened), func(p string) bool { return c.before(p) && c.before(filepath.Dir(p)) })
	if len(unknown) == 0 {
		return nil
	}
	c.docs.rebuild(unknown)
	return c.waitForDiagnostics(ctx, scope)
}

// before reports whether a file or folder was as it is now when the server was started.
func (c *client) before(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.ModTime().Before(c.made)
}

// applyOverlay lays the proposal over the documents, new files first, so that files that import them find them. The caller must call undo,
// which restores every document.
func (c *client) applyOverlay(files []Proposal) (undo func()) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.docs.openOrder(a) - c.docs.openOrder(b) })
	base := map[string]*string{} // texts to restore; nil: it was not open
	var touched []string
	seq := c.ledger.begin()
	for _, f := range files {
		// Keep the first text, also when the proposal names a path twice.
		if _, seen := base[f.Path]; !seen {
			base[f.Path] = nil
			if doc, open := c.docs.get(f.Path); open {
				base[f.Path] = &doc.text
			}
		}
		text := f.Text
		if f.Delete {
			// The server cannot be shown that a file that is not open is gone.
			if base[f.Path] == nil {
				continue
			}
			text = c.spec.deletedText(*base[f.Path])
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
			c.ledger.rolledBack() // waitForMarker promotes the reports when they are final
		} else {
			c.docs.rebuild(c.ledger.end(seq, from, c.docs.copies(touched), c.docs.copies(c.docs.paths())))
		}
	}
}

// written is Changed on one server: bring the server to the state before the write, tell it of the write, wait, and compare. The problems
// before are needed because a server reports all problems of a file, not those of a change. It never fails; the verdict's reason says what
// went wrong.
func (c *client) written(ctx context.Context, files []Proposal, created map[string]bool) serverVerdict {
	if c.commands.busy() {
		c.notifyWritten(files, created)
		return serverVerdict{state: change.Pending, reason: c.id + " runs a command that waits for the decision on this edit"}
	}
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		// A proposal is laid over the documents, so the written texts must wait until it is removed. They are sent even after this call has
		// returned: else the server would answer about the old texts for good.
		go func() {
			if release, err := c.exclusive.acquire(context.Background()); err == nil { // ends with the connection at the latest
				c.notifyWritten(files, created)
				release()
			}
		}()
		return serverVerdict{state: change.Pending, reason: err.Error()}
	}
	defer release()
	if c.readsDisk() {
		c.notifyWritten(files, created)
		return c.publishedVerdict()
	}
	paths := pathsOf(files)
	if c.sync(slices.DeleteFunc(c.withBuffers(nil), func(p string) bool { return slices.Contains(paths, p) })) {
		// Ignore errors: without a baseline the comparison is only less certain, and the write has been made anyway.
		half, cancel := context.WithTimeout(ctx, c.host.baselineWait()) // problems from typing in other files must not count as introduced
		_ = c.waitForDiagnostics(half, c.docs.among(paths))
		cancel()
	}
	used := c.prepareBaseline(ctx, files, created)
	before := c.ledger.snapshot()
	known := c.baselineKnown(slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return created[p] })) // a new file had none
	made := c.docs.unopened(paths)
	c.notifyWritten(files, created)
	if see := c.spec.hooks.missedFile; see != nil && len(used.importers) > 0 {
		see(ctx, c) // what an import finds now, the server's own watcher may not notice
		c.ledger.invalidatePulls()
	}
	c.dependents.recompile(used.files)
	scope := c.scope(c.docs.among(paths), used.files)
	err = c.waitForNew(ctx, made, scope)
	if err == nil {
		err = c.waitUntilSeen(ctx, files, scope)
	}
	if err == nil && used.incomplete == nil {
		used.incomplete = c.dependents.hidden(ctx, used)
	}
	if err != nil {
		return serverVerdict{state: failState(err), mute: errors.Is(err, errMute), reason: c.why(ctx, err), files: c.ledger.snapshot()}
	}
	v := compare(before, c.ledger.snapshot(), paths)
	if !known {
		v.reason = "the problems before this change are not known"
	}
	if used.incomplete != nil {
		v.state, v.reason = change.Partial, c.id+" "+used.incomplete.Error()
	}
	c.markGap(&v, before, paths)
	c.markApart(&v, paths)
	v.versions = c.docs.versionsOf(paths)
	return v
}

// prepareBaseline finds out which problems there were before a write, and which files use what it changes, for writes that were not checked
// as a proposal. It skips a server that has just been started, whose first answer it would delay.
func (c *client) prepareBaseline(ctx context.Context, files []Proposal, created map[string]bool) uses {
	opened, late, fresh := false, false, len(c.docs.paths()) == 0
	var lost error
	for _, f := range files {
		doc, open := c.docs.get(f.Path)
		// A file that the server has not seen: show its old text first, to learn its old problems.
		unseen := !open && !fresh
		early := open && doc.text == f.Text && f.Old != f.Text // the watcher was faster than the call of Changed
		if f.Old != "" && !created[f.Path] && (unseen || early) {
			c.docs.put(f.Path, f.Old)
			opened, late = true, late || early
			if early && (c.spec.Quirks.EndMarker && filepath.Ext(f.Path) != ".go" || c.spec.hooks.unseen != nil && importsC().MatchString(f.Text)) {
				lost = errLate
			}
		}
	}
	// The write has been made, so the wait is short and only lowers the certainty.
	short, stop := context.WithTimeout(ctx, c.host.baselineWait())
	searching := c.dependents.waitForFiles(short)
	stop()
	used := c.dependents.find(ctx, files)
	if searching != nil {
		used.incomplete = errSearching
	}
	used.incomplete = cmp.Or(used.incomplete, lost)
	if used.incomplete == nil && slices.ContainsFunc(used.importers, func(p string) bool { return c.ledger.project(p) == nil }) {
		used.incomplete = errWritten
	}
	if late {
		c.dependents.recompile(used.files) // with the new text they have been compiled already
	}
	if c.sync(used.files) || opened {
		half, cancel := context.WithTimeout(ctx, c.host.baselineWait())
		defer cancel()
		_ = c.waitForDiagnostics(half, c.docs.among(slices.Concat(pathsOf(files), used.files)))
	}
	return used
}

// errLate means that the server has read a written file that it cannot be shown the old text of. The text follows a server's name.
var errLate = errors.New("had read the change before it was asked for the problems without it")

// errWritten means that files that import a new or deleted one were first looked at after the write. The text follows a server's name.
var errWritten = errors.New("did not know which problems the files that import the new or deleted one had before")

// defaultBaseline is Options.Baseline when that is 0. The time is part of the budget in which the model waits for the result.
const defaultBaseline = time.Second

func (h host) baselineWait() time.Duration { return cmp.Or(h.baseline, defaultBaseline) }

// notifyWritten sends the notifications of a write: file events, file operations, didOpen or didChange, didSave. It does not wait. The
// caller has acquired the documents, or runs on behalf of a command that has.
func (c *client) notifyWritten(files []Proposal, created map[string]bool) {
	var events []fileEvent
	for _, f := range files {
		events = append(events, eventOf(f, created))
		if f.Delete {
			c.docs.close(f.Path)
			c.ledger.forget(f.Path)
			c.feed.add(f.Path)
		}
	}
	// Announce new files before the files that use them change.
	c.watched(c.able.wanted(events))
	c.didOperate(files, created)
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.docs.openOrder(a) - c.docs.openOrder(b) })
	for _, f := range files {
		if !f.Delete {
			if created[f.Path] || c.ledger.wasDeleted(f.Path) {
				c.introduce(f.Path, f.Text)
			}
			c.docs.put(f.Path, f.Text)
			c.docs.save(f.Path)
		}
	}
	c.reload(events)
	c.docs.trim(pathsOf(files))
}

// Servers that see new files only on disk notice a written file after a while.
const (
	// Five pauses are less than a second in all, which the wait of an edit allows.
	seenTries = 5
	seenPause = 150 * time.Millisecond
)

// waitUntilSeen repeats the request while a server still reports that a file which was just written cannot be imported.
func (c *client) waitUntilSeen(ctx context.Context, files []Proposal, scope []string) error {
	if c.spec.Quirks.BlindToNew == "" {
		return nil
	}
	var written []string
	for _, f := range files {
		if !f.Delete {
			written = append(written, f.Path)
		}
	}
	for try := range seenTries {
		complains := false
		now := c.ledger.snapshot()
		for _, p := range scope {
			complains = complains || slices.ContainsFunc(now[p].items(), func(d change.Problem) bool { return missesModule(d, written) })
		}
		if !complains {
			return nil
		}
		// At the first try the server may notice by itself.
		if try == 1 && c.spec.hooks.missedFile != nil {
			c.spec.hooks.missedFile(ctx, c)
		}
		select {
		case <-time.After(seenPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		// The texts have not changed, so pulled answers would still count as up to date.
		c.ledger.invalidatePulls()
		if err := c.waitForDiagnostics(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// report waits for the problems of files as they are. all opens every file, for servers that report only open documents.
func (c *client) report(ctx context.Context, paths []string, all bool) serverVerdict {
	if c.readsDisk() {
		return c.publishedVerdict()
	}
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		return serverVerdict{state: change.Pending, reason: err.Error()}
	}
	defer release()
	v := serverVerdict{state: change.Fresh}
	ask, w := paths, c.mode()
	switch {
	case w == byMarker && all:
		paths = nil // the server reports the whole workspace anyway
	case w == byTSServer && all:
		paths = paths[:min(len(paths), 1)] // one open file loads the project; the others are requested by path
	case all && len(paths) > maxOpen:
		v.state, v.reason = change.Partial, fmt.Sprintf("%s checked %d of %d files", c.id, maxOpen, len(paths))
		paths = paths[:maxOpen]
		ask = paths
	}
	made := c.docs.unopened(paths)
	opened := paths
	if all {
		opened = c.docs.with(paths)
	}
	c.sync(c.withBuffers(opened))
	if w != byTSServer {
		ask = c.docs.among(ask)
	}
	if err := c.waitForNew(ctx, made, ask); err != nil {
		v.state, v.mute, v.reason = failState(err), errors.Is(err, errMute), c.why(ctx, err)
	}
	v.files = c.ledger.snapshot()
	v.versions = c.docs.versionsOf(c.docs.paths())
	if !all {
		c.markApart(&v, paths)
	}
	return v
}

// publishedVerdict is the verdict of a server that accepts no texts (readsDisk): what it has published so far, with the certainty
// Unavailable.
func (c *client) publishedVerdict() serverVerdict {
	return serverVerdict{state: change.Unavailable, mute: true, reason: c.id + " does not accept unsaved texts: it checks a file after it is written, and does not say when it is done", files: c.ledger.snapshot()}
}

// markUnseen lowers the certainty where the server could not see part of the proposal, and removes the errors that it reports only for that
// reason. imported says that other files import a new one: a server that is blind to new folders has found nothing there before, or another file,
// and does not look again.
func (c *client) markUnseen(v *serverVerdict, files []Proposal, imported bool) {
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
		case q == "file" && err != nil, q == "dir" && (errDir != nil || imported && err != nil):
			unseen = append(unseen, f.Path)
		}
	}
	if deleted {
		v.state, v.reason = change.Partial, "deleted files were checked as empty ones"
	}
	if unseen := c.spec.hooks.unseen; unseen != nil {
		for _, f := range files {
			old, _ := c.text(f.Path)
			if why, spurious := unseen(old, f); why != "" {
				v.state, v.reason = change.Partial, c.id+" "+why
				v.introduced = slices.DeleteFunc(v.introduced, spurious)
			}
		}
	}
	if unloaded := c.spec.hooks.unloaded; unloaded != nil && slices.ContainsFunc(v.introduced, unloaded) {
		v.state, v.reason = change.Partial, c.id+" cannot load new packages before they are written"
		v.introduced = slices.DeleteFunc(v.introduced, unloaded)
	}
	if len(unseen) == 0 {
		return
	}
	v.state, v.reason = change.Partial, fmt.Sprintf("%s sees new files only after they are written", c.id)
	v.introduced = slices.DeleteFunc(v.introduced, func(d change.Problem) bool { return missesModule(d, unseen) })
}

// markGap lowers the certainty where the server is known to miss problems of a changed file.
func (c *client) markGap(v *serverVerdict, before map[string]*fileDiags, paths []string) {
	// A verdict that is not fresh already has a reason.
	if c.spec.hooks.gap == nil || v.state != change.Fresh {
		return
	}
	for _, p := range paths {
		text, _ := c.text(p)
		if why := c.spec.hooks.gap(p, text, before[p].items(), v.introduced); why != "" {
			v.state, v.reason = change.Partial, why
			return
		}
	}
}

// markApart lowers the certainty where the server sees a file without others that it belongs to, and removes what it reports only for that reason.
func (c *client) markApart(v *serverVerdict, files []string) {
	for _, path := range files {
		why, spurious := "", func(change.Problem) bool { return false }
		switch apart := c.spec.hooks.apart; {
		case apart != nil:
			why, spurious = apart(path)
		case !paths.Within(c.dependents.root, path):
			why = fmt.Sprintf("%s does not know what belongs to %s, which is outside of its project", c.id, filepath.Base(path))
		}
		if why == "" {
			continue
		}
		v.introduced, v.fixed = slices.DeleteFunc(v.introduced, spurious), slices.DeleteFunc(v.fixed, spurious)
		if v.state == change.Fresh { // a verdict that is not fresh already has a reason
			v.state, v.reason = change.Partial, why
		}
	}
}

// missesModule reports whether a problem says that one of these files cannot be imported. It recognises the words of TypeScript's server
// and of pyright, and the file's name, whole, in the name that the message quotes; for index and __init__ files that of the folder.
func missesModule(d change.Problem, files []string) bool {
	msg := strings.ToLower(d.Message)
	if !strings.Contains(msg, "cannot find module") && !strings.Contains(msg, "could not be resolved") && !strings.Contains(msg, "unknown import symbol") {
		return false
	}
	_, name, _ := strings.Cut(strings.ReplaceAll(msg, `"`, "'"), "'")
	name, _, _ = strings.Cut(name, "'")
	return slices.ContainsFunc(files, func(p string) bool {
		base := filepath.Base(p)
		stem := strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))
		if standsForFolder(p) {
			stem = strings.ToLower(filepath.Base(filepath.Dir(p)))
		}
		part := func(at int) bool { return at >= 0 && at < len(name) && (isWord(name[at]) || name[at] == '-') }
		for from := 0; stem != ""; from++ {
			i := strings.Index(name[from:], stem)
			if i < 0 {
				return false
			}
			if from += i; !part(from-1) && !part(from+len(stem)) {
				return true
			}
		}
		return false
	})
}

// compare returns a server's verdict from two snapshots. Files on which the server has not reported in between have the same value in both
// and are skipped.
func compare(before, after map[string]*fileDiags, paths []string) serverVerdict {
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
			if slices.Contains(paths, p) { // for other files the count is unknown: the server may not have reported on them again
				v.unchanged += same
			}
		}
	}
	// Both rules need the other list unfiltered.
	introduced := newlyFound(v.introduced, v.fixed, paths)
	v.fixed = stillKnown(v.introduced, v.fixed)
	v.introduced = introduced
	return v
}

// newlyFound returns the introduced problems that the change really introduces. A server that finds an error skips further analyses of that
// code and makes up for them when the error is gone: a warning that appears then, outside the changed files (paths), existed before.
func newlyFound(introduced, fixed []change.Problem, paths []string) []change.Problem {
	if !slices.ContainsFunc(fixed, change.Problem.IsError) {
		return introduced
	}
	return slices.DeleteFunc(slices.Clone(introduced), func(p change.Problem) bool {
		return !p.IsError() && !slices.Contains(paths, p.Path)
	})
}

// stillKnown returns the fixed problems that really are fixed. A server that finds an error skips further analyses of that code: warnings
// that disappear with a new error are unknown, not fixed. When the server cannot even parse a file, errors in its folder (often a package)
// are unknown too.
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

// isSyntax reports whether a problem is a syntax error, after which servers do not analyse further. gopls marks them by source, TypeScript
// by codes from 1000 to 1999; for others the wording decides.
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
