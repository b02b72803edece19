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

// errHeld is what tryLock returns when another process, or another open file of this process, has the lock.
var errHeld = errors.New("held")

// FencedError means that another process continued a session that this process was writing, after this one had lost its connection to the
// server. What this process added since then is not stored, because two histories cannot be merged. OnProblem gets it once; every later
// Lock of the session returns it.
type FencedError struct {
	Session string
	Host    string
	PID     int
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("session %s was continued on %s (pid %d) while this program had no connection to the server; what was added here since then is not stored. Start Pillion again to continue from the stored session",
		e.Session, e.Host, e.PID)
}

// Lock makes this caller the session's only writer among all processes until unlock, which must be called. The operating system or the
// server releases the lock when the process ends, however it ends. Lock waits a moment for a turn that is just ending (300 ms for a file,
// 2 s for a server) and then returns a *LockedError, or a *FencedError when the session was lost to another machine. When the store
// cannot be written, the lock is granted all the same: the session then lives in memory only.
func (s *Store) Lock(ctx context.Context, session string) (unlock func(), err error) {
	return s.b.lock(ctx, s.writeQueue, session)
}

// lock locks a file for each session beside the database. A lock inside SQLite would be a transaction, and would block all other
// sessions.
func (s *sqlite) lock(ctx context.Context, _ *writeQueue, session string) (unlock func(), err error) {
	if s.path == "" {
		return func() {}, nil
	}
	dir := filepath.Join(filepath.Dir(s.path), "locks")
	// Without a folder for locks nothing can be excluded, and that is not a reason to refuse work.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return func() {}, nil
	}
	path := filepath.Join(dir, lockName(session))
	deadline := time.Now().Add(s.lockPatience())
	for {
		f, err := lockFile(path)
		if err == nil {
			return func() {
				os.Remove(path) // before the lock is released: the next process makes a new file, see lockFile
				f.Close()
			}, nil
		}
		// The file system has no locks, or the file cannot be created: the session runs without a lock.
		if !errors.Is(err, errHeld) {
			return func() {}, nil
		}
		if time.Now().After(deadline) {
			return nil, &LockedError{Session: session, PID: readPID(path)}
		}
		// flock(2) cannot wait with a time limit, so it is tried every 10 ms.
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lockPatience is how long lock waits: the other process may be about to unlock after its last turn.
func (s *sqlite) lockPatience() time.Duration { return min(s.busyTimeout, 300*time.Millisecond) }

// lockName is the name of a session's lock file. An id that comes from outside may hold slashes or dots; they are replaced, so that the
// file stays in its folder.
func lockName(session string) string {
	// Two ids that differ in replaced characters only share a lock. That is safe, if slow.
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '.'
	}, session) + ".lock"
}

// lockFile opens and locks a file and writes the process id into it, for LockedError. The previous owner may remove the file between our
// open and our lock: then the lock is on a file without a name, which excludes nobody, and errHeld makes the caller try again with a new
// file.
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
	// The file may hold the id of an owner that crashed before it could remove the file.
	f.Truncate(0)
	fmt.Fprintf(f, "%d\n", os.Getpid())
	return f, nil
}

// readPID is the process id in a lock file; 0 when the owner has not written it yet or the file is gone. It is for messages only: the
// lock decides, not the number.
func readPID(path string) (pid int) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	fmt.Fscan(f, &pid)
	return pid
}
