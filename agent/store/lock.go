package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// LockedError means that another process is writing the session. PID is 0 when it is not known.
type LockedError struct {
	Session string
	PID     int
	Host    string // empty: this machine
}

func (e *LockedError) Error() string {
	who := "another Pillion process"
	if e.PID != 0 {
		who = fmt.Sprintf("another Pillion process (pid %d)", e.PID)
	}
	if e.Host != "" {
		who += " on " + e.Host
	}
	return fmt.Sprintf("session %s is running a turn in %s; wait until that turn has ended, or cancel it there", e.Session, who)
}

// errHeld is what tryLock returns when another process, or another open file of this one, has the lock.
var errHeld = errors.New("held")

// FencedError means that another process continued a session that this process was writing, after this one's connection to
// the server was lost. What this process added since then is not stored, because two histories cannot be merged.
// It is given to OnProblem once, and to each Lock of the session from then on.
type FencedError struct {
	Session string
	Host    string
	PID     int
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("session %s was continued on %s (pid %d) while this program had no connection to the server; what was added here since then is not stored. Start Pillion again to continue from the stored session",
		e.Session, e.Host, e.PID)
}

// Lock makes this caller the session's only writer among all processes until unlock, which must be called once. The operating system,
// or the server, releases the lock when the process ends. Lock waits a moment (300 ms for a file, 2 s for a server) for a turn that is
// just ending, then gives a *LockedError, or *FencedError when the session was lost to another machine. When the store cannot be
// written the lock is granted all the same: the session then lives in memory only.
func (s *Store) Lock(ctx context.Context, session string) (unlock func(), err error) {
	return s.b.lock(ctx, s, session)
}

// lock locks a file per session beside the database, because a lock inside SQLite would be held by a transaction and block every
// other session. The operating system releases it when the process ends, however it ends.
func (s *sqlite) lock(ctx context.Context, _ *Store, session string) (unlock func(), err error) {
	if s.path == "" {
		return func() {}, nil
	}
	dir := filepath.Join(filepath.Dir(s.path), "locks")
	// Without a folder for locks there is no way to exclude others, and no reason to refuse work.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return func() {}, nil
	}
	path := filepath.Join(dir, lockName(session))
	deadline := time.Now().Add(s.lockPatience())
	for {
		f, err := lockFile(path)
		if err == nil {
			return func() {
				os.Remove(path) // first, so that whoever opens it next makes a new one
				f.Close()
			}, nil
		}
		// The file system knows no locks, or the file cannot be made: the session runs without.
		if !errors.Is(err, errHeld) {
			return func() {}, nil
		}
		if time.Now().After(deadline) {
			return nil, &LockedError{Session: session, PID: readPID(path)}
		}
		// flock(2) has no wait with a time limit, so it is asked again every 10 ms.
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lockPatience is how long lock waits: the process that has it may be just about to unlock after its last turn.
func (s *sqlite) lockPatience() time.Duration { return min(s.busyTimeout, 300*time.Millisecond) }

// lockName is the file name for a session id. An id from outside may hold slashes or dots; they are replaced, so that the file stays
// in the folder.
func lockName(session string) string {
	// Two ids that differ in replaced characters only share a lock, which is safe.
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '.'
	}, session) + ".lock"
}

// lockFile opens and locks a file and writes the process id into it, for LockedError. The previous owner may have removed the file
// between our open and our lock; then the lock is on a file without a name, which excludes nobody, and errHeld makes the caller try
// again with a new file.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	mine, err1 := f.Stat()
	there, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
		f.Close()
		return nil, errHeld
	}
	// the process id of the last owner, which did not remove the file
	f.Truncate(0)
	fmt.Fprintf(f, "%d\n", os.Getpid())
	return f, nil
}

// readPID is the process id in a lock file; 0 when the owner has not written it yet or the file is gone.
func readPID(path string) (pid int) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	fmt.Fscan(f, &pid)
	return pid
}
