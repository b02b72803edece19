package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
)

// unixMicro is a stored time, in UTC, so that a time is equal before and after it was stored.
func unixMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }

// PutSession queues a head, which creates the session or replaces its head.
func (s *Store) PutSession(h Session) { s.enqueue(op{head: &h}) }

// Session reads one head, queued or stored. ErrNotFound.
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	if h, ok := s.queuedHeads()[id]; ok {
		return *h, nil
	}
	all, err := s.heads(ctx, "WHERE id = ?", s.b.clean(id))
	if err != nil {
		return Session{}, err
	}
	if len(all) == 0 {
		return Session{}, ErrNotFound
	}
	return all[0], nil
}

// Sessions lists the heads of a directory ("" is all), the last used first. Queued heads are among them, so that sessions can be listed
// while the disk cannot be read; the error is returned only when nothing is queued.
func (s *Store) Sessions(ctx context.Context, cwd string) ([]Session, error) {
	queued := s.queuedHeads()
	where, args := "", []any(nil)
	if cwd != "" {
		where, args = "WHERE cwd = ?", []any{s.b.clean(cwd)}
	}
	all, err := s.heads(ctx, where, args...)
	if err != nil && len(queued) == 0 {
		return nil, err
	}
	// A queued head is newer than the stored one of its session.
	for i := range all {
		if h, ok := queued[all[i].ID]; ok {
			all[i] = *h
			delete(queued, h.ID)
		}
	}
	for _, h := range queued {
		if cwd == "" || h.Cwd == cwd {
			all = append(all, *h)
		}
	}
	slices.SortFunc(all, lastUsedFirst)
	return all, nil
}

// lastUsedFirst is the order of a list. Ids break ties, so that two lists have the same order.
func lastUsedFirst(a, b Session) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
}

// headPage is how many heads are read at a time: a page of session/list, and some that are not listed.
const headPage = 128

// EachSession is Sessions one by one, beginning behind the session with the id after ("" is at the first), for a caller that shows one page:
// the database sorts by itself, so only the heads of a page are read of a list of thousands. The sequence ends with its first error,
// ErrNotFound when after is not in the list.
func (s *Store) EachSession(ctx context.Context, cwd, after string) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		queued := s.queuedHeads() // before the disk is read, so that a head that is committed meanwhile is in one of the two at least
		where, args := "WHERE 1 = 1", []any(nil)
		if cwd != "" {
			where, args = "WHERE cwd = ?", []any{s.b.clean(cwd)}
		}
		var last *Session // what was read so far ends with it
		if after != "" {
			h, err := s.Session(ctx, after)
			if err == nil && cwd != "" && h.Cwd != cwd {
				err = ErrNotFound
			}
			if err != nil {
				yield(Session{}, err)
				return
			}
			last = &h
		}
		var fresh []Session
		for _, h := range queued {
			if (cwd == "" || h.Cwd == cwd) && (last == nil || lastUsedFirst(*last, *h) < 0) {
				fresh = append(fresh, *h)
			}
		}
		slices.SortFunc(fresh, lastUsedFirst)
		for {
			behind, at := "", args
			if last != nil {
				us := last.Updated.UnixMicro()
				behind, at = " AND (updated < ? OR updated = ? AND id < ?)", append(slices.Clone(args), us, us, last.ID)
			}
			page, err := s.heads(ctx, where+behind+" ORDER BY updated DESC, id DESC LIMIT ?", append(slices.Clone(at), headPage)...)
			if err != nil && len(queued) == 0 {
				yield(Session{}, err)
				return
			}
			for _, h := range page {
				for ; len(fresh) > 0 && lastUsedFirst(fresh[0], h) < 0; fresh = fresh[1:] {
					if !yield(fresh[0], nil) {
						return
					}
				}
				// A queued head is newer than the stored one of its session, and has its place among the fresh ones.
				if queued[h.ID] == nil && !yield(h, nil) {
					return
				}
			}
			if len(page) < headPage {
				break
			}
			last = &page[len(page)-1]
		}
		for _, h := range fresh {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// Delete removes a session with its events and its child sessions, and returns when that is committed. ErrNotFound.
func (s *Store) Delete(ctx context.Context, id string) error {
	// Delete runs in the writer's transaction, behind everything that is queued for the session: events that came later would create it
	// again.
	return s.do(ctx, func(tx tx) error {
		// UNION, unlike UNION ALL, ends also where parents form a circle.
		rows, err := tx.Query(`WITH RECURSIVE t(num, id) AS (SELECT num, id FROM sessions WHERE id = ?
			UNION SELECT s.num, s.id FROM sessions s JOIN t ON s.parent = t.id) SELECT num, id FROM t`, id)
		if err != nil {
			return err
		}
		type session struct {
			num int64
			id  string
		}
		var all []session
		for rows.Next() {
			var one session
			if err := rows.Scan(&one.num, &one.id); err != nil {
				// The connection can run no other statement while rows are open.
				rows.Close()
				return err
			}
			all = append(all, one)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if len(all) == 0 {
			return ErrNotFound
		}
		for _, one := range all {
			if err := deleteParts(tx, eventKey(one.num, 0), eventKey(one.num, maxSeq)); err != nil {
				return err
			}
			for _, step := range []struct {
				q    string
				args []any
			}{
				// The events are one range of keys, which SQLite deletes without searching.
				{"DELETE FROM events WHERE key BETWEEN ? AND ?", []any{eventKey(one.num, 0), eventKey(one.num, maxSeq)}},
				{"DELETE FROM changes WHERE session = ?", []any{one.id}},
				{"DELETE FROM sessions WHERE num = ?", []any{one.num}},
			} {
				if _, err := tx.Exec(step.q, step.args...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// heads reads heads. where is a clause of this package and never a text from outside: it becomes part of the statement.
func (s *Store) heads(ctx context.Context, where string, args ...any) ([]Session, error) {
	var all []Session
	err := s.reading(ctx, func(db db) error {
		all = nil
		rows, err := db.Query(ctx, "SELECT id, cwd, title, parent, created, updated, info FROM sessions "+where, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var h Session
			var created, updated int64
			if err := rows.Scan(&h.ID, &h.Cwd, &h.Title, &h.Parent, &created, &updated, &h.Info); err != nil {
				return err
			}
			h.Created, h.Updated = unixMicro(created), unixMicro(updated)
			all = append(all, h)
		}
		return rows.Err()
	})
	return all, err
}
