package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// rowsPerInsert is how many rows one statement inserts into SQLite: one statement with 32 rows takes a third of the time of 32
// statements.
const rowsPerInsert = 32

// batch gathers the events of one transaction into few statements. It belongs to the writer's goroutine and ends with its transaction.
type batch struct {
	tx   tx
	nums map[string]int64 // session id → number; looked up again in each transaction, because another process may delete a session
	rows []row
}

func newBatch(t tx) *batch { return &batch{tx: t, nums: map[string]int64{}} }

// forget drops the session numbers after a call, which may have deleted a session: an event under its old number would be stored and
// never found.
func (b *batch) forget() { clear(b.nums) }

// addEvent adds an event of a session. A session without a head is created: its events may be queued before its head.
func (b *batch) addEvent(session string, e *Event) error {
	num, ok := b.nums[session]
	if !ok {
		var err error
		if num, err = sessionNum(b.tx, session); err != nil {
			return err
		}
		b.nums[session] = num
	}
	// The rows are inserted when they fill a statement, and by flush before anything reads them.
	b.rows = append(b.rows, row{eventKey(num, e.Seq), e})
	if len(b.rows) == maxRows(b.tx.b) {
		return b.flush()
	}
	return nil
}

// maxRows is how many rows go into one statement. A server counts round trips, so there all rows of a batch go at once.
func maxRows(b backend) int {
	if _, ok := b.(*postgres); ok {
		return maxBatch
	}
	return rowsPerInsert
}

// flush inserts the gathered rows. When a number is taken (two processes wrote one session in spite of the lock), the event gets the
// session's next free number: nothing that was said is lost.
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
	// Some keys are taken. Each row is looked at alone; those that this statement stored are recognised as equal.
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
		return nil // the commit succeeded and its answer was lost, so it is written again
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	key := r.key
	if err == nil {
		// The next free number is the one after the session's last: a gap would be passed over by readers, who ask for events after a
		// number.
		if err := t.QueryRow("SELECT max(key) + 1 FROM events WHERE key BETWEEN ? AND ?", r.key&^maxSeq, r.key|maxSeq).Scan(&key); err != nil {
			return err
		}
	}
	_, err = t.b.insert(t, []row{{key, r.Event}})
	return err
}

// stored reports whether this very event is stored under the key; the error is sql.ErrNoRows when no event is.
func stored(t tx, r row) (same bool, err error) {
	var typ string
	var data []byte
	if err := t.QueryRow("SELECT type, data FROM events WHERE key = ?", r.key).Scan(&typ, &data); err != nil {
		return false, err
	}
	if data, err = wholeData(t.Query, r.key, data); err != nil {
		return false, err
	}
	// The type is compared as the database holds it.
	return typ == t.b.clean(r.Type) && string(data) == string(r.whole().Data), nil
}

// putHead inserts or replaces a head. Info that is not JSON is replaced by {}: it is only a summary of the events, and a failed insert
// would hold up the whole queue.
func (b *batch) putHead(h *Session) error {
	info := h.Info
	if !json.Valid(info) {
		info = []byte("{}")
	}
	clean := b.tx.b.clean
	// Heads come in the order in which they were queued, so the latest wins.
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
		// DO UPDATE changes nothing, but makes RETURNING give a row that another process has created a moment ago; DO NOTHING would give
		// none.
		err = t.QueryRow(`INSERT INTO sessions(id, cwd, title, parent, created, updated, info) VALUES (?,'','','',?,?,'{}')
			ON CONFLICT(id) DO UPDATE SET id = excluded.id RETURNING num`, id, now, now).Scan(&num)
	}
	return num, err
}
