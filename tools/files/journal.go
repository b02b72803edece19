package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Journal keeps the plans of commits that have begun and not ended.
type Journal interface {
	// Begin makes data durable under id before it returns; a pending entry of that id is replaced. A commit calls it again when
	// its plan changes, and when every step is done.
	Begin(ctx context.Context, id string, data []byte) error
	// End drops the entry.
	End(ctx context.Context, id string) error
	// Pending lists what began and did not end, oldest first.
	Pending(ctx context.Context) ([]Entry, error)
}

// Entry is a pending plan.
type Entry struct {
	ID   string
	Data []byte // as given to Begin: the plan as JSON
}

// noter is a Journal that can also keep a plan without waiting for the disk: enough to survive a kill, not a power failure.
type noter interface {
	Note(id string, data []byte) error
}

// DirJournal keeps each plan in a file of its own, so that crash safety needs no database. Several processes may
// share the folder. It is made on the first commit.
type DirJournal struct{ Dir string }

// path is the file of an entry. Ids are letters and digits, see startPlan.
func (j *DirJournal) path(id string) string { return filepath.Join(j.Dir, id+".json") }

// Begin implements Journal.
func (j *DirJournal) Begin(ctx context.Context, id string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return j.write(id, data, true)
}

// Note is Begin without waiting for the disk.
func (j *DirJournal) Note(id string, data []byte) error { return j.write(id, data, false) }

// write puts the entry in place by a rename, so that Pending never reads half of one. With sync, data and folder entry are on the
// disk when it returns.
func (j *DirJournal) write(id string, data []byte, sync bool) (err error) {
	// Pending takes only names that end in .json for entries.
	tmp := filepath.Join(j.Dir, "."+id+".tmp")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(j.Dir, 0o700); err == nil {
			f, err = os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp)
		}
	}()
	if _, err = f.Write(data); err == nil && sync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err = os.Rename(tmp, j.path(id)); err == nil && sync {
		syncDir(j.Dir)
	}
	return err
}

// End implements Journal. An entry that is gone already is not an error: another process may have recovered it.
func (j *DirJournal) End(_ context.Context, id string) error {
	err := os.Remove(j.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Pending implements Journal. The order is that of the files' times. Entries that end while it reads are left out.
func (j *DirJournal) Pending(ctx context.Context) ([]Entry, error) {
	des, err := os.ReadDir(j.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type dated struct {
		Entry
		at int64
	}
	var found []dated
	for _, de := range des {
		fi, err := de.Info()
		if err != nil {
			continue // ended meanwhile
		}
		id, ok := strings.CutSuffix(de.Name(), ".json")
		if !ok {
			if strings.HasSuffix(id, ".tmp") && time.Since(fi.ModTime()) > time.Hour { // of a Begin that was killed
				os.Remove(filepath.Join(j.Dir, id))
			}
			continue
		}
		b, err := os.ReadFile(j.path(id))
		if err != nil {
			continue
		}
		found = append(found, dated{Entry{id, b}, fi.ModTime().UnixNano()})
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].at < found[b].at })
	out := make([]Entry, len(found))
	for i, f := range found {
		out[i] = f.Entry
	}
	return out, ctx.Err()
}

// lock keeps two processes that start together from recovering the same commit.
func (j *DirJournal) lock() (unlock func(), ok bool) {
	if _, err := os.Stat(j.Dir); err != nil {
		return func() {}, true // Pending says what is wrong
	}
	return lockFile(filepath.Join(j.Dir, ".lock"))
}

// sharedJournal is a Journal that several processes use. Commit and Recover hold its lock, so that only one process changes files
// at a time.
type sharedJournal interface {
	writing(ctx context.Context) (unlock func(), err error)
}

// flock(2) cannot be waited for with a context, so writing polls, at intervals that double from firstWait to longWait.
const (
	mostWait  = 5 * time.Second // a commit takes milliseconds; a holder that takes longer is stopped (SIGSTOP, a debugger)
	firstWait = time.Millisecond
	longWait  = 16 * time.Millisecond
)

// writing acquires the write lock. After mostWait it returns without it, because an edit must not hang behind a stopped process:
// bases are compared in any case, and only the short time between comparison and rename is then unprotected.
func (j *DirJournal) writing(ctx context.Context) (func(), error) {
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return func() {}, nil // Begin says so, if it matters
	}
	path, until := filepath.Join(j.Dir, ".write.lock"), time.Now().Add(mostWait)
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		if unlock, ok := lockFile(path); ok {
			return unlock, nil
		}
		if time.Now().After(until) {
			return func() {}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Outcome is how an interrupted commit ended.
type Outcome string

// What Recover did.
const (
	Finished   Outcome = "finished"    // all files have their new bytes
	RolledBack Outcome = "rolled back" // all files have their old bytes
	Left       Outcome = "left"        // some file was changed by somebody else since; Detail says which and where the backup is
)

// Recovered is the result for one interrupted commit.
type Recovered struct {
	ID      string   // of the journal entry
	Outcome Outcome  // one of the three above
	Files   []string // real paths that the commit was about
	Detail  string   // Left: which file, why, and where its backup is
}

// String names the outcome and the files, for people.
func (r Recovered) String() string {
	files := r.Files
	more := ""
	if n := len(files) - 5; n > 0 {
		files, more = files[:5], fmt.Sprintf(" and %d more", n)
	}
	s := fmt.Sprintf("%s: %s%s", r.Outcome, strings.Join(files, ", "), more)
	if r.Detail != "" {
		s += "; " + r.Detail
	}
	return s
}

// Recover finishes or rolls back every commit that a dead process left unfinished. Call it at start; it skips commits of processes
// that still run. An error of one commit does not stop the others; those that failed are tried again at the next start. The
// results are for people.
func Recover(ctx context.Context, j Journal) ([]Recovered, error) {
	// The recovery lock is not the write lock: other processes can commit while a recovery looks for work.
	if l, ok := j.(interface{ lock() (func(), bool) }); ok {
		unlock, ok := l.lock()
		if !ok {
			return nil, nil // another process is recovering
		}
		defer unlock()
	}
	entries, err := j.Pending(ctx)
	if err != nil {
		return nil, err
	}
	if s, ok := j.(sharedJournal); ok && len(entries) > 0 {
		unlock, err := s.writing(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	var out []Recovered
	var failed []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return out, errors.Join(append(failed, err)...)
		}
		var p plan
		if err := json.Unmarshal(e.Data, &p); err != nil || p.ID == "" {
			continue // written by something else, or by a later version
		}
		// A process that still runs finishes or rolls back its own commit.
		if p.alive() {
			continue
		}
		r, err := p.recover()
		if err == nil {
			out = append(out, r)
			err = j.End(ctx, e.ID)
		}
		if err != nil { // the entry stays for the next start
			failed = append(failed, fmt.Errorf("recovering %s (%s): %w", e.ID, strings.Join(p.paths(), ", "), err))
		}
	}
	return out, errors.Join(failed...)
}
