package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/lib/pq"
)

// hold is a session's lock in this process; its fields are guarded by postgres.mu. The lock itself is an advisory lock of the server,
// which ends with the connection. The fence is a number in the table writers that grows with every holder: after a reconnect it shows
// whether another process has held the session meanwhile.
type hold struct {
	fence     int64 // 0: granted while the server was away, so never recorded there
	gen       int64 // postgres.gen of the connection that has the lock
	pending   bool  // the server was asked and has not answered yet
	releasing bool  // to be released once the queue is stored; see unlock
}

// The key of the advisory lock is a hash of schema and session. 7526175 is a seed of our own, so that locks of other programs on the same
// server do not collide with ours.
const (
	tryLockSQL = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || '/' || $1, 7526175))"
	unlockSQL  = "SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/' || $1, 7526175))"
)

// lock is Store.Lock. While the server does not answer, the lock is granted, so that people can work; relock decides when the server is
// back whether this process or another one keeps the session.
func (p *postgres) lock(ctx context.Context, w *writeQueue, session string) (unlock func(), err error) {
	deadline := time.Now().Add(lockPatience)
	for {
		holder, err := p.try(ctx, w, session)
		if err == nil {
			var once sync.Once
			return func() { once.Do(func() { p.unlock(w, session) }) }, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, holder
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// try asks for the lock once. With errHeld it returns who has it. A session that this process is just releasing is taken back without
// asking the server, because the connection still has the lock.
func (p *postgres) try(ctx context.Context, w *writeQueue, session string) (*LockedError, error) {
	p.mu.Lock()
	// A session that was lost stays lost for this process: its copy of the history is not the stored one.
	if f := p.gone[session]; f != nil {
		p.mu.Unlock()
		return nil, f
	}
	if h := p.held[session]; h != nil {
		defer p.mu.Unlock()
		if h.releasing {
			h.releasing = false
			return nil, nil
		}
		return &LockedError{Session: session, PID: os.Getpid()}, errHeld
	}
	// The entry is made before the server is asked, so that a second caller in this process is refused meanwhile.
	h := &hold{pending: true}
	p.held[session] = h
	p.mu.Unlock()

	var fence, gen int64
	var who writer
	err := w.away()
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		h.pending = false // granted while the server is away: see relock
		return nil, nil
	}
	err = p.onWriter(ctx, w, func(ctx context.Context, c *sql.Conn) (err error) {
		// The connection that answers may be newer than the one at the start, so its number is read here.
		p.mu.Lock()
		gen = p.gen
		p.mu.Unlock()
		fence, who, err = take(ctx, c, session)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	h.pending, h.fence, h.gen = false, fence, gen
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, errHeld):
		// Without this the session could never be locked again by this process.
		delete(p.held, session)
		return &LockedError{Session: session, PID: who.pid, Host: who.otherHost()}, errHeld
	case ctx.Err() != nil:
		delete(p.held, session)
		return nil, ctx.Err()
	}
	h.fence, h.gen = 0, 0 // the server is away: see relock
	return nil, nil
}

// onWriter runs f on the writing connection, between two transactions. The end of ctx does not interrupt f: the driver closes a connection that
// is interrupted, and all locks would be lost with it. connectPatience bounds f instead.
func (p *postgres) onWriter(ctx context.Context, w *writeQueue, f func(context.Context, *sql.Conn) error) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	// d has one connection, and a transaction that waits for a silent server may have it: the wait for it is bounded as well.
	soon, stop := context.WithTimeout(ctx, connectPatience)
	defer stop()
	conn, err := d.Conn(soon)
	if err != nil {
		return err
	}
	defer conn.Close()
	// f keeps the values of ctx and not its end.
	slow, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectPatience)
	defer cancel()
	return f(slow, conn)
}

// writer is the process that holds, or held last, a session's lock.
type writer struct {
	host string
	pid  int
}

// otherHost is the host, or empty when it is this one.
func (w writer) otherHost() string {
	if w.host == hostname() {
		return ""
	}
	return w.host
}

// hostname is never empty: an empty host in LockedError means this machine.
func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "an unnamed machine"
	}
	return name
}

// take locks a session, raises its fence and records this process as its writer. With errHeld, who is the process that has the lock.
func take(ctx context.Context, c *sql.Conn, session string) (fence int64, who writer, err error) {
	var mine bool
	if err := c.QueryRowContext(ctx, tryLockSQL, session).Scan(&mine); err != nil {
		return 0, who, err
	}
	// Another connection has the lock. The row says which process that is; it is missing when the holder has not written it yet.
	if !mine {
		_, who, err := lastWriter(ctx, c, session)
		return 0, who, errors.Join(errHeld, err)
	}
	// The fence grows with each holder, also when the same process takes the session again.
	err = c.QueryRowContext(ctx, `INSERT INTO writers(session, fence, host, pid, since) VALUES ($1, 1, $2, $3, $4)
		ON CONFLICT(session) DO UPDATE SET fence = writers.fence + 1, host = excluded.host, pid = excluded.pid, since = excluded.since
		RETURNING fence`, session, hostname(), os.Getpid(), time.Now().UnixMicro()).Scan(&fence)
	return fence, who, err
}

// lastWriter reads the fence and the last holder of a session; fence 0 when nobody has ever held it.
func lastWriter(ctx context.Context, c *sql.Conn, session string) (fence int64, who writer, err error) {
	err = c.QueryRowContext(ctx, "SELECT fence, host, pid FROM writers WHERE session = $1", session).Scan(&fence, &who.host, &who.pid)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return fence, who, err
}

// unlock releases the session once everything queued is stored: another machine that continues it must see all of it.
func (p *postgres) unlock(w *writeQueue, session string) {
	p.mu.Lock()
	if h := p.held[session]; h != nil {
		h.releasing = true
	}
	p.mu.Unlock()
	// The op comes behind all events of the session, so it runs after they are committed.
	w.enqueue(op{after: func() {
		p.mu.Lock()
		h := p.held[session]
		if h == nil || !h.releasing {
			p.mu.Unlock()
			return // this process has locked it again meanwhile
		}
		delete(p.held, session)
		p.mu.Unlock()
		// A failure means that the connection is lost, and the lock with it.
		_ = p.onWriter(context.Background(), w, func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, unlockSQL, session)
			return err
		})
	}})
}

// begin starts a transaction after making sure that all locks belong to the present connection.
func (p *postgres) begin(ctx context.Context, w *writeQueue, d *sql.DB) (*sql.Tx, error) {
	if p.stale() {
		// The ping replaces a lost connection; the new one then gets its number.
		if err := d.PingContext(ctx); err != nil {
			return nil, err
		}
		if err := p.onWriter(ctx, w, func(ctx context.Context, c *sql.Conn) error { return p.relock(ctx, w, c) }); err != nil {
			return nil, err
		}
	}
	t, err := d.BeginTx(ctx, nil)
	// The pool may have replaced the connection after relock. A transaction on it would write without locks.
	if err == nil && p.stale() {
		t.Rollback()
		return nil, errReconnected
	}
	return t, err
}

// stale reports whether a lock belongs to an earlier connection and is therefore lost.
func (p *postgres) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.held {
		if !h.pending && h.gen != p.gen {
			return true
		}
	}
	return false
}

// relock takes the lost locks again, except those of sessions that another process has continued: these are noted in gone.
func (p *postgres) relock(ctx context.Context, w *writeQueue, c *sql.Conn) error {
	p.mu.Lock()
	gen := p.gen
	var todo []string
	// The ids are collected first, because p.mu must not be held while the server is asked.
	for id, h := range p.held {
		if !h.pending && h.gen != gen {
			todo = append(todo, id)
		}
	}
	p.mu.Unlock()
	for _, id := range todo {
		p.mu.Lock()
		h := p.held[id]
		p.mu.Unlock()
		// The session was unlocked meanwhile.
		if h == nil {
			continue
		}
		fence, lost, err := p.again(ctx, w, c, id, h.fence)
		if err != nil {
			return err
		}
		p.mu.Lock()
		if lost != nil {
			p.gone[id] = lost
			delete(p.held, id)
		} else {
			h.fence, h.gen = fence, gen
		}
		p.mu.Unlock()
	}
	return nil
}

// again takes one lock again after a lost connection. fence is the number it had, or 0 when it was granted while the server was away. A
// *FencedError means that another machine has written the session meanwhile: its events count and ours are dropped, because two histories
// cannot be merged.
func (p *postgres) again(ctx context.Context, w *writeQueue, c *sql.Conn, session string, fence int64) (int64, *FencedError, error) {
	var mine bool
	if err := c.QueryRowContext(ctx, tryLockSQL, session).Scan(&mine); err != nil {
		return 0, nil, err
	}
	now, who, err := lastWriter(ctx, c, session)
	if err != nil {
		return 0, nil, err
	}
	taken := &FencedError{Session: session, Host: who.host, PID: who.pid}
	if !mine {
		return 0, taken, nil
	}
	give := func() (int64, *FencedError, error) {
		_, err := c.ExecContext(ctx, unlockSQL, session)
		return 0, taken, err
	}
	if fence != 0 {
		// Another process has held the session since and has released it, so the lock just taken is given back.
		if now != fence {
			return give()
		}
		return fence, nil, nil
	}
	// The turn began while the server was away, so there is no fence to compare. A stored event with one of our numbers comes from
	// another process.
	if mine := w.queuedEvents(session); len(mine) > 0 {
		var last int64
		// 4294967295 is maxSeq, the part of a key that is the event's number.
		err := c.QueryRowContext(ctx, `SELECT coalesce(max(key) & 4294967295, 0) FROM events, (SELECT num FROM sessions WHERE id = $1) AS s
			WHERE key BETWEEN num << 32 AND num << 32 | 4294967295`, session).Scan(&last)
		if err != nil {
			return 0, nil, err
		}
		if last >= mine[0].Seq {
			return give()
		}
	}
	fence, _, err = take(ctx, c, session)
	if err == nil { // the server counts the lock twice for this connection; once is enough
		_, err = c.ExecContext(ctx, unlockSQL, session)
	}
	return fence, nil, err
}

// fenced compares the fences inside the writing transaction, which makes a process that takes a session over wait for its end.
func (p *postgres) fenced(t tx, sessions []string) ([]*FencedError, error) {
	var lost []*FencedError
	fences := map[string]int64{}
	var ask []string
	// A fence of 0 was granted while the server was away; relock has judged those sessions before this.
	p.mu.Lock()
	for _, id := range sessions {
		if f := p.gone[id]; f != nil {
			lost = append(lost, f)
		} else if h := p.held[id]; h != nil && h.fence != 0 && !h.pending {
			fences[id] = h.fence
			ask = append(ask, id)
		}
	}
	p.mu.Unlock()
	if len(ask) == 0 {
		return lost, nil
	}
	// FOR SHARE keeps another holder from raising the fence until this transaction has ended.
	rows, err := t.t.Query("SELECT session, fence, host, pid FROM writers WHERE session = ANY($1) FOR SHARE", pq.Array(ask))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		f := &FencedError{}
		var fence int64
		if err := rows.Scan(&f.Session, &fence, &f.Host, &f.PID); err != nil {
			return nil, err
		}
		if fence != fences[f.Session] {
			lost = append(lost, f)
			p.mu.Lock()
			p.gone[f.Session] = f
			delete(p.held, f.Session)
			p.mu.Unlock()
		}
	}
	return lost, rows.Err()
}
