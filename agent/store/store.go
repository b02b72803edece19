// Package store keeps sessions in one SQLite file, or on a PostgreSQL server: heads, numbered events,
// remembered permissions. It does not know what an event means. The tables journal and changes are empty: versions
// before events told of changes used them, and the schema keeps them so that older programs can open the file. One
// goroutine writes; what waits together is one transaction. Several processes may share the file, several machines the server.
//
//	st := store.New(path)            // touches nothing yet
//	st.Append(id, events...)         // queued in order
//	err := st.Sync(ctx)              // all that was appended is on disk
//
// A commit survives the end of the process at any moment (kill -9 included); WAL with synchronous NORMAL means that
// a power failure may cost the last commits but never tears the file. When it cannot be written (full disk, locked,
// damaged, made by a newer Pillion, server away) what was appended stays in memory, readers see it, and the writer tries
// again; OnProblem tells.
package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Event is one entry of a session's sequence. The agent gives the numbers; the store keeps them and never makes one, except for an
// event whose number another process has used.
type Event struct {
	Seq  int64     // from 1, below 1<<32
	Time time.Time // stored in microseconds; read back in UTC
	Type string
	Data []byte // JSON; nil where Long has it
	Long *Long  `json:"-"` // of an event that was appended; one that is read back has Data
}

// Long is the JSON of a very long event, which need not exist in one piece: SQLite stores it in parts (parts.go).
type Long struct {
	Size int // bytes of all pieces
	// Pieces passes the JSON to yield, the same each time. A piece is valid until yield returns.
	Pieces func(yield func(piece []byte))
}

// Whole returns the JSON in one piece.
func (l *Long) Whole() []byte {
	data := make([]byte, 0, l.Size)
	l.Pieces(func(piece []byte) { data = append(data, piece...) })
	return data
}

// whole returns e with its JSON in one piece.
func (e Event) whole() Event {
	if e.Long != nil {
		e.Data, e.Long = e.Long.Whole(), nil
	}
	return e
}

// size is how many bytes its JSON has.
func (e *Event) size() int {
	if e.Long != nil {
		return e.Long.Size
	}
	return len(e.Data)
}

// Session is a session's head. Info is the agent's own JSON.
type Session struct {
	// IDs are made by the agent; the store only compares them.
	ID      string
	Cwd     string // absolute path
	Title   string
	Parent  string // id of the session whose sub-agent this is; empty: a person's
	Created time.Time
	Updated time.Time
	Info    []byte
}

// Grant is a remembered permission.
type Grant struct {
	ID         int64
	Project    string // worktree root
	Permission string // name of the permission, such as "edit"
	Pattern    string // as permission.Grant has it; the store does not read it
	Created    time.Time
}

// ErrNotFound means that there is no such session or grant.
var ErrNotFound = errors.New("not in the store")

// ErrClosed means that the store was closed; queued calls are answered with it.
var ErrClosed = errors.New("the session store is closed")

// Store is the database. The zero value is not usable; see New.
//
// It reads by itself, from the database and from the queue of what is not written yet; everything that changes the database goes through that queue.
type Store struct {
	*writeQueue
	forgetful bool // Append drops events; heads and grants are kept
}

// New makes a store on a file that need not exist. Nothing is opened before the first use. The empty path keeps
// everything in memory, for tests and for runs that want no trace.
//
// A PostgreSQL URL (postgres://user@host/database) makes a store on that server, for those who work on many machines.
func New(path string) *Store {
	// busyTimeout is longer than a transaction of another process should take.
	var b backend = &sqlite{path: path, busyTimeout: 5 * time.Second}
	if IsServer(path) {
		b = newPostgres(path)
	}
	return &Store{writeQueue: newWriteQueue(&database{b: b})}
}

// NewForgetful makes a store for sessions that are never resumed. It is New("") without the events, which would fill the memory with
// every text that was ever edited.
func NewForgetful() *Store {
	s := New("")
	s.forgetful = true
	return s
}

// KeepsEvents says whether Append does anything.
func (s *Store) KeepsEvents() bool { return !s.forgetful }

// IsServer says whether New takes the text for a server's address.
func IsServer(path string) bool {
	return strings.HasPrefix(path, "postgres://") || strings.HasPrefix(path, "postgresql://")
}

// Path is the file; of a server it is the host and database, without secrets.
func (s *Store) Path() string { return s.b.name() }

// reading calls f with the pool for reading. When f finds the file damaged, reading waits until the writer has replaced the file by what can
// be read of it, and calls f a second time. f must forget then what it read the first time.
func (s *Store) reading(ctx context.Context, f func(db) error) error {
	for repaired := false; ; repaired = true {
		d, err := s.reader()
		if err == nil {
			err = s.explain(f(d))
		}
		var p *Problem
		if repaired || !errors.As(err, &p) || p.Kind != ProblemDamaged {
			return err
		}
		// explain has told the writer, which repairs before it answers this barrier.
		if s.do(ctx, nil) != nil {
			return err
		}
	}
}

// reader returns the pool for reading and opens it at the first use.
func (s *Store) reader() (db, error) {
	s.adopt()
	// While a server is away, readers fail at once instead of each waiting for a time-out.
	if err := s.away(); err != nil {
		return db{}, err
	}
	w, err := s.open()
	if err != nil {
		return db{}, err
	}
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.read == nil {
		// Close came after open.
		if s.write == nil {
			return db{}, ErrClosed
		}
		if s.read, err = s.b.reader(w); err != nil {
			return db{}, s.explain(err)
		}
		// A database in memory has one connection for both, so it has one set of statements.
		if s.reads = s.writes; s.read != w && s.writes != nil {
			s.reads = newPrepared(s.read)
		}
	}
	return db{s.read, s.b, s.reads}, nil
}
