package store

import "database/sql"

// open opens the database once and brings it to the present schema. A failure is not remembered: the disk may have space, or the
// server may answer, at the next use.
func (s *Store) open() (*sql.DB, error) {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.write != nil {
		return s.write, nil
	}
	d, err := s.b.open()
	if err != nil {
		return nil, s.explain(err)
	}
	s.write = d
	if _, ok := s.b.(*sqlite); ok {
		s.writes = newPrepared(d)
	}
	return d, nil
}

// reader is the pool that reads.
func (s *Store) reader() (db, error) {
	s.adopt()
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
		if s.write == nil {
			return db{}, ErrClosed
		}
		if s.read, err = s.b.reader(w); err != nil {
			return db{}, s.explain(err)
		}
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

// explain is an error of the database as a *Problem with the next step; nil stays nil.