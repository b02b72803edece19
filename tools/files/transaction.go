package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// transaction executes a plan: journal, temporary files, renames, clean-up, in this order. At any point before the
// first rename the files are the old ones; after it the journal knows enough to go either way. It is used once, by one
// goroutine.
type transaction struct {
	*plan
	journal Journal
	noted   bool // the journal knows of it
	done    int  // steps applied
	made    int  // folders made
}

// crash is set by tests to die at a point of a commit; nil otherwise.
var crash func(point string) error

// die ends a test's process at a named point of a write; outside of tests it does nothing.
func die(point string) error {
	if crash != nil {
		return crash(point)
	}
	return nil
}

// errCrash is what a test's crash returns: run then cleans nothing up, as after a kill.
var errCrash = errors.New("crash")

// run carries the plan out: journal, stage all files beside their targets, then rename.
// Until the first rename a cancel or an error takes everything back; from then on the plan
// is finished, also after a crash.
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

// begin writes the plan down, before anything on disk changes. A single rename is atomic by itself: its note only
// serves to clean up after a crash, so it is not worth waiting for the disk.
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
		if n.Note(t.ID, data) == nil { // a missing note costs a stray temporary file at worst
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

// stage makes folders and temporary files. Most of what can fail for want of space or rights fails here, while the
// files are untouched.
func (t *transaction) stage(ctx context.Context) error {
	for _, d := range t.Dirs {
		if err := os.Mkdir(d, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(d, err)
		}
		// A folder that another program made meanwhile counts too; giveUp removes only empty ones.
		t.made++
	}
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
		if err := s.writeTemp(); err != nil {
			return explain(s.Path, err)
		}
	}
	return nil
}

// writeTemp writes and flushes the new bytes beside the target, with the mode, owner and attributes the target will have:
// after the rename there is no moment at which they are wrong.
func (s *step) writeTemp() (err error) {
	perm := fs.FileMode(0o600) // so that no other user can read it before the mode is set
	if s.attrs == "" {
		perm = 0o666 // less the umask
	}
	f, err := os.OpenFile(s.Temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if _, err := f.Write(s.data); err != nil {
		return err
	}
	if s.attrs != "" {
		if err := copyAttrs(s.attrs, f); err != nil {
			return err
		}
	}
	if s.Mode != 0 {
		if err := f.Chmod(s.Mode.Perm()); err != nil {
			return err
		}
	}
	return f.Sync()
}

// apply makes one step true. Recovery calls it as well, so it must not depend on what only the first process knew.
func (t *transaction) apply(s *step) error {
	if err := s.unchanged(); err != nil {
		return err
	}
	switch s.Kind {
	case stepCreate:
		return explain(s.Path, renameNew(s.Temp, s.Path))
	case stepLink:
		return explain(s.Path, os.Symlink(s.Target, s.Path))
	case stepRemove:
		return explain(s.Path, os.Rename(s.Path, s.Backup))
	case stepRename:
		if fi, err := os.Lstat(s.To); err == nil && os.SameFile(fi, s.info) {
			return explain(s.Path, os.Rename(s.Path, s.To))
		}
		return explain(s.To, renameNew(s.Path, s.To))
	case stepInPlace:
		if err := overwrite(s.Path, s.Old, s.New); err != nil || s.Mode == 0 {
			return explain(s.Path, err)
		}
		return explain(s.Path, os.Chmod(s.Path, s.Mode.Perm()))
	}
	// A single rename needs no backup: it happens or it does not.
	if len(t.Steps) == 1 {
		return t.rename(s)
	}
	// The link keeps the old bytes under another name without copying them, and the file has its name all the time.
	if err := os.Link(s.Path, s.Backup); err != nil { // a file system without hard links
		if err := copyFile(s.Path, s.Backup); err != nil {
			return explain(s.Path, err)
		}
	}
	if err := die("linked"); err != nil {
		return err
	}
	return t.rename(s)
}

// rename gives the new bytes the file's name. Where something is mounted on the file only its bytes can be changed: the step becomes one
// in place, and both texts are in the journal before the first byte is touched, so that a crash in the middle can be repaired.
func (t *transaction) rename(s *step) error {
	err := os.Rename(s.Temp, s.Path)
	if !errors.Is(err, syscall.EBUSY) {
		return explain(s.Path, err)
	}
	old, err := os.ReadFile(s.Path)
	if err != nil {
		return explain(s.Path, err)
	}
	new, err := os.ReadFile(s.Temp) // recovery has no other copy
	if err != nil {
		return explain(s.Path, err)
	}
	for _, beside := range []string{s.Temp, s.Backup} {
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
	return explain(s.Path, overwrite(s.Path, old, new))
}

// unchanged looks once more, just before the step, whether the file is the one whose bytes were compared: same inode,
// size and time. Reading it again would leave the same gap before the rename and cost more. info is nil in recovery,
// which compares hashes.
func (s *step) unchanged() error {
	if s.info == nil {
		return nil
	}
	fi, err := os.Lstat(s.Path)
	if err != nil || !os.SameFile(fi, s.info) || fi.Size() != s.info.Size() || !fi.ModTime().Equal(s.info.ModTime()) {
		return &BaseError{s.Path}
	}
	return nil
}

// finish makes the renames durable, drops the backups and closes the journal.
func (t *transaction) finish(ctx context.Context) error {
	if t.noted && (len(t.Steps) > 1 || t.Steps[0].Kind == stepInPlace) {
		t.syncDirs()
		// From here on the change stands, whatever happens: without this mark a recovery that finds some backups
		// gone and a file edited since could not tell.
		data, err := json.Marshal(&plan{ID: t.ID, Host: t.Host, PID: t.PID, Start: t.Start, Applied: true, Steps: bare(t.Steps)})
		if err == nil {
			err = t.journal.Begin(ctx, t.ID, data)
		}
		if err != nil {
			return fmt.Errorf("the change journal cannot be written, so the change was rolled back: %w", err)
		}
	}
	t.Applied = true
	if err := die("applied"); err != nil {
		return err
	}
	t.cleanUp()
	if err := die("cleaned"); err != nil {
		return err
	}
	if t.noted {
		// A leftover entry says Applied and is harmless: Recover drops it.
		_ = t.journal.End(ctx, t.ID)
	}
	return nil
}

// bare drops the bytes that are no longer needed: once a plan is applied nothing is put back from it.
func bare(steps []step) []step {
	out := make([]step, len(steps))
	for i, s := range steps {
		s.Old, s.New = nil, nil
		out[i] = s
	}
	return out
}

// cleanUp removes temporary files and backups. Errors are dropped: a leftover costs space, not correctness. Recovery
// and giveUp call it, so files may be missing.
func (p *plan) cleanUp() {
	for _, s := range p.Steps {
		for _, f := range []string{s.Temp, s.Backup} {
			if f != "" {
				os.Remove(f)
			}
		}
	}
}

// syncDirs makes renames durable: they are entries of their folders, which have to be flushed by themselves.
func (p *plan) syncDirs() {
	seen := map[string]bool{}
	for _, s := range p.paths() {
		d := filepath.Dir(s)
		if !seen[d] {
			seen[d] = true
			syncDir(d)
		}
	}
}

// giveUp rolls the commit back, last step first, and returns cause. When a step cannot be undone, backups and journal entry
// stay for Recover, and the error says which files are concerned.
func (t *transaction) giveUp(cause error) error {
	if t.Applied {
		return nil // it stands
	}
	var left []string
	// In reverse: a later step may have taken a name that an earlier one gave up.
	for i := t.done - 1; i >= 0; i-- {
		if err := t.Steps[i].undo(); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", t.Steps[i].Path, err))
		}
	}
	if len(left) > 0 { // keep backups and journal: Recover tries again
		return fmt.Errorf("%w; taking the change back failed too: %v", cause, left)
	}
	t.cleanUp()
	for i := t.made - 1; i >= 0; i-- {
		os.Remove(t.Dirs[i]) // only when empty
	}
	if t.noted {
		_ = t.journal.End(context.Background(), t.ID)
	}
	return cause
}

// undo takes an applied step back. A name comes back only where it is free, except that the backup of a replaced file
// takes its name again.
func (s *step) undo() error {
	switch s.Kind {
	case stepCreate, stepLink:
		return os.Remove(s.Path)
	case stepRemove:
		return renameNew(s.Backup, s.Path)
	case stepRename:
		return renameNew(s.To, s.Path)
	case stepInPlace:
		return overwrite(s.Path, s.New, s.Old)
	}
	return os.Rename(s.Backup, s.Path)
}

// renameFree renames only when the new name is free, as far as that can be known: a file that appears between the look and
// the rename is lost. It is for systems without an exclusive rename.
func renameFree(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
