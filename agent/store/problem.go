package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// ProblemKind says what is wrong with the database, for programs; the message is for people.
type ProblemKind string

// Why a store cannot be used.
const (
	ProblemFull     ProblemKind = "full"      // no space left; it passes when there is some
	ProblemLocked   ProblemKind = "locked"    // another process has held it for longer than we wait
	ProblemReadOnly ProblemKind = "read_only" // no right to write
	ProblemDamaged  ProblemKind = "damaged"   // no database, or pages that cannot be read
	ProblemNewer    ProblemKind = "newer"     // written by a newer Pillion; left unchanged
	ProblemForeign  ProblemKind = "foreign"   // has tables of another program; left unchanged
	ProblemAway     ProblemKind = "away"      // a server that does not answer
	ProblemSalvaged ProblemKind = "salvaged"  // a damaged database was replaced; the message says what was saved and where the rest is
	ProblemOther    ProblemKind = "other"
)

// Problem is a failure of the database. Its message tells a person what happened and what to do.
type Problem struct {
	Kind    ProblemKind
	Path    string // the file, or the server and database
	Message string
	Kept    string // the file on this machine that keeps what the server could not take, also over the end of the process; empty: memory only
	Err     error
}

func (p *Problem) Error() string { return p.Message }
func (p *Problem) Unwrap() error { return p.Err }

// explain turns what SQLite or the operating system says into a Problem that tells a person what to do.
func (s *sqlite) explain(err error) error {
	// These are not failures of the database, and callers compare them.
	var p *Problem
	if err == nil || errors.As(err, &p) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotFound) {
		return err
	}
	say := func(kind ProblemKind, format string, args ...any) error {
		return &Problem{Kind: kind, Path: s.path, Message: fmt.Sprintf(format, args...), Err: err}
	}
	switch code := sqliteCode(err); {
	// SQLite or the system may be the first to notice each of these, so both are looked at.
	case code == lib.SQLITE_FULL || errors.Is(err, syscall.ENOSPC):
		return say(ProblemFull, "the disk is full: %s cannot grow; free some space and the session is saved by itself", s.path)
	case code == lib.SQLITE_BUSY || code == lib.SQLITE_LOCKED:
		return say(ProblemLocked, "%s has been locked by another process for %v; close what holds it (fuser %[1]s names it)", s.path, s.busyTimeout)
	case code == lib.SQLITE_READONLY || code == lib.SQLITE_PERM || errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS):
		return say(ProblemReadOnly, "%s cannot be written (%v); check its owner and mode, or point XDG_STATE_HOME at another folder", s.path, err)
	case code == lib.SQLITE_NOTADB || code == lib.SQLITE_CORRUPT:
		if s.unsalvaged != nil {
			return say(ProblemDamaged, "%s is damaged (%v), and what can be read could not be carried to a new file: %v", s.path, err, s.unsalvaged)
		}
		return say(ProblemDamaged, "%s is damaged (%v); what can be read is carried to a new file now or at the next start, and the damaged one is kept beside it: try again", s.path, err)
	case code == lib.SQLITE_CANTOPEN || code == lib.SQLITE_IOERR:
		return say(ProblemOther, "%s cannot be opened or written (%v); check the folder, the disk and the free space", s.path, err)
	}
	return say(ProblemOther, "the session store %s failed: %v", s.path, err)
}

// sqliteCode is SQLite's primary result code; 0 when the error is not SQLite's.
func sqliteCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff // the low byte is the primary code
	}
	return 0
}

// isBusy reports that another process is writing. When the switch to WAL is refused, the driver gives the text without a code.
func isBusy(err error) bool {
	c := sqliteCode(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED || err != nil && strings.Contains(err.Error(), "database is locked")
}

// broken reports failures of the file, after which the transaction cannot continue. All others are answers about one statement and leave the
// transaction usable.
func (s *sqlite) broken(err error) bool {
	switch sqliteCode(err) {
	case lib.SQLITE_FULL, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_READONLY, lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT, lib.SQLITE_CANTOPEN, lib.SQLITE_IOERR:
		return true
	}
	return false
}
