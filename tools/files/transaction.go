package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// transaction executes a plan: journal, temporary files, renames, clean-up, in this order. Before the first rename the files are
// the old ones; after it the journal has what is needed to finish or to roll back. It is used once, by one goroutine.
type transaction struct {
	*plan
	journal Journal // nil: a crash is not recovered
	noted   bool    // the journal has an entry for it
	done    int     // steps applied, from the first; giveUp undoes these
	made    int     // folders of Dirs that are there, from the first; giveUp removes the empty ones
}

// crash is set by tests, which end a commit at each of its named points and then recover it; nil otherwise.
var crash func(point string) error

// die is a named point of a commit at which a test can end it; outside of tests it does nothing.
func die(point string) error {
	if crash != nil {
		return crash(point)
	}
	return nil
}

// errCrash is what a test's crash returns: run then cleans up nothing, as after kill -9.
var errCrash = errors.New("crash")

// run carries out the plan. A cancel counts until the first step is applied; an error at any point rolls the commit back. After a
// crash, Recover finishes or rolls back.
func (t *transaction) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, errCrash) {
			err = t.giveUp(err)
		}
	}()
	if err := t.begin(ctx); err != nil {
		return err
	}
	if err := t.stage(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // the last moment a cancel stops it
	}
	for i := range t.Steps {
		if err := die("apply"); err != nil {
			return err
		}
		if err := t.apply(&t.Steps[i]); err != nil {
			return err
		}
		// Counted after the step: giveUp takes back only what was done.
		t.done = i + 1
	}
	return t.finish(context.WithoutCancel(ctx))
}

// begin writes the plan to the journal before anything else on the disk changes. A single rename is atomic by itself: its entry
// only serves to remove the temporary file after a crash, so it does not wait for the disk.
func (t *transaction) begin(ctx context.Context) error {
	if t.journal == nil {
		return nil
	}
	data, err := json.Marshal(t.plan)
	if err != nil {
		return err
	}
	if len(t.Steps) == 1 && t.Steps[0].Kind != stepInPlace {
		n, ok := t.journal.(noter)
		if !ok {
			return nil
		}
		if n.Note(t.ID, data) == nil { // without the entry, a crash leaves a temporary file at worst
			t.noted = true
		}
		return nil
	}
	if err := t.journal.Begin(ctx, t.ID, data); err != nil {
		return fmt.Errorf("the change journal cannot be written, so nothing was changed: %w", err)
	}
	t.noted = true
	return die("begun")
}

// stage makes folders and temporary files. A full disk or missing permissions mostly show here, while the files are untouched.
func (t *transaction) stage(ctx context.Context) error {
	for _, d := range t.Dirs {
		at, err := t.at(d)
		if err != nil {
			return explain(d, err)
		}
		if err := os.Mkdir(at, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(d, err)
		}
		// A folder that another program made meanwhile counts too; giveUp removes only empty ones.
		t.made++
	}
	var flushed flushes
	err := t.writeTemps(ctx, &flushed)
	// Also after an error: a temporary file must not be removed while it is being flushed.
	if e := flushed.wait(); err == nil {
		err = e
	}
	return err
}

// writeTemps writes the temporary files and leaves it to flushed to put them on the disk.
func (t *transaction) writeTemps(ctx context.Context, flushed *flushes) error {
	for i := range t.Steps {
		s := &t.Steps[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := die("stage"); err != nil {
			return err
		}
		if s.Temp == "" {
			continue
		}
		f, err := t.writeTemp(s)
		if err != nil {
			return explain(s.Path, err)
		}
		flushed.add(func() error {
			err := f.Sync()
			if e := f.Close(); err == nil {
				err = e
			}
			return explain(s.Path, err)
		})
	}
	return nil
}

// flushes are waits for the disk that run at the same time. A journaling file system serves those that wait together with one write of its
// journal, while one after the other each pays for its own. The zero value is ready; add and wait belong to one goroutine.
type flushes struct {
	slots chan struct{}
	all   sync.WaitGroup
	mu    sync.Mutex
	err   error // guarded by mu; the first error
}

// mostFlushes limits how many files are open at a time.
const mostFlushes = 32

// add starts a flush. It waits while mostFlushes run.
func (f *flushes) add(flush func() error) {
	if f.slots == nil {
		f.slots = make(chan struct{}, mostFlushes)
	}
	f.slots <- struct{}{}
	f.all.Go(func() {
		err := flush()
		<-f.slots
		if err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.err == nil {
				f.err = err
			}
		}
	})
}

// wait returns when all flushes have ended, with the first error.
func (f *flushes) wait() error {
	f.all.Wait()
	return f.err
}

// writeTemp writes the new bytes beside the target, with the mode, owner and attributes the target will have: after the rename there
// is no moment at which they are wrong. The caller must flush and close the file.
func (p *plan) writeTemp(s *step) (_ *os.File, err error) {
	temp, err := p.at(s.Temp)
	if err != nil {
		return nil, err
	}
	perm := fs.FileMode(0o600) // so that no other user can read it before the mode is set
	if s.attrs == "" {
		perm = 0o666 // less the umask
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if _, err := f.Write(s.data); err != nil {
		return nil, err
	}
	if s.attrs != "" {
		from, err := p.at(s.attrs)
		if err != nil {
			return nil, err
		}
		if err := copyAttrs(from, f); err != nil {
			return nil, err
		}
	}
	if s.Mode != 0 {
		if err := f.Chmod(s.Mode.Perm()); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// apply carries out one step. Recovery calls it as well, with a step from the journal: only exported fields are set then.
func (t *transaction) apply(s *step) error {
	x, err := t.placesOf(s)
	if err != nil {
		return explain(s.Path, err)
	}
	if err := s.unchanged(x.path); err != nil {
		return err
	}
	switch s.Kind {
	case stepCreate:
		return explain(s.Path, renameNew(x.temp, x.path))
	case stepLink:
		return explain(s.Path, os.Symlink(s.Target, x.path))
	case stepRemove:
		return explain(s.Path, os.Rename(x.path, x.backup))
	case stepRename:
		if fi, err := os.Lstat(x.to); err == nil && os.SameFile(fi, s.info) {
			return explain(s.Path, os.Rename(x.path, x.to))
		}
		return explain(s.To, renameNew(x.path, x.to))
	case stepInPlace:
		if err := overwrite(x.path, s.Old, s.New); err != nil || s.Mode == 0 {
			return explain(s.Path, err)
		}
		return explain(s.Path, chmod(x.path, s.Mode.Perm()))
	}
	// A single rename needs no backup: it happens or does not.
	if len(t.Steps) == 1 {
		return t.rename(s, x)
	}
	// A hard link keeps the old bytes under another name without a copy, and the file keeps its own name until the rename: readers
	// never find it missing.
	if err := os.Link(x.path, x.backup); err != nil { // a file system without hard links
		if err := copyFile(x.path, x.backup); err != nil {
			return explain(s.Path, err)
		}
	}
	if err := die("linked"); err != nil {
		return err
	}
	return t.rename(s, x)
}

// places are the paths of a step through their open folders; empty where the step has none.
type places struct{ path, to, temp, backup string }

// placesOf opens the folders of a step.
func (p *plan) placesOf(s *step) (x places, err error) {
	for _, one := range []struct {
		at   *string
		path string
	}{{&x.path, s.Path}, {&x.to, s.To}, {&x.temp, s.Temp}, {&x.backup, s.Backup}} {
		if one.path == "" {
			continue
		}
		if *one.at, err = p.at(one.path); err != nil {
			return places{}, err
		}
	}
	return x, nil
}

// rename gives the temporary file the file's name. Where something is mounted on the file, that fails with EBUSY and only its bytes
// can be changed: the step becomes stepInPlace, and both texts go into the journal before the first byte changes, so that a crash
// in the middle can be recovered.
func (t *transaction) rename(s *step, x places) error {
	err := os.Rename(x.temp, x.path)
	if !errors.Is(err, syscall.EBUSY) {
		return explain(s.Path, err)
	}
	old, err := readName(x.path)
	if err != nil {
		return explain(s.Path, err)
	}
	new, err := readName(x.temp) // recovery has no other copy
	if err != nil {
		return explain(s.Path, err)
	}
	for _, beside := range []string{x.temp, x.backup} {
		if beside != "" {
			os.Remove(beside)
		}
	}
	s.Kind, s.Old, s.New, s.Temp, s.Backup = stepInPlace, old, new, "", ""
	if t.journal != nil {
		data, err := json.Marshal(t.plan)
		if err == nil {
			err = t.journal.Begin(context.Background(), t.ID, data)
		}
		if err != nil {
			return fmt.Errorf("the change journal cannot be written, so nothing was changed: %w", err)
		}
		t.noted = true
	}
	return explain(s.Path, overwrite(x.path, old, new))
}

// unchanged checks, just before the step, that the file (at, through its open folder) is still the one whose bytes were compared: same
// inode, size and time. Reading it again would cost more and leave the same gap before the rename. info is nil in recovery, which
// compares hashes.
func (s *step) unchanged(at string) error {
	if s.info == nil {
		return nil
	}
	fi, err := os.Lstat(at)
	if err != nil || !os.SameFile(fi, s.info) || fi.Size() != s.info.Size() || !fi.ModTime().Equal(s.info.ModTime()) {
		return &BaseError{s.Path}
	}
	return nil
}

// finish makes the renames durable, removes the backups and ends the journal entry. ctx must not be canceled: from here on the
// change is made.
func (t *transaction) finish(ctx context.Context) error {
	if t.noted && (len(t.Steps) > 1 || t.Steps[0].Kind == stepInPlace) {
		t.syncDirs()
		// The entry is replaced by one that says Applied. Without it, a recovery that finds some backups missing and a file
		// edited since could not tell that the commit had succeeded, and would roll it back.
		data, err := json.Marshal(&plan{ID: t.ID, Host: t.Host, PID: t.PID, Start: t.Start, Applied: true, Steps: bare(t.Steps)})
		if err == nil {
			err = t.journal.Begin(ctx, t.ID, data)
		}
		if err != nil {
			return fmt.Errorf("the change journal cannot be written, so the change was rolled back: %w", err)
		}
	}
	if err := die("applied"); err != nil {
		return err
	}
	t.cleanUp()
	if err := die("cleaned"); err != nil {
		return err
	}
	if t.noted {
		// If this fails, the entry says Applied, and Recover only cleans up.
		_ = t.journal.End(ctx, t.ID)
	}
	return nil
}

// bare copies the steps without their bytes: an applied plan is never rolled back, so nothing reads them.
func bare(steps []step) []step {
	out := make([]step, len(steps))
	for i, s := range steps {
		s.Old, s.New = nil, nil
		out[i] = s
	}
	return out
}

// cleanUp removes temporary files and backups. Errors are ignored: a leftover costs space, not correctness, and in recovery and
// giveUp some files are missing anyway.
func (p *plan) cleanUp() {
	for _, s := range p.Steps {
		for _, f := range []string{s.Temp, s.Backup} {
			if f == "" {
				continue
			}
			if at, err := p.at(f); err == nil {
				os.Remove(at)
			}
		}
	}
}

// syncDirs makes renames durable: names are entries of folders, which are flushed separately from files.
func (p *plan) syncDirs() {
	seen := map[string]bool{}
	var flushed flushes
	for _, s := range p.paths() {
		d := filepath.Dir(s)
		if !seen[d] {
			seen[d] = true
			if at, err := p.at(s); err == nil {
				flushed.add(func() error { syncDir(filepath.Dir(at)); return nil }) // of a path through a descriptor: the folder itself
			}
		}
	}
	_ = flushed.wait()
}

// giveUp rolls the commit back, last step first, and returns cause. When a step cannot be undone, backups and journal entry
// stay for Recover, and the error says which files are concerned.
func (t *transaction) giveUp(cause error) error {
	var left []string
	// In reverse: a later step may have taken a name that an earlier one gave up.
	for i := t.done - 1; i >= 0; i-- {
		if err := t.undo(&t.Steps[i]); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", t.Steps[i].Path, reason(err)))
		}
	}
	if len(left) > 0 { // keep backups and journal: Recover tries again
		return fmt.Errorf("%w; undoing the change failed too: %v", cause, left)
	}
	t.cleanUp()
	for i := t.made - 1; i >= 0; i-- {
		if at, err := t.at(t.Dirs[i]); err == nil {
			os.Remove(at) // only when empty
		}
	}
	if t.noted {
		_ = t.journal.End(context.Background(), t.ID)
	}
	return cause
}

// undo reverses an applied step. A removed or moved file gets its name back only where that is free; the backup of a replaced file
// takes the name from the new file.
func (p *plan) undo(s *step) error {
	x, err := p.placesOf(s)
	if err != nil {
		return err
	}
	switch s.Kind {
	case stepCreate, stepLink:
		return os.Remove(x.path)
	case stepRemove:
		return renameNew(x.backup, x.path)
	case stepRename:
		return renameNew(x.to, x.path)
	case stepInPlace:
		return overwrite(x.path, s.New, s.Old)
	}
	return os.Rename(x.backup, x.path)
}

// renameFree renames only when the new name is free. It is for systems and file systems without an exclusive rename: a file that
// appears between the check and the rename is lost.
func renameFree(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
