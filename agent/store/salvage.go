package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// salvage carries what can be read of a damaged file to a new one at its path, and keeps the damaged one beside it. The caller has
// closed the file. It changes nothing when another process has the file open, because that one would write on into the old file.
//
// SQLite reads every page that it reaches from a sound one. So the tables are read by ranges of their keys, from both ends up to the
// first page that fails, and what is between in halves, until single keys fail. A first page that is lost (with it the schema) is
// taken from a new file: the schema is ours, so its tables begin at the same pages.
func salvage(path string, patience time.Duration) (*Problem, error) {
	// Two processes that find the same damage would each replace the other's new file.
	lock, err := lockFile(path + ".salvage")
	if err != nil {
		return nil, fmt.Errorf("another process is saving what can be read of %s: %w", path, err)
	}
	defer func() {
		os.Remove(lock.Name())
		lock.Close()
	}()
	if inUse(path) {
		return nil, errors.New("another Pillion process has it open; end it and start again")
	}
	work, err := os.MkdirTemp(filepath.Dir(path), ".salvage-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	from, to := &sqlite{path: filepath.Join(work, "old.db"), busyTimeout: patience}, &sqlite{path: filepath.Join(work, "new.db"), busyTimeout: patience}
	// The write-ahead log may hold the last commits, so it is copied too.
	for _, end := range []string{"", "-wal"} { // never work on the only copy; -shm is made anew
		if err := copyFile(path+end, from.path+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	dst, err := to.open()
	if err != nil {
		return nil, err
	}
	saved, err := carry(from, dst, work)
	if err == nil {
		_, err = dst.Exec("PRAGMA wal_checkpoint(TRUNCATE)") // so that the new file is one file
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		return nil, err
	}
	// local time to the second, for the person who looks for it
	aside := fmt.Sprintf("%s.damaged-%s", path, time.Now().Format("20060102-150405"))
	for _, end := range []string{"-wal", ""} { // the old log first: it must never be applied to the new file
		if err := os.Rename(path+end, aside+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	os.Remove(path + "-shm")
	// Both are in one folder, so the rename is atomic.
	if err := os.Rename(to.path, path); err != nil {
		return nil, err
	}
	return &Problem{Kind: ProblemSalvaged, Path: path, Message: fmt.Sprintf(
		"%s was damaged. %d sessions with %d events, and %d remembered permissions, could be read and are in a new file; %s. The damaged file is kept as %s",
		path, saved.sessions, saved.events, saved.grants, saved.missing(), aside)}, nil
}

// saved counts rows that were carried over.
// Rows that two ways of reading find are counted once.
type saved struct {
	sessions, events, grants int
	heads                    int // sessions whose head was lost: their events tell what they were
	holes                    int // ranges of keys that could not be read
}

func (s saved) missing() string {
	switch {
	case s.holes == 0 && s.heads == 0:
		return "nothing is known to be missing"
	case s.heads == 0:
		return fmt.Sprintf("at least %d places could not be read", s.holes)
	}
	return fmt.Sprintf("at least %d places could not be read, and %d sessions have lost their titles", s.holes, s.heads)
}

// carry copies the rows of all tables.
func carry(from *sqlite, dst *sql.DB, work string) (saved, error) {
	src, err := sql.Open("sqlite", from.dsn(true))
	if err != nil {
		return saved{}, err
	}
	defer func() { src.Close() }()
	src.SetMaxOpenConns(1)
	// A text file at this path may be the person's: it is left alone.
	if file, err := openPages(from.path); err != nil {
		return saved{}, err
	} else if !file.ours() {
		return saved{}, errors.New("it is no database")
	}
	var n int
	// Without a readable schema SQLite finds no table. Ours is always the same, so a new file's first page serves.
	if err := src.QueryRow("SELECT count(*) FROM sqlite_master WHERE name IN ('sessions', 'events', 'grants')").Scan(&n); err != nil || n < 3 {
		src.Close()
		if err := firstPage(from.path, work); err != nil {
			return saved{}, err
		}
		if src, err = sql.Open("sqlite", from.dsn(true)); err != nil {
			return saved{}, err
		}
		src.SetMaxOpenConns(1)
	}
	tx, err := dst.Begin()
	if err != nil {
		return saved{}, err
	}
	defer tx.Rollback()
	var s saved
	budget := 20_000 // queries; a file that fails everywhere must end too
	// put inserts what was read; IGNORE drops a row that was found before.
	table := func(name, key, columns string, put string, count *int) error {
		width := strings.Count(columns, ",") + 1
		t := &salvagedTable{src: src, name: name, key: key, columns: columns, width: width, budget: &budget, put: func(row []any) error {
			if name == "events" && !isJSON(row[3]) { // damage inside a text that SQLite does not notice
				return nil
			}
			res, err := tx.Exec(put, row...)
			if err != nil {
				return nil // a row whose bytes are damaged breaks a rule of the table: it is not ours any more
			}
			added, _ := res.RowsAffected()
			*count += int(added)
			return nil
		}}
		err := t.read(0, 1<<63-1, 0)
		s.holes += t.holes
		return err
	}
	holes := 0
	if err := table("sessions", "num", "num, id, cwd, title, parent, created, updated, info", "INSERT OR IGNORE INTO sessions(num, id, cwd, title, parent, created, updated, info) VALUES (?,?,?,?,?,?,?,?)", &s.sessions); err != nil {
		return s, err
	}
	// Without a hole among the heads all were read; events without a head then belong to deleted sessions.
	holes = s.holes
	if err := table("events", "key", "key, time, type, data", "INSERT OR IGNORE INTO events(key, time, type, data) VALUES (?,?,?,?)", &s.events); err != nil {
		return s, err
	}
	if err := table("grants", "id", "id, project, permission, pattern, created", "INSERT OR IGNORE INTO grants(id, project, permission, pattern, created) VALUES (?,?,?,?,?)", &s.grants); err != nil {
		return s, err
	}
	if s.holes > 0 {
		if err := s.pages(src, from.path, tx, holes == 0); err != nil {
			return s, err
		}
	}
	// Events whose session's head is lost would be found by nobody.
	// They get a session each, under the number in their keys.
	now := time.Now()
	res, err := tx.Exec(`INSERT INTO sessions(num, id, cwd, title, parent, created, updated, info)
		SELECT DISTINCT key >> 32, 'recovered_' || (key >> 32) || '_' || ?, '', 'Recovered session', '', ?, ?, '{}' FROM events
		WHERE key >> 32 NOT IN (SELECT num FROM sessions)`, now.Unix(), now.UnixMicro(), now.UnixMicro())
	if err != nil {
		return s, err
	}
	lost, _ := res.RowsAffected()
	s.heads = int(lost)
	s.sessions += s.heads
	return s, tx.Commit()
}

// pages adds the rows that SQLite does not reach any more but whose pages are whole. Pages that were freed still have the rows of
// deleted sessions: with known, all heads were read, and events of others are not wanted.
func (s *saved) pages(src *sql.DB, path string, tx *sql.Tx, known bool) error {
	// Only pages in the file are looked at, so the log is moved into it first.
	var a, b, c any
	_ = src.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&a, &b, &c) // what it cannot move is lost here
	file, err := openPages(path)
	if err != nil {
		return err
	}
	add := func(count *int, query string, args ...any) {
		if res, err := tx.Exec(query, args...); err == nil {
			n, _ := res.RowsAffected()
			*count += int(n)
		}
	}
	file.rows(func(key int64, row []any) {
		if key <= 0 || len(row) < 4 || row[0] != nil { // the key's own column is empty in our tables
			return
		}
		// The shapes are those of sessions (id, cwd, title, parent, created, updated, info) and of events (time,
		// type, data).
		switch kind := shape(row[1:]); {
		case kind == "ssssiib" && !known:
			add(&s.sessions, "INSERT OR IGNORE INTO sessions(num, id, cwd, title, parent, created, updated, info) VALUES (?,?,?,?,?,?,?,?)", append([]any{key}, row[1:]...)...)
		// an event whose data is damaged
		case kind == "isb" && !isJSON(row[3]):
		case kind == "isb" && known:
			add(&s.events, "INSERT OR IGNORE INTO events(key, time, type, data) SELECT ?,?,?,? WHERE EXISTS (SELECT 1 FROM sessions WHERE num = ?)", key, row[1], row[2], row[3], key>>32)
		case kind == "isb":
			add(&s.events, "INSERT OR IGNORE INTO events(key, time, type, data) VALUES (?,?,?,?)", key, row[1], row[2], row[3])
		}
	})
	return nil
}

// isJSON reports whether a column has JSON, as every event's data does.
func isJSON(column any) bool {
	switch data := column.(type) {
	case []byte:
		return json.Valid(data)
	case string:
		return json.Valid([]byte(data))
	}
	return false
}

// shape is a letter a column: i for an integer, s for a text, b for bytes, ? for anything else. A blob that was stored from a text
// counts as bytes in the last column.
func shape(row []any) string {
	var b strings.Builder
	for i, v := range row {
		switch v.(type) {
		case int64:
			b.WriteByte('i')
		case string:
			if i == len(row)-1 {
				b.WriteByte('b')
			} else {
				b.WriteByte('s')
			}
		case []byte:
			b.WriteByte('b')
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// salvagedTable reads one table of a damaged file by its integer key.
type salvagedTable struct {
	src                *sql.DB
	name, key, columns string
	width              int
	put                func(row []any) error
	budget             *int // queries that are left
	holes              int
}

// read gives put every row with lo <= key <= hi that can be read. depth is how often the range was halved.
// What lies between the last key of the way up and the last key of the way down is halved.
func (t *salvagedTable) read(lo, hi int64, depth int) error {
	if lo > hi {
		return nil
	}
	last, whole, err := t.scan(lo, hi, "ASC")
	if err != nil || whole {
		return err
	}
	if last >= lo {
		if last == hi {
			return nil
		}
		lo = last + 1
	}
	last, whole, err = t.scan(lo, hi, "DESC")
	if err != nil || whole {
		return err
	}
	if last >= 0 {
		hi = last - 1
	}
	// 63 halvings reach a single key.
	if lo >= hi || depth > 64 || *t.budget <= 0 {
		t.holes++
		return nil
	}
	mid := lo + (hi-lo)/2
	if err := t.read(lo, mid, depth+1); err != nil {
		return err
	}
	return t.read(mid+1, hi, depth+1)
}

// scan reads in one direction until it fails. last is the key of the last row, -1 without one; whole says that it did not fail. The
// error is put's.
func (t *salvagedTable) scan(lo, hi int64, order string) (last int64, whole bool, err error) {
	last = -1
	// each scan is a query, and each hole costs two
	if *t.budget--; *t.budget < 0 {
		return last, false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a page that points back at itself is read for ever
	defer cancel()
	rows, err := t.src.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s BETWEEN ? AND ? ORDER BY %s %s", t.columns, t.name, t.key, t.key, order), lo, hi)
	if err != nil {
		return last, false, nil
	}
	defer rows.Close()
	for rows.Next() {
		row, at := make([]any, t.width), make([]any, t.width)
		for i := range row {
			at[i] = &row[i]
		}
		// a value that cannot be read ends this direction
		if err := rows.Scan(at...); err != nil {
			return last, false, nil
		}
		key, ok := row[0].(int64)
		if !ok || key < lo || key > hi || last >= 0 && (order == "ASC") == (key <= last) {
			return last, false, nil // rows out of order: the page is not what it seems
		}
		last = key
		if err := t.put(row); err != nil {
			return last, false, err
		}
	}
	return last, rows.Err() == nil, nil
}

// firstPage writes the first page of a new file over a damaged one's: the header and the schema.
func firstPage(path, work string) error {
	fresh := &sqlite{path: filepath.Join(work, "first.db"), busyTimeout: time.Second}
	d, err := fresh.open()
	if err != nil {
		return err
	}
	_, err = d.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	// 4096 is SQLite's default page size; another one is refused below.
	page := make([]byte, 4096)
	f, err := os.Open(fresh.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.ReadFull(f, page); err != nil {
		return err
	}
	// path is the copy in the work folder, never the file of the person
	old, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint16(page[16:])) // SQLite's file format, 1.3: the header's fields
	if size == 1 {
		size = 65536
	}
	if size != len(page) {
		return fmt.Errorf("pages of %d bytes are not expected", size)
	}
	binary.BigEndian.PutUint32(page[28:], uint32((info.Size()+int64(size)-1)/int64(size))) // pages in the file
	copy(page[92:96], page[24:28])                                                         // and the size is valid
	binary.BigEndian.PutUint32(page[32:], 0)                                               // no free pages are known
	binary.BigEndian.PutUint32(page[36:], 0)
	_, err = old.WriteAt(page, 0)
	return err
}

// copyFile copies a file's bytes to a private file.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
