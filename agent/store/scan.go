package store

import (
	"context"
	"strings"
	"time"
)

// scanPage is how many events Scan reads at a time; it bounds the memory of a scan.
const scanPage = 1024

// Scan yields the stored events of some types since a moment (the zero time is all), session after session and in order within one,
// without holding more than a page in memory. Events that are still queued, and sessions that were not used since then, are not among
// them. types must not be empty. The heads have no Info.
func (s *Store) Scan(ctx context.Context, since time.Time, types []string, yield func(Session, Event) error) error {
	// All heads are held for the time of the scan; without Info they are small.
	var heads map[int64]Session
	err := s.reading(ctx, func(db db) (err error) {
		heads, err = headsByNum(ctx, db, since)
		return err
	})
	if err != nil {
		return err
	}
	for at := int64(-1); ; {
		var page []row
		var next int64
		err := s.reading(ctx, func(db db) (err error) {
			page, next, err = scan(ctx, db, at, since, types)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range page {
			// A session that was created after the heads were read is not part of this scan.
			h, ok := heads[r.key>>32]
			if !ok {
				continue // made meanwhile
			}
			if err := yield(h, *r.Event); err != nil {
				return err
			}
		}
		if len(page) < scanPage {
			return nil
		}
		at = next
	}
}

// headsByNum are the heads of the sessions used since a moment, by their number, which is the high half of an event's key.
func headsByNum(ctx context.Context, db db, since time.Time) (map[int64]Session, error) {
	rows, err := db.Query(ctx, "SELECT num, id, cwd, title, parent, created, updated FROM sessions WHERE updated >= ?", micro(since))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	heads := map[int64]Session{}
	for rows.Next() {
		var num, created, updated int64
		var h Session
		if err := rows.Scan(&num, &h.ID, &h.Cwd, &h.Title, &h.Parent, &created, &updated); err != nil {
			return nil, err
		}
		h.Created, h.Updated = unixMicro(created), unixMicro(updated)
		heads[num] = h
	}
	return heads, rows.Err()
}

// micro is a time as it is stored; the zero time is before everything.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// scan reads one page of events after a key; last is the key after which the next page begins. The database checks the types, so that the
// data of other events is not read.
func scan(ctx context.Context, db db, after int64, since time.Time, types []string) (page []row, last int64, err error) {
	args := []any{after, micro(since)}
	for _, t := range types {
		args = append(args, t)
	}
	rows, err := db.Query(ctx, "SELECT key, time, type, data FROM events WHERE key > ? AND time >= ? AND type IN ("+
		marks(len(types))+") ORDER BY key LIMIT ?", append(args, scanPage)...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	var keys []int64
	for rows.Next() {
		r := row{Event: &Event{}}
		var at int64
		if err := rows.Scan(&r.key, &at, &r.Type, &r.Data); err != nil {
			return nil, 0, err
		}
		r.Seq, r.Time, last = r.key&maxSeq, unixMicro(at), r.key
		page, keys = append(page, r), append(keys, r.key)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	rows.Close() // parts may have to be read on the same connection
	return page, last, joinParts(ctx, db, keys, func(i int) *Event { return page[i].Event })
}

// marks are n placeholders of a query.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
