package store

import (
	"database/sql"
	"errors"
)

// open opens the database once and brings it to the present schema. A failure is not remembered: the disk may have space, or the
// server may answer, at the next use.
func (s *Store) open() (*sql.DB, error) {
	// openMu is held for the whole opening, so that several readers at once open one database.
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.write != nil {
		return s.write, nil
	}
	d, err := s.b.open()
	// A damaged file is salvaged here, before anybody reads from it.
	if err != nil && s.repair(s.b.explain(err)) {
		d, err = s.b.open()
	}
	if err != nil {
		return nil, s.explain(err)
	}
	s.write = d
	// The driver for PostgreSQL prepares by itself.
	if _, ok := s.b.(*sqlite); ok {
		s.writes = newPrepared(d)
	}
	return d, nil
}

// reader is the pool that reads.
func (s *Store) reader() (db, error) {
	s.adopt()
	// while a server is away, a reader fails at once and does not wait for a time-out
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
		// Close came between open and here
		if s.write == nil {
			return db{}, ErrClosed
		}
		if s.read, err = s.b.reader(w); err != nil {
			return db{}, s.explain(err)
		}
		// A database in memory has one connection for both, and one set of statements.
		if s.reads = s.writes; s.read != w && s.writes != nil {
			s.reads = newPrepared(s.read)
		}
	}
	return db{s.read, s.b, s.reads}, nil
}

// statements are the prepared ones of the writing connection; nil for PostgreSQL.
func (s *Store) statements() *prepared {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	return s.writes
}

// repair salvages a damaged file, once in the life of a store. openMu is held. It reports whether there is a new file; why there is none
// is part of later Problems.
func (s *Store) repair(problem error) bool {
	b, ok := s.b.(*sqlite)
	var p *Problem
	if !ok || b.path == "" || s.repaired || !errors.As(problem, &p) || p.Kind != ProblemDamaged {
		return false
	}
	s.repaired = true
	for _, d := range []*sql.DB{s.read, s.write} {
		if d != nil {
			d.Close()
		}
	}
	s.read, s.write, s.reads, s.writes = nil, nil, nil, nil
	// both pools are closed first: salvage works on the file, and a connection would write on into the old one
	done, err := salvage(b.path, b.busyTimeout)
	if err != nil {
		b.unsalvaged = err
		return false
	}
	// mu is always taken inside openMu, never the other way round.
	s.mu.Lock()
	tell := s.onProblem
	// nobody listens yet: OnProblem tells it when it is set
	if s.damaged = false; tell == nil {
		s.unsaid = done
	}
	s.mu.Unlock()
	if tell != nil {
		tell(done)
	}
	return true
}

// repairNow is repair for a file that turned out to be damaged while it was used.
func (s *Store) repairNow(problem error) bool {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	return s.repair(problem)
}
