package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite": SQLite without cgo
)

// readers is how many connections read at once; in WAL mode readers and the writer do not wait for each other. Four sessions can be
// opened at once without waiting.
const readers = 4

// sqlite is one file; the empty path is a database in memory.
type sqlite struct {
	path        string
	busyTimeout time.Duration // how long a write waits for another process
	unsalvaged  error         // why a damaged file could not be replaced; set under openMu before it is read
}

func (s *sqlite) name() string             { return s.path }
func (s *sqlite) bind(query string) string { return query }
func (s *sqlite) clean(text string) string { return text }

// open makes the file where it is missing, and migrates it.
func (s *sqlite) open() (*sql.DB, error) {
	if s.path != "" {
		if err := prepareFile(s.path); err != nil {
			return nil, err
		}
	}
	d, err := sql.Open("sqlite", s.dsn(true))
	if err != nil {
		return nil, err
	}
	// One connection: SQLite has one writer at a time in any case.
	d.SetMaxOpenConns(1)
	d.SetMaxIdleConns(1)
	// On a new file another process may be switching it to WAL or creating the tables at this moment.
	deadline := time.Now().Add(s.busyTimeout)
	for {
		err = migrate(context.Background(), d, s.path)
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// reader makes the reading pool. A database in memory exists in one connection only, so its reader is the writer.
func (s *sqlite) reader(write *sql.DB) (*sql.DB, error) {
	if s.path == "" {
		return write, nil
	}
	d, err := sql.Open("sqlite", s.dsn(false))
	if err != nil {
		return nil, err
	}
	d.SetMaxOpenConns(readers)
	d.SetMaxIdleConns(readers) // opening a connection takes a hundred times as long as a query
	d.SetConnMaxIdleTime(5 * time.Second)
	return d, nil
}

func (s *sqlite) begin(ctx context.Context, _ *writeQueue, d *sql.DB) (*sql.Tx, error) {
	return d.BeginTx(ctx, nil)
}

// insert divides the rows into powers of two: six statements, which stay prepared, serve every number of rows. Very long events are
// stored one by one; see insertParts.
func (s *sqlite) insert(t tx, rows []row) (done int64, err error) {
	if i := slices.IndexFunc(rows, func(r row) bool { return r.size() > longData }); i >= 0 {
		done, err = s.insert(t, rows[:i])
		if err != nil {
			return done, err
		}
		if ok, err := insertParts(t, rows[i]); err != nil {
			return done, err
		} else if ok {
			done++
		}
		more, err := s.insert(t, rows[i+1:])
		return done + more, err
	}
	texts := insertTexts()
	args := make([]any, 0, 4*min(len(rows), rowsPerInsert))
	for len(rows) > 0 {
		// The largest power of two that is not above the number of rows left.
		power := min(bits.Len(uint(len(rows)))-1, len(texts)-1)
		args = args[:0]
		for _, r := range rows[:1<<power] {
			args = append(args, r.key, r.Time.UnixMicro(), r.Type, r.whole().Data)
		}
		rows = rows[1<<power:]
		res, err := t.Exec(texts[power], args...)
		if err != nil {
			return done, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// insertTexts are the statements that insert 1, 2, 4 … rowsPerInsert rows.
var insertTexts = sync.OnceValue(func() (texts []string) {
	for n := 1; n <= rowsPerInsert; n *= 2 {
		texts = append(texts, "INSERT OR IGNORE INTO events(key, time, type, data) VALUES "+strings.Repeat("(?,?,?,?),", n-1)+"(?,?,?,?)")
	}
	return texts
})

// fenced is always empty: the operating system's lock on a file is not lost while the process lives.
func (s *sqlite) fenced(tx, []string) ([]*FencedError, error) { return nil, nil }

// dsn is the address of the file for the driver. A writing transaction takes the lock at its start (immediate): one that begins as a
// reader and writes later fails at once with SQLITE_BUSY when another process has written meanwhile, whatever the timeout.
func (s *sqlite) dsn(write bool) string {
	q := url.Values{}
	// The timeout belongs to the connection; SQLite does not store it in the file.
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", s.busyTimeout.Milliseconds()))
	q.Add("_pragma", "cache_size(-1024)") // KiB a connection: idle memory counts
	if s.path == "" {
		return "file::memory:?" + q.Encode()
	}
	if write {
		// In WAL mode NORMAL syncs at checkpoints only; the package comment says what a power failure may cost.
		q.Add("_pragma", "synchronous(NORMAL)")
		q.Add("_pragma", "journal_size_limit(16777216)") // bytes the WAL keeps after a big session
		q.Set("_txlock", "immediate")
	} else {
		// A mistake in a query must not write past the writer.
		q.Add("_pragma", "query_only(1)")
	}
	// A path may contain ? and #, which would end it in the address.
	return (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}).String()
}

// prepareFile makes the folder (mode 0700) and the file (0600), because sessions quote source code and commands. SQLite gives its -wal
// and -shm files the mode of the file.
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// The mode counts at creation only; see below for a file that is there.
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
	// A file from a copy or a backup may be readable by others. chmod is refused on a file of another owner, which is not a reason to fail.
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}
