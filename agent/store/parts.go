package store

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"strconv"
)

// A very long event is stored in parts: SQLite needs a value twice while it stores it, once as it was given and once in the row, and keeps
// that memory for later. With parts of a megabyte an event of 32 MB takes 2 MB there. The row of the event then holds only how many parts
// there are. Files of earlier versions have no such events, and an earlier version finds the event without its contents.
const (
	longData = 4 << 20 // bytes of an event above which it is stored in parts
	partSize = 1 << 20 // bytes of a part
)

// partsTable has an integer key of its own, because salvage reads tables by one.
const partsTable = `CREATE TABLE IF NOT EXISTS event_parts(id INTEGER PRIMARY KEY, key INTEGER NOT NULL, n INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(key, n))`

// partsHead begins the data of a row whose event is in parts; the number of parts and partsEnd follow. No event has such a member.
var (
	partsHead = []byte(`{"pillion.parts":`)
	partsEnd  = []byte(`}`)
)

// partsOf reads how many parts an event has from the data of its row; false for an event that is not in parts.
func partsOf(data []byte) (n int, ok bool) {
	rest, ok := bytes.CutPrefix(data, partsHead)
	if !ok || !bytes.HasSuffix(rest, partsEnd) {
		return 0, false
	}
	n, err := strconv.Atoi(string(bytes.TrimSuffix(rest, partsEnd)))
	return n, err == nil && n > 0
}

// insertParts stores a long event, and reports false when its key is taken.
func insertParts(t tx, r row) (done bool, err error) {
	parts := (r.size() + partSize - 1) / partSize
	head := append(strconv.AppendInt(bytes.Clone(partsHead), int64(parts), 10), partsEnd...)
	res, err := t.Exec(insertTexts()[0], r.key, r.Time.UnixMicro(), r.Type, head)
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	// Made with the first long event: a file without one stays as every version knows it.
	if _, err := t.Exec(partsTable); err != nil {
		return false, err
	}
	n := 0
	insert := func(part []byte) {
		if err == nil {
			_, err = t.Exec("INSERT OR REPLACE INTO event_parts(key, n, data) VALUES (?,?,?)", r.key, n, part)
			n++
		}
	}
	if r.Long == nil {
		for part := range slices.Chunk(r.Data, partSize) {
			insert(part)
		}
		return err == nil, err
	}
	part := make([]byte, 0, partSize)
	r.Long.Pieces(func(piece []byte) {
		for len(piece) > 0 {
			k := min(partSize-len(part), len(piece))
			if part, piece = append(part, piece[:k]...), piece[k:]; len(part) == partSize {
				insert(part)
				part = part[:0]
			}
		}
	})
	if len(part) > 0 {
		insert(part)
	}
	return err == nil, err
}

// hasParts reports whether a database has the table of parts. in is the database or a transaction.
func hasParts(in interface {
	QueryRow(q string, args ...any) *sql.Row
}) (bool, error) {
	var n int
	err := in.QueryRow("SELECT count(*) FROM sqlite_master WHERE name = 'event_parts'").Scan(&n)
	return n > 0, err
}

// longEvents counts the events in parts.
func longEvents(t *sql.Tx) (n int, err error) {
	err = t.QueryRow("SELECT count(*) FROM events WHERE length(data) < 64 AND substr(data, 1, ?) = ?", len(partsHead), partsHead).Scan(&n)
	return n, err
}

// insertPart adds a part to a file that is being repaired.
const insertPart = "INSERT OR IGNORE INTO event_parts(id, key, n, data) VALUES (?,?,?,?)"

// deleteParts removes the parts of the events with keys in a range.
func deleteParts(t tx, from, to int64) error {
	if _, ok := t.b.(*sqlite); !ok {
		return nil // a server stores an event in one piece
	}
	if has, err := hasParts(t); err != nil || !has {
		return err
	}
	_, err := t.Exec("DELETE FROM event_parts WHERE key BETWEEN ? AND ?", from, to)
	return err
}

// wholeData returns the data of an event whose row has this data. query is the database's or the transaction's. Where parts are missing,
// as after a damage, the event is left without its contents.
func wholeData(query func(q string, args ...any) (*sql.Rows, error), key int64, data []byte) ([]byte, error) {
	want, ok := partsOf(data)
	if !ok {
		return data, nil
	}
	rows, err := query("SELECT data FROM event_parts WHERE key = ? ORDER BY n", key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	whole, n := make([]byte, 0, want*partSize), 0
	for ; rows.Next(); n++ {
		var part sql.RawBytes // valid until the next row, and copied only once
		if err := rows.Scan(&part); err != nil {
			return nil, err
		}
		whole = append(whole, part...)
	}
	if n != want {
		return data, rows.Err()
	}
	return whole, rows.Err()
}

// joinParts gives the events of a page their whole data: of the i-th key, event(i).
func joinParts(ctx context.Context, db db, keys []int64, event func(i int) *Event) (err error) {
	query := func(q string, args ...any) (*sql.Rows, error) { return db.Query(ctx, q, args...) }
	for i, key := range keys {
		if e := event(i); len(e.Data) > 0 {
			if e.Data, err = wholeData(query, key, e.Data); err != nil {
				return err
			}
		}
	}
	return nil
}
