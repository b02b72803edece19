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

// salvage carries what can be read of a damaged file to a new file at its path, and keeps the damaged one beside it. The caller has
// closed the file. While another process has the file open nothing is changed, because that process would continue to write to the old file.
//
// SQLite reads every page that it can reach through sound ones. So each table is read by ranges of its keys: from both ends up to the
// first page that fails, then what is between in halves, down to single keys. When the first page is lost, and the schema with it, it
// is taken from a new file: the schema is always ours, so its tables begin at the same pages.
func salvage(path string, patience time.Duration) (*Problem, error) {
	// Two processes that find the same damage at once would each replace the other's new file.
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
	// The write-ahead log may hold the last commits, so it is copied as well.
	for _, end := range []string{"", "-wal"} { // work on a copy only; -shm is made again
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
	// Local time, since a person will look for the file.
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

// saved counts the rows that were carried over; a row that both ways of reading find counts once.
type saved struct {
	sessions, events, grants int
	heads                    int // sessions whose head was lost, and which were made up from their events
	holes                    int // ranges of keys that could not be read
}

// missing tells a person what is known to be lost. The number of rows in a hole is not known, hence "at least".
func (s saved) missing() string {
	switch {
	case s.holes == 0 && s.heads == 0:
		return "nothing is known to be missing"
	case s.heads == 0:
		return fmt.Sprintf("at least %d places could not be read", s.holes)
	}
	return fmt.Sprintf("at least %d places could not be read, and %d sessions have lost their titles", s.holes, s.heads)
}

// carry copies the rows of all tables into dst, in one transaction, and counts them.
func carry(from *sqlite, dst *sql.DB, work string) (saved, error) {
	src, err := sql.Open("sqlite", from.dsn(true))
	if err != nil {
		return saved{}, err
	}
	defer func() { src.Close() }()
	src.SetMaxOpenConns(1)
	// The setting may name a file of the person by mistake, such as a text; that is not replaced.
	if file, err := openPages(from.path); err != nil {
		return saved{}, err
	} else if !file.ours() {
		return saved{}, errors.New("it is no database")
	}
	var n int
	// Without a readable schema SQLite finds no tables. Ours is the same in every file, so the first page of a new one serves.
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
	// IGNORE drops a row that was found before.
	table := func(name, key, columns string, put string, count *int) error {
		width := strings.Count(columns, ",") + 1
		t := &salvagedTable{src: src, name: name, key: key, columns: columns, width: width, budget: &budget, put: func(row []any) error {
			if name == "events" && !isJSON(row[3]) { // damage inside a text, which SQLite does not notice
				return nil
			}
			res, err := tx.Exec(put, row...)
			if err != nil {
				return nil // damaged bytes that break a rule of the table cannot be rows that Pillion wrote
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
	// No hole among the heads means that all of them were read. Events without a head then belong to deleted sessions; see pages.
	holes = s.holes
	if err := table("events", "key", "key, time, type, data", "INSERT OR IGNORE INTO events(key, time, type, data) VALUES (?,?,?,?)", &s.events); err != nil {
		return s, err
	}
	if long, err := longEvents(tx); err != nil {
		return s, err
	} else if long > 0 {
		if _, err := tx.Exec(partsTable); err != nil {
			return s, err
		}
		var parts int
		if has, err := hasParts(src); err != nil || !has {
			s.holes++ // the schema is lost, and only the pages have the parts; see firstPage
		} else if err := table("event_parts", "id", "id, key, n, data", insertPart, &parts); err != nil {
			return s, err
		}
	}
	if err := table("grants", "id", "id, project, permission, pattern, created", "INSERT OR IGNORE INTO grants(id, project, permission, pattern, created) VALUES (?,?,?,?,?)", &s.grants); err != nil {
		return s, err
	}
	if s.holes > 0 {
		if err := s.pages(src, from.path, tx, holes == 0); err != nil {
			return s, err
		}
	}
	// Events whose head is lost could not be opened by anyone, so they get a session each, under the number in their keys. The time in
	// the id keeps the ids of two repairs apart.
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

// pages adds rows that SQLite can no longer reach although their pages are whole. Freed pages still hold rows of deleted sessions: when
// all heads were read (known), events of other sessions are left out.
func (s *saved) pages(src *sql.DB, path string, tx *sql.Tx, known bool) error {
	// Only the pages of the file are read, so the log is moved into it first.
	var a, b, c any                                                      // what cannot be moved is lost for this way of reading
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
		// The shape tells the table: sessions have id, cwd, title, parent, created, updated and info, events have time, type and data.
		switch kind := shape(row[1:]); {
		case kind == "ssssiib" && !known:
			add(&s.sessions, "INSERT OR IGNORE INTO sessions(num, id, cwd, title, parent, created, updated, info) VALUES (?,?,?,?,?,?,?,?)", append([]any{key}, row[1:]...)...)
		// An event whose data is damaged is left out.
		case kind == "isb" && !isJSON(row[3]):
		case kind == "isb" && known:
			add(&s.events, "INSERT OR IGNORE INTO events(key, time, type, data) SELECT ?,?,?,? WHERE EXISTS (SELECT 1 FROM sessions WHERE num = ?)", key, row[1], row[2], row[3], key>>32)
		// Parts of a long event have id, key, n and data.
		case kind == "iib":
			add(new(int), insertPart, append([]any{key}, row[1:]...)...)
		case kind == "isb":
			add(&s.events, "INSERT OR IGNORE INTO events(key, time, type, data) VALUES (?,?,?,?)", key, row[1], row[2], row[3])
		}
	})
	return nil
}

// isJSON reports whether a column holds JSON, as the data of every event does.
func isJSON(column any) bool {
	switch data := column.(type) {
	case []byte:
		return json.Valid(data)
	case string:
		return json.Valid([]byte(data))
	}
	return false
}

// shape has one letter for each column: i for an integer, s for a text, b for bytes, ? for anything else. In the last column a text
// counts as bytes: SQLite stores what was bound, whatever the column's type.
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

// salvagedTable reads one table of a damaged file by its integer key, in ever smaller ranges.
type salvagedTable struct {
	src                *sql.DB
	name, key, columns string
	width              int
	put                func(row []any) error
	budget             *int // queries that are left
	holes              int
}

// read passes every row with lo <= key <= hi that can be read to put. depth is how often the range was halved. The part between the last
// key on the way up and the last key on the way down is halved again.
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
	// 63 halvings of the range of int64 reach a single key.
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

// scan reads in one direction until it fails. last is the key of the last row, or -1; whole means that it did not fail. err is the error
// of put only.
func (t *salvagedTable) scan(lo, hi int64, order string) (last int64, whole bool, err error) {
	last = -1
	// Each scan is a query and each hole takes two; see budget in carry.
	if *t.budget--; *t.budget < 0 {
		return last, false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a page that points back at itself would be read for ever
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
		// A value that cannot be read ends this direction.
		if err := rows.Scan(at...); err != nil {
			return last, false, nil
		}
		key, ok := row[0].(int64)
		if !ok || key < lo || key > hi || last >= 0 && (order == "ASC") == (key <= last) {
			return last, false, nil // keys out of order or range: the page is not what it claims to be
		}
		last = key
		if err := t.put(row); err != nil {
			return last, false, err
		}
	}
	return last, rows.Err() == nil, nil
}

// firstPage overwrites the first page of a damaged copy, the header and the schema, with that of a new file.
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
	// 4096 bytes are SQLite's default page size; a file with another one is refused below.
	page := make([]byte, 4096)
	f, err := os.Open(fresh.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.ReadFull(f, page); err != nil {
		return err
	}
	// path is the copy in the work folder, never the person's file.
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
	binary.BigEndian.PutUint32(page[28:], uint32((info.Size()+int64(size)-1)/int64(size))) // offset 28: pages in the file
	copy(page[92:96], page[24:28])                                                         // offset 92 repeats the change counter at 24: the size at 28 is valid
	binary.BigEndian.PutUint32(page[32:], 0)                                               // offsets 32 and 36: the list of free pages and its length, none
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
