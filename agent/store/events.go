package store

import (
	"context"
	"database/sql"
	"slices"
)

// Append queues events of a session; it never waits for the disk. Data must not be changed afterwards.
func (s *Store) Append(session string, events ...Event) {
	if s.forgetful {
		return
	}
	// The usual case is one event, which needs no slice.
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

// pageSize is how many rows are read at a time: a reader must not hold a read transaction while its consumer
// thinks, or the WAL grows without end.
const pageSize = 256

// Events yields a session's events after from (0: all), in order: those on disk and those still queued. yield may
// use the store. A session that does not exist has none.
func (s *Store) Events(ctx context.Context, session string, from int64, yield func(Event) error) error {
	return s.EventsOf(ctx, session, from, nil, yield)
}

// EventsOf is Events for some types only; nil is all. The data of others is not read.
func (s *Store) EventsOf(ctx context.Context, session string, from int64, types []string, yield func(Event) error) error {
	// An event that is in both is yielded once, because its number is not above next any more.
	queued := s.queuedEvents(session) // before the disk is read, so that what is committed meanwhile is in either
	next := from
	err := s.storedEvents(ctx, session, from, types, func(e Event) error {
		next = e.Seq
		return yield(e)
	})
	// With events in memory a session can still be shown, so the error alone does not end the reading.
	if err != nil && len(queued) == 0 {
		return err
	}
	if err != nil && s.Problem() == nil {
		return err // the consumer's own error, or the context's; with a problem, what is in memory is still delivered
	}
	for _, e := range queued {
		if e.Seq <= next || types != nil && !slices.Contains(types, e.Type) {
			continue
		}
		next = e.Seq
		if err := yield(*e); err != nil {
			return err
		}
	}
	return nil
}

// LastSeq is the number of a session's last event, on disk or queued; 0 when there is none. The error means that the disk could
// not be read and nothing is queued.
func (s *Store) LastSeq(ctx context.Context, session string) (int64, error) {
	var last int64
	for _, e := range s.queuedEvents(session) {
		last = max(last, e.Seq)
	}
	db, err := s.reader()
	if err == nil {
		var stored int64
		stored, err = lastStored(ctx, db, s.b.clean(session))
		err, last = s.explain(err), max(last, stored)
	}
	if err != nil && last > 0 {
		err = nil // it lives in memory
	}
	return last, err
}

// lastStored is the number of the last event on disk: one step in the b-tree of the keys, whatever the session's length.
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

// queuedEvents are a session's events that are not committed yet, in order. The writer does not change them, so they are not copied.
// The writer may commit them while the caller reads; they stay valid.
func (s *Store) queuedEvents(session string) []*Event {
	s.adopt()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Event
	for i := range s.queue {
		if o := &s.queue[i]; o.event != nil && o.session == session {
			out = append(out, o.event)
		}
	}
	return out
}

// storedEvents yields the events on disk, page by page, without a transaction around them: yield may write to the store.
func (s *Store) storedEvents(ctx context.Context, session string, from int64, types []string, yield func(Event) error) error {
	db, err := s.reader()
	if err != nil {
		return err
	}
	var num int64
	if err := db.QueryRow(ctx, "SELECT num FROM sessions WHERE id = ?", s.b.clean(session)).Scan(&num); err != nil {
		if err == sql.ErrNoRows {
			return nil
		}
		return s.explain(err)
	}
	// Each page is a query of its own that continues after the last key.
	for {
		page, err := readPage(ctx, db, num, from, types)
		if err != nil {
			return s.explain(err)
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
	// The range of keys is the session's, so the query reads one piece of the table, whatever else the file holds.
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
	for rows.Next() {
		var e Event
		var key, micro int64
		if err := rows.Scan(&key, &micro, &e.Type, &e.Data); err != nil {
			return nil, err
		}
		e.Seq, e.Time = key&maxSeq, unixMicro(micro)
		page = append(page, e)
	}
	return page, rows.Err()
}
