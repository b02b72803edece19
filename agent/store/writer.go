package store

import (
	"context"
	"errors"
	"slices"
	"time"
)

// op is one entry of the queue. Exactly one of event (with session), head, call and after counts.
type op struct {
	session string
	event   *Event
	head    *Session
	call    func(tx tx) error // nil with done set: a barrier, which Sync waits for
	after   func()            // called when all before it is committed
	done    chan error        // answered once; nil for events and heads, which stay queued until they are written
	spooled bool              // it is in the spool's file, and so survives a crash
	from    *leftover         // a dead process queued it; nil: this one
}

// maxBatch is how many ops one transaction takes. It bounds how long other processes wait until they can write to the same file.
const maxBatch = 4096

// enqueue appends ops in order and wakes the writer. After Close ops are dropped, and callers who wait get ErrClosed.
func (s *Store) enqueue(ops ...op) {
	s.adopt()
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
	s.startLocked()
	s.mu.Unlock()
	s.poke()
}

// startLocked starts the writer's goroutine with the first op: commands that only read need none. The caller holds mu.
func (s *Store) startLocked() {
	if !s.running && !s.closed {
		s.running = true
		go s.writer()
	}
}

// repairSoon has the writer repair the file before its next commit. It starts the writer where nothing was appended so far.
func (s *Store) repairSoon() {
	s.mu.Lock()
	s.damaged = true
	s.startLocked()
	s.mu.Unlock()
	s.poke()
}

// poke wakes the writer. One signal in the channel is enough, because the writer then looks at the whole queue.
func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// do runs f in the writer's transaction, after everything queued before it, and returns its error when that is committed. A nil f only
// waits (Sync). When ctx ends first, f may still run.
func (s *Store) do(ctx context.Context, f func(tx tx) error) error {
	// The buffer lets the writer answer after the caller has gone.
	done := make(chan error, 1)
	s.enqueue(op{call: f, done: done})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer is the one goroutine that writes. After a failed commit events and heads stay queued, callers who wait get the reason, and the
// writer tries again after a pause, or at once when another caller waits.
func (s *Store) writer() {
	defer close(s.done)
	pause := time.Duration(0)
	var again time.Time // when a server that did not answer is tried again; until then ops go to the spool
	for {
		s.mu.Lock()
		n := min(len(s.queue), maxBatch)
		// The slice shares the queue's array: only this goroutine removes from the queue, so the elements stay where they are.
		batch := s.queue[:n:n]
		closed, damaged := s.closed, s.damaged
		s.damaged = false
		s.mu.Unlock()
		// A read has found the damage.
		if damaged {
			s.repairNow(&Problem{Kind: ProblemDamaged})
		}
		if n == 0 {
			if closed {
				return
			}
			<-s.wake
			continue
		}
		// The server did not answer a moment ago: new ops go to the spool, so that no caller waits for another time-out.
		if time.Now().Before(again) && !closed && s.keep(s.Problem()) {
			s.waitRetry(time.Until(again), true)
			continue
		}
		answer, err := s.commit(batch)
		if err != nil && s.repairNow(err) {
			answer, err = s.commit(batch)
		}
		kept := isAway(err) && s.keep(err)
		if kept {
			err = s.spool.explain(err)
			n = 0 // keep has answered the callers and removed their ops
		}
		s.finishBatch(n, err)
		if err == nil {
			answer()
			pause, again = 0, time.Time{}
			continue
		}
		if closed {
			return
		}
		// Half a second, doubled with each failure up to 30 s.
		pause = min(max(2*pause, 500*time.Millisecond), 30*time.Second)
		if kept {
			again = time.Now().Add(pause)
		}
		s.waitRetry(pause, kept)
	}
}

// isAway reports that a server did not answer.
func isAway(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Kind == ProblemAway
}

// waitRetry returns after the pause, at Close, or when an op arrives that a caller waits for; with anyOp at any op that is not in the
// spool.
func (s *Store) waitRetry(pause time.Duration, anyOp bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		// A poke for an event, which no caller waits for, does not end the pause.
		select {
		case <-timer.C:
			return
		case <-s.wake:
		}
		s.mu.Lock()
		now := s.closed || anyOp && slices.ContainsFunc(s.queue, func(o op) bool { return !o.spooled }) || len(s.queue) > 0 && s.queue[len(s.queue)-1].done != nil
		s.mu.Unlock()
		if now {
			return
		}
	}
}

// finishBatch removes the first n ops of the queue after they were committed. After a failure it answers the callers with err and removes
// their ops; events and heads stay for the next attempt. It reports the first failure, and later that everything is on disk again.
// onProblem is called without the lock, because it may append events.
func (s *Store) finishBatch(n int, err error) {
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
		s.answered()
		// The spool is emptied once none of its ops is queued any more; leftovers have files of their own.
		if s.spool != nil && !slices.ContainsFunc(s.queue, func(o op) bool { return o.spooled && o.from == nil }) {
			s.spool.clear()
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
	// The end of a problem is reported only when the queue is empty: "saved" then means everything.
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

// commit writes a batch in one transaction. answer then tells each caller who waits the result of its own call. It must be called after
// the ops have left the queue: a caller that reads earlier would still find them there, for example the events of a session that it has
// just deleted. The error is about the whole batch.
func (s *Store) commit(ops []op) (answer func(), err error) {
	// Opening is part of the commit, so that a failure is retried like any other.
	d, err := s.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitPatience)
	defer cancel()
	ready := s.statements()
	// Statements are prepared between two transactions, since they need the same connection.
	ready.prepare(ctx)
	begun, err := s.b.begin(ctx, s, d)
	if err != nil {
		return nil, s.explain(err)
	}
	defer begun.Rollback() // no effect after Commit
	b := newBatch(tx{begun, s.b, ready})
	// Inside the transaction: until it has ended no other machine can take a session over.
	taken, err := s.takenOver(b.tx, ops)
	if err != nil {
		return nil, s.explain(err)
	}
	answers := make([]error, len(ops))
	for i, o := range ops {
		switch {
		case o.from != nil:
			err = b.replay(&ops[i])
		case o.event != nil && taken[o.session] == nil:
			err = b.addEvent(o.session, o.event)
		case o.head != nil && taken[o.head.ID] == nil:
			err = b.putHead(o.head)
		case o.call != nil:
			// A call must see the events before it. It may also remove their session (Delete), which b.forget accounts for.
			if err = b.flush(); err == nil {
				answers[i], err = savepoint(b.tx, o.call)
				b.forget()
			}
		}
		if err != nil {
			return nil, s.explain(err)
		}
	}
	if err := b.flush(); err != nil {
		return nil, s.explain(err)
	}
	if err := begun.Commit(); err != nil {
		return nil, s.explain(err)
	}
	var waiting []func() // ops is a part of the queue, which is cleared before they are called
	for i, o := range ops {
		if o.after != nil {
			waiting = append(waiting, o.after)
		}
		if o.done != nil {
			waiting = append(waiting, func() { o.done <- answers[i] })
		}
	}
	return func() {
		for _, f := range waiting {
			f()
		}
	}, nil
}

// commitPatience bounds a transaction on a connection that was lost without notice. A file needs a fraction of a second for maxBatch
// rows.
const commitPatience = 30 * time.Second

// takenOver returns the sessions of a batch that another machine has taken over, and reports each of them once. Their ops are dropped:
// mixed with the other machine's events they would make up a history that never happened.
func (s *Store) takenOver(t tx, ops []op) (map[string]error, error) {
	seen := map[string]bool{}
	var sessions []string
	for _, o := range ops {
		id := o.session
		if o.head != nil {
			id = o.head.ID
		}
		// Calls and barriers belong to no session.
		if id != "" && !seen[id] {
			seen[id] = true
			sessions = append(sessions, id)
		}
	}
	lost, err := s.b.fenced(t, sessions)
	if len(lost) == 0 || err != nil {
		return nil, err
	}
	out := map[string]error{}
	s.mu.Lock()
	// It is called without the lock, because it may use the store.
	tell := s.onProblem
	var fresh []error
	for _, f := range lost {
		out[f.Session] = f
		if !s.lost[f.Session] {
			if s.lost == nil {
				s.lost = map[string]bool{}
			}
			s.lost[f.Session] = true
			fresh = append(fresh, f)
		}
	}
	s.mu.Unlock()
	if tell != nil {
		for _, f := range fresh {
			tell(f)
		}
	}
	return out, nil
}

// savepoint runs f so that a failure undoes only the work of f. failed is the error of f for its caller; broken means that the
// transaction cannot continue.
func savepoint(tx tx, f func(tx tx) error) (failed, broken error) {
	// Calls do not nest, so one name is enough.
	if _, err := tx.Exec("SAVEPOINT one"); err != nil {
		return nil, err
	}
	failed = f(tx)
	if failed != nil {
		if tx.b.broken(failed) {
			return nil, failed
		}
		if _, err := tx.Exec("ROLLBACK TO one"); err != nil {
			return nil, err
		}
	}
	_, broken = tx.Exec("RELEASE one")
	return failed, broken
}
