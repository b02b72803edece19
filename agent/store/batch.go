package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// rowsPerInsert: one statement with many rows costs a third of as many statements.
const rowsPerInsert = 32

// batch gathers the events of one transaction into few statements.
// It belongs to the writer's goroutine and ends with the transaction.
type batch struct {
	tx   tx
	nums map[string]int64 // session id → number, looked up once a transaction: another process may have deleted it
	rows []row
}

func newBatch(t tx) *batch { return &batch{tx: t, nums: map[string]int64{}} }

// forget drops the session numbers: a call inside the transaction may have deleted a session.
// An event for a number that is gone would be stored and never found.
func (b *batch) forget() { clear(b.nums) }

// addEvent adds an event of a session, which is made when it has no head yet: events may be queued before the head.
func (b *batch) addEvent(session string, e *Event) error {
	num, ok := b.nums[session]
	if !ok {
		var err error
		if num, err = sessionNum(b.tx, session); err != nil {
			return err
		}
		b.nums[session] = num
	}
	// The rows are inserted when the statement is full, and before anything that reads them.
	b.rows = append(b.rows, row{eventKey(num, e.Seq), e})
	if len(b.rows) == maxRows(b.tx.b) {
		return b.flush()
	}
	return nil
}

// maxRows is how many rows go into one statement.
func maxRows(b backend) int {
	if _, ok := b.(*postgres); ok {
		return maxBatch // what counts there is how often a message crosses the network
	}
	return rowsPerInsert
}

// flush inserts the gathered rows. A number that is taken (two processes on one session, against the lock) is no
// reason to lose what was said: the event gets the next free one.
func (b *batch) flush() error {
	if len(b.rows) == 0 {
		return nil
	}
	rows := b.rows
	b.rows = b.rows[:0]
	done, err := b.tx.b.insert(b.tx, rows)
	if err != nil || int(done) == len(rows) {
		return err
	}
	// Some keys are taken: each row is looked at alone, and those that this statement stored are recognised as
	// stored.
	for _, r := range rows {
		if err := insertFree(b.tx, r); err != nil {
			return err
		}
	}
	return nil
}

// insertFree stores one row under its key, or the next free one of its session when another event has it.
func insertFree(t tx, r row) error {
	same, err := stored(t, r)
	if same {
		return nil // a commit whose answer was lost is written again
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	key := r.key
	if err == nil {
		// The next free number is behind the last one of the session, not in a gap: readers ask for what comes
		// after a number.
		if err := t.QueryRow("SELECT max(key) + 1 FROM events WHERE key BETWEEN ? AND ?", r.key&^maxSeq, r.key|maxSeq).Scan(&key); err != nil {
			return err
		}
	}
	_, err = t.b.insert(t, []row{{key, r.Event}})
	return err
}

// stored says that the very event has this key; the error is sql.ErrNoRows when none has it.
func stored(t tx, r row) (same bool, err error) {
	var typ string
	var data []byte
	if err := t.QueryRow("SELECT type, data FROM events WHERE key = ?", r.key).Scan(&typ, &data); err != nil {
		return false, err
	}
	// The type is compared as the database holds it.
	return typ == t.b.clean(r.Type) && string(data) == string(r.Data), nil
}

// putHead inserts or replaces a head. Info that is not JSON is replaced by {}: it is only a copy of what the events say, and a
// failed insert would stop the whole queue.
func (b *batch) putHead(h *Session) error {
	info := h.Info
	if !json.Valid(info) {
		info = []byte("{}")
	}
	clean := b.tx.b.clean
	// Only queued heads come here, in their order, so the last one that the agent wrote wins.
	_, err := b.tx.Exec(`INSERT INTO sessions(id, cwd, title, parent, created, updated, info) VALUES (?,?,?,?,?,?,?)
		ON CONFLICT(id) DO UPDATE SET cwd = excluded.cwd, title = excluded.title, parent = excluded.parent,
		created = excluded.created, updated = excluded.updated, info = excluded.info`,
		clean(h.ID), clean(h.Cwd), clean(h.Title), clean(h.Parent), h.Created.UnixMicro(), h.Updated.UnixMicro(), info)
	if err != nil {
		return fmt.Errorf("session %s: %w", h.ID, err)
	}
	return nil
}

// sessionNum finds or makes the row of a session.
func sessionNum(t tx, id string) (num int64, err error) {
	id = t.b.clean(id)
	err = t.QueryRow("SELECT num FROM sessions WHERE id = ?", id).Scan(&num)
	if errors.Is(err, sql.ErrNoRows) {
		now := time.Now().UnixMicro()
		// DO UPDATE changes nothing; with DO NOTHING a row that another process has just made would not be
		// returned.
		err = t.QueryRow(`INSERT INTO sessions(id, cwd, title, parent, created, updated, info) VALUES (?,'','','',?,?,'{}')
			ON CONFLICT(id) DO UPDATE SET id = excluded.id RETURNING num`, id, now, now).Scan(&num)
	}
	return num, err
}
