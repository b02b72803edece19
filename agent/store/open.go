package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite": SQLite without cgo
)

// open opens the file once and brings it to our version. A failure is not remembered: the next use tries again.
func (s *Store) open() (*sql.DB, error) {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.write != nil {
		return s.write, nil
	}
	if s.path != "" {
		if err := prepareFile(s.path); err != nil {
			return nil, s.explain(err)
		}
	}
	db, err := sql.Open("sqlite", s.dsn(true))
	if err != nil {
		return nil, s.explain(err)
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	// The first connection to a new file may find another process switching it to WAL or creating the tables.
	deadline := time.Now().Add(s.busyTimeout)
	for {
		err = migrate(context.Background(), db, s.path)
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		db.Close()
		return nil, s.explain(err)
	}
	s.write = db
	return db, nil
}

// reader is the pool that reads; without a file it is the writer's one connection.
func (s *Store) reader() (*sql.DB, error) {
	w, err := s.open()
	if err != nil || s.path == "" {
		return w, err
	}
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.read == nil {
		if s.write == nil {
			return nil, ErrClosed
		}
		if s.read, err = sql.Open("sqlite", s.dsn(false)); err != nil {
			return nil, s.explain(err)
		}
		s.read.SetMaxOpenConns(4)
		s.read.SetMaxIdleConns(1)
	}
	return s.read, nil
}

func (s *Store) dsn(write bool) string {
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", s.busyTimeout.Milliseconds()))
	q.Add("_pragma", "cache_size(-1024)") // KiB a connection: idle memory counts
	if s.path == "" {
		return "file::memory:?" + q.Encode()
	}
	if write {
		q.Add("_pragma", "synchronous(NORMAL)")
		q.Add("_pragma", "journal_size_limit(16777216)") // bytes the WAL keeps after a big session
		q.Set("_txlock", "immediate")
	} else {
		q.Add("_pragma", "query_only(1)")
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}).String()
}

// prepareFile makes the folder (0700) and the file (0600): sessions quote source code and commands. SQLite gives
// its -wal and -shm files the mode of the file.
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}
