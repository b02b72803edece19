package store

import (
	"context"
	"database/sql"
	"slices"
)

// Append queues events of a session and never waits for the disk. Data must not be changed afterwards, since it is not copied.
func (s *Store) Append(session string, events ...Event) {
	if s.forgetful {
		return
	}
	// One event is the usual case, and needs no slice.
	if len(events) == 1 {
		e := events[0]
		s.enqueue(op{session: session, event: &e})
		return
	}
	ops := make([]op, len(events))
	for i := range events {
		ops[i] = op{session: session, event: &events[i]}
	}
	s.enqueue(ops...)
}

// pageSize is how many rows are read at a time. A consumer may be slow, and a read transaction that stays open would keep SQLite from
// emptying the write-ahead log.
const pageSize = 256

// Events yields the events of a session after number from (0: all) in order, first those on disk, then those still queued. yield may use
// the store. A session that does not exist has no events.
func (s *Store) Events(ctx context.Context, session string, from int64, yield func(Event) error) error {
	return s.EventsOf(ctx, session, from, nil, yield)
}

// EventsOf is Events for some types only (nil: all). The database does not read the data of other types.
func (s *Store) EventsOf(ctx context.Context, session string, from int64, types []string, yield func(Event) error) error {
	// An event that is found in both is yielded once: its number is then not greater than next.
	queued := s.queuedEvents(session) // before the disk is read, so that an event that is committed meanwhile is in one of the two at least
	next := from
	err := s.storedEvents(ctx, session, from, types, func(e Event) error {
		next = e.Seq
		return yield(e)
	})
	// With queued events a session can still be shown, so a failure of the disk alone does not end the reading.
	if err != nil && len(queued) == 0 {
		return err
	}
	if err != nil && s.Problem() == nil {
		return err // the consumer's own error, or that of ctx
	}
	for _, e := range queued {
		if e.Seq <= next || types != nil && !slices.Contains(types, e.Type) {
			continue
		}
		next = e.Seq
		if err := yield(e.whole()); err != nil {
			return err
		}
	}
	return nil
}

// LastSeq is the number of a session's last event, on disk or queued; 0 when it has none. The error means that the disk could not be read
// and nothing is queued.
func (s *Store) LastSeq(ctx context.Context, session string) (int64, error) {
	var last int64
	for _, e := range s.queuedEvents(session) {
		last = max(last, e.Seq)
	}
	err := s.reading(ctx, func(db db) error {
		stored, err := lastStored(ctx, db, s.b.clean(session))
		last = max(last, stored)
		return err
	})
	if err != nil && last > 0 {
		err = nil // the events in memory come after all others
	}
	return last, err
}

// lastStored is the number of the last event on disk. It takes one step in the b-tree of the keys, however long the session is.
func lastStored(ctx context.Context, db db, session string) (int64, error) {
	var num, key int64
	err := db.QueryRow(ctx, "SELECT num FROM sessions WHERE id = ?", session).Scan(&num)
	if err == nil {
		err = db.QueryRow(ctx, "SELECT key FROM events WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
			eventKey(num, 0), eventKey(num, maxSeq)).Scan(&key)
	}
	if err == sql.ErrNoRows {
		return 0, nil
	}
	return key & maxSeq, err
}

// storedEvents yields the events on disk, page by page. No transaction is open between pages, so yield may write to the store.
func (s *Store) storedEvents(ctx context.Context, session string, from int64, types []string, yield func(Event) error) error {
	var num int64
	var found bool
	err := s.reading(ctx, func(db db) error {
		err := db.QueryRow(ctx, "SELECT num FROM sessions WHERE id = ?", s.b.clean(session)).Scan(&num)
		if found = err == nil; err == sql.ErrNoRows {
			return nil
		}
		return err
	})
	if err != nil || !found {
		return err
	}
	// Each page is a query that continues after the last key.
	for {
		var page []Event
		err := s.reading(ctx, func(db db) (err error) {
			page, err = readPage(ctx, db, num, from, types)
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range page {
			from = e.Seq
			if err := yield(e); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// readPage reads at most pageSize events after from.
func readPage(ctx context.Context, db db, num, from int64, types []string) ([]Event, error) {
	// The keys of a session are one range, so the query reads one part of the table, whatever else the database holds.
	args, only := []any{eventKey(num, from), eventKey(num, maxSeq)}, ""
	if len(types) > 0 {
		only = " AND type IN (" + marks(len(types)) + ")"
		for _, t := range types {
			args = append(args, t)
		}
	}
	rows, err := db.Query(ctx, "SELECT key, time, type, data FROM events WHERE key > ? AND key <= ?"+only+" ORDER BY key LIMIT ?", append(args, pageSize)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []Event
	var keys []int64
	for rows.Next() {
		var e Event
		var key, micro int64
		if err := rows.Scan(&key, &micro, &e.Type, &e.Data); err != nil {
			return nil, err
		}
		e.Seq, e.Time = key&maxSeq, unixMicro(micro)
		page = append(page, e)
		keys = append(keys, key)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	rows.Close() // parts may have to be read on the same connection
	return page, joinParts(ctx, db, keys, func(i int) *Event { return &page[i] })
}
