package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// op is one thing to write. Exactly one of event (with session), head and call counts.
type op struct {
	session string
	event   *Event
	head    *Session
	call    func(tx *sql.Tx) error // nil with done set: a barrier
	done    chan error             // answered once; nil for events and heads, which are kept until they are written
}

// maxBatch is how many ops one transaction takes; a reader waits at most that long for the writer.
const maxBatch = 4096

// enqueue appends ops in order. After Close they are dropped, and answered when somebody waits.
func (s *Store) enqueue(ops ...op) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		for _, o := range ops {
			if o.done != nil {
				o.done <- ErrClosed
			}
		}
		return
	}
	s.queue = append(s.queue, ops...)
	if !s.running {
		s.running = true
		go s.writer()
	}
	s.mu.Unlock()
	s.poke()
}

func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// do runs f in the writer's transaction, after everything queued before it.
func (s *Store) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	done := make(chan error, 1)
	s.enqueue(op{call: f, done: done})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer is the one goroutine that writes. A failed commit keeps events and heads queued, answers those who wait
// with the reason, and tries again after a pause, or at once when somebody asks again.
func (s *Store) writer() {
	defer close(s.done)
	pause := time.Duration(0)
	for {
		s.mu.Lock()
		n := min(len(s.queue), maxBatch)
		batch := s.queue[:n:n]
		closed := s.closed
		s.mu.Unlock()
		if n == 0 {
			if closed {
				return
			}
			<-s.wake
			continue
		}
		err := s.commit(batch)
		s.settle(n, err)
		if err == nil {
			pause = 0
			continue
		}
		if closed {
			return
		}
		pause = min(max(2*pause, 500*time.Millisecond), 30*time.Second)
		s.waitRetry(pause)
	}
}

// waitRetry returns after the pause, at Close, or when an op arrives that somebody waits for.
func (s *Store) waitRetry(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-s.wake:
		}
		s.mu.Lock()
		now := s.closed || len(s.queue) > 0 && s.queue[len(s.queue)-1].done != nil
		s.mu.Unlock()
		if now {
			return
		}
	}
}

// settle removes what was committed, or answers those who wait for it, and reports a change of fortune.
func (s *Store) settle(n int, err error) {
	s.mu.Lock()
	var waiting []chan error
	for _, o := range s.queue[:n] {
		if o.done != nil {
			waiting = append(waiting, o.done)
		}
	}
	if err == nil {
		clear(s.queue[:n]) // so that what was written can be collected
		s.queue = s.queue[n:]
		if len(s.queue) == 0 {
			s.queue = nil
		}
	} else if len(waiting) > 0 {
		kept := make([]op, 0, len(s.queue))
		for i, o := range s.queue {
			if i >= n || o.done == nil {
				kept = append(kept, o)
			}
		}
		s.queue = kept
	}
	var tell func(error)
	if (err == nil) != (s.problem == nil) && (err != nil || len(s.queue) == 0) {
		tell = s.onProblem
		s.problem = err
	}
	s.mu.Unlock()
	if err != nil {
		for _, w := range waiting {
			w <- err
		}
	}
	if tell != nil {
		tell(err)
	}
}

// commit writes a batch in one transaction. Callers who wait are answered here when it succeeds, each with the
// result of its own call; the error is about the batch.
func (s *Store) commit(batch []op) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return s.explain(err)
	}
	defer tx.Rollback() // after Commit it does nothing
	b := newBatch(tx)
	answers := make([]error, len(batch))
	for i, o := range batch {
		switch {
		case o.event != nil:
			err = b.addEvent(o.session, o.event)
		case o.head != nil:
			err = b.putHead(o.head)
		case o.call != nil:
			if err = b.flush(); err == nil {
				answers[i], err = savepoint(tx, o.call)
				b.forget()
			}
		}
		if err != nil {
			return s.explain(err)
		}
	}
	if err := b.flush(); err != nil {
		return s.explain(err)
	}
	if err := tx.Commit(); err != nil {
		return s.explain(err)
	}
	for i, o := range batch {
		if o.done != nil {
			o.done <- answers[i]
		}
	}
	return nil
}

// savepoint runs f so that its failure undoes only its own work. broken is an error of the transaction itself.
func savepoint(tx *sql.Tx, f func(tx *sql.Tx) error) (failed, broken error) {
	if _, err := tx.Exec("SAVEPOINT one"); err != nil {
		return nil, err
	}
	failed = f(tx)
	if failed != nil {
		if isDisk(failed) {
			return nil, failed
		}
		if _, err := tx.Exec("ROLLBACK TO one"); err != nil {
			return nil, err
		}
	}
	_, broken = tx.Exec("RELEASE one")
	return failed, broken
}

// rowsPerInsert: one statement with many rows costs a third of as many statements.
const rowsPerInsert = 32

// batch gathers the events of one transaction into few statements.
type batch struct {
	tx     *sql.Tx
	nums   map[string]int64 // session id → number, looked up once a transaction: another process may have deleted it
	many   *sql.Stmt
	args   []any
	events []*Event
}

func newBatch(tx *sql.Tx) *batch { return &batch{tx: tx, nums: map[string]int64{}} }

// forget drops what a call may have changed behind our back.
func (b *batch) forget() { clear(b.nums) }

func (b *batch) addEvent(session string, e *Event) error {
	num, ok := b.nums[session]
	if !ok {
		var err error
		if num, err = sessionNum(b.tx, session); err != nil {
			return err
		}
		b.nums[session] = num
	}
	b.args = append(b.args, eventKey(num, e.Seq), e.Time.UnixMicro(), e.Type, e.Data)
	b.events = append(b.events, e)
	if len(b.events) == rowsPerInsert {
		return b.flush()
	}
	return nil
}

// flush inserts the gathered rows. A number that is taken (two processes on one session, against the lock) is no
// reason to lose what was said: the event gets the next free one.
func (b *batch) flush() error {
	n := len(b.events)
	if n == 0 {
		return nil
	}
	defer func() { b.args, b.events = b.args[:0], b.events[:0] }()
	var res sql.Result
	var err error
	if n == rowsPerInsert {
		if b.many == nil {
			if b.many, err = b.tx.Prepare(insertEvents(rowsPerInsert)); err != nil {
				return err
			}
		}
		res, err = b.many.Exec(b.args...)
	} else {
		res, err = b.tx.Exec(insertEvents(n), b.args...)
	}
	if err != nil {
		return err
	}
	if done, err := res.RowsAffected(); err != nil || int(done) == n {
		return err
	}
	for i := range n {
		if err := insertFree(b.tx, b.args[4*i:4*i+4]); err != nil {
			return err
		}
	}
	return nil
}

func insertEvents(n int) string {
	q := make([]byte, 0, 64+n*10)
	q = append(q, "INSERT OR IGNORE INTO events(key, time, type, data) VALUES "...)
	for i := range n {
		if i > 0 {
			q = append(q, ',')
		}
		q = append(q, "(?,?,?,?)"...)
	}
	return string(q)
}

// insertFree stores one row under its key, or the next free one of its session when another event has it.
func insertFree(tx *sql.Tx, row []any) error {
	key := row[0].(int64)
	var typ string
	var data []byte
	err := tx.QueryRow("SELECT type, data FROM events WHERE key = ?", key).Scan(&typ, &data)
	if err == nil && typ == row[2].(string) && string(data) == string(row[3].([]byte)) {
		return nil // it is this one
	}
	if err != nil && err != sql.ErrNoRows {
		return err
	}
	_, err = tx.Exec("INSERT INTO events(key, time, type, data) SELECT max(key) + 1, ?, ?, ? FROM events WHERE key BETWEEN ? AND ?",
		row[1], row[2], row[3], key&^maxSeq, key|maxSeq)
	return err
}

func (b *batch) putHead(h *Session) error {
	info := h.Info
	if !json.Valid(info) {
		info = []byte("{}")
	}
	_, err := b.tx.Exec(`INSERT INTO sessions(id, cwd, title, parent, created, updated, info) VALUES (?,?,?,?,?,?,?)
		ON CONFLICT(id) DO UPDATE SET cwd = excluded.cwd, title = excluded.title, parent = excluded.parent,
		created = excluded.created, updated = excluded.updated, info = excluded.info`,
		h.ID, h.Cwd, h.Title, h.Parent, h.Created.UnixMicro(), h.Updated.UnixMicro(), info)
	if err != nil {
		return fmt.Errorf("session %s: %w", h.ID, err)
	}
	return nil
}

// sessionNum finds or makes the row of a session.
func sessionNum(tx *sql.Tx, id string) (num int64, err error) {
	err = tx.QueryRow("SELECT num FROM sessions WHERE id = ?", id).Scan(&num)
	if err == sql.ErrNoRows {
		now := time.Now().UnixMicro()
		err = tx.QueryRow("INSERT INTO sessions(id, cwd, title, parent, created, updated, info) VALUES (?,'','','',?,?,'{}') RETURNING num", id, now, now).Scan(&num)
	}
	return num, err
}
