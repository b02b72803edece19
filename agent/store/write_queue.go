package store

import (
	"context"
	"errors"
	"slices"
	"sync"
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

// answer answers the caller who waits. Only the first answer counts: a barrier that is safe in the spool has its answer before the server
// has one.
func (o op) answer(err error) {
	select {
	case o.done <- err: // the channel has room for one
	default:
	}
}

// maxBatch is how many ops one transaction takes. It bounds how long other processes wait until they can write to the same file.
const maxBatch = 4096

// writeQueue takes what the store is to keep and writes it, in order, from one goroutine. What is queued is not lost: it stays until it
// is committed, and where it cannot be committed it is said why (OnProblem).
type writeQueue struct {
	*database

	mu        sync.Mutex
	queue     []op            // guarded by mu: not yet committed, in order; the writer removes from the front
	wake      chan struct{}   // capacity 1: the queue grew, or close
	running   bool            // guarded by mu: the writer goroutine was started
	closed    bool            // guarded by mu
	problem   error           // guarded by mu: why the last commit failed; nil when all is well
	onProblem func(error)     // guarded by mu
	done      chan struct{}   // closed when the writer has ended
	lost      map[string]bool // guarded by mu: sessions taken over by others, told once
	damaged   bool            // guarded by mu: a read found the file damaged; the writer repairs it
	unsaid    error           // guarded by mu: a problem from before OnProblem was set, which is told first

	gather time.Duration // gatherFor

	spool   *spool    // nil: the store is a file, or SpoolIn was not called
	adopted sync.Once // done once the spool files of dead processes are queued
}

// newWriteQueue makes a queue whose writer has not started.
func newWriteQueue(d *database) *writeQueue {
	w := &writeQueue{database: d, wake: make(chan struct{}, 1), done: make(chan struct{}), gather: gatherFor}
	d.damage, d.salvaged = w.repairSoon, w.tellSalvaged
	return w
}

// OnProblem sets the function that is called when writing begins to fail, with a reason that tells a person what to do, and with nil when
// everything that waited is on disk after all. It is called from the writer's goroutine.
func (w *writeQueue) OnProblem(f func(error)) {
	w.mu.Lock()
	w.onProblem = f
	// Found before this call, such as a salvaged file.
	unsaid := w.unsaid
	w.unsaid = nil
	w.mu.Unlock()
	if unsaid != nil && f != nil {
		f(unsaid)
	}
}

// tellSalvaged reports what a repair could save. Before OnProblem was called it is kept, and reported then.
func (w *writeQueue) tellSalvaged(done error) {
	w.mu.Lock()
	tell := w.onProblem
	if w.damaged = false; tell == nil {
		w.unsaid = done
	}
	w.mu.Unlock()
	if tell != nil {
		tell(done)
	}
}

// Problem is the reason why writing fails at present, or why a server did not answer a moment ago; nil when all is well. A caller that comes
// too late for OnProblem learns of the problem here.
func (w *writeQueue) Problem() error {
	w.mu.Lock()
	problem := w.problem
	w.mu.Unlock()
	if problem == nil {
		problem = w.away()
	}
	return problem
}

// Sync waits until everything queued before it is committed, or returns why that is not possible now. With an empty queue it returns at
// once and starts no writer.
func (w *writeQueue) Sync(ctx context.Context) error {
	w.mu.Lock()
	idle := len(w.queue) == 0
	w.mu.Unlock()
	if idle {
		return nil
	}
	return w.do(ctx, nil)
}

// Close tries once more to write what is queued, then closes the database. The error says why something could not be saved; nil means
// that everything is on disk, if only in the spool. After Close, Append does nothing.
func (w *writeQueue) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	running := w.running
	w.mu.Unlock()
	w.poke()
	// The writer makes a last attempt with what is queued.
	if running {
		<-w.done
	}
	w.database.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	// Ops in the spool are on a disk, and the next start stores them.
	if slices.ContainsFunc(w.queue, func(o op) bool { return !o.spooled }) {
		return w.problem
	}
	return nil
}

// enqueue appends ops in order and wakes the writer. After Close ops are dropped, and callers who wait get ErrClosed.
func (w *writeQueue) enqueue(ops ...op) {
	w.adopt()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		for _, o := range ops {
			if o.done != nil {
				o.done <- ErrClosed
			}
		}
		return
	}
	w.queue = append(w.queue, ops...)
	w.startLocked()
	w.mu.Unlock()
	w.poke()
}

// startLocked starts the writer's goroutine with the first op: commands that only read need none. The caller holds mu.
func (w *writeQueue) startLocked() {
	if !w.running && !w.closed {
		w.running = true
		go w.run()
	}
}

// repairSoon has the writer repair the file before its next commit. It starts the writer where nothing was appended so far.
func (w *writeQueue) repairSoon() {
	w.mu.Lock()
	w.damaged = true
	w.startLocked()
	w.mu.Unlock()
	w.poke()
}

// poke wakes the writer. One signal in the channel is enough, because the writer then looks at the whole queue.
func (w *writeQueue) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// do runs f in the writer's transaction, after everything queued before it, and returns its error when that is committed. A nil f only
// waits (Sync). When ctx ends first, f may still run.
func (w *writeQueue) do(ctx context.Context, f func(tx tx) error) error {
	// The buffer lets the writer answer after the caller has gone.
	done := make(chan error, 1)
	w.enqueue(op{call: f, done: done})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run is the one goroutine that writes. After a failed commit events and heads stay queued, callers who wait get the reason, and the
// writer tries again after a pause, or at once when another caller waits.
func (w *writeQueue) run() {
	defer close(w.done)
	pause := time.Duration(0)
	var last time.Time  // the end of the last commit
	var again time.Time // when a server that did not answer is tried again; until then ops go to the spool
	for {
		w.mu.Lock()
		n := min(len(w.queue), maxBatch)
		// The slice shares the queue's array: only this goroutine removes from the queue, so the elements stay where they are.
		batch := w.queue[:n:n]
		closed, damaged := w.closed, w.damaged
		w.damaged = false
		w.mu.Unlock()
		// A read has found the damage.
		if damaged {
			w.repairNow(&Problem{Kind: ProblemDamaged})
		}
		if n == 0 {
			if closed {
				return
			}
			<-w.wake
			continue
		}
		// Just after a commit, what follows is let gather: a step of the loop is five events within a millisecond.
		if more := w.gather - time.Since(last); more > 0 && n < maxBatch && !closed {
			w.pause(more, awaited)
			last = time.Time{}
			continue
		}
		// The server did not answer a moment ago: new ops go to the spool, so that no caller waits for another time-out.
		if time.Now().Before(again) && !closed && w.keep(w.Problem()) {
			w.pause(time.Until(again), unspooled)
			continue
		}
		// At Close a server that did not answer a moment ago is not waited for again; the next start stores what is in the spool.
		if closed && w.away() != nil && w.keep(w.away()) {
			return
		}
		answer, err := w.commitOrSpool(batch)
		if err != nil && w.repairNow(err) {
			answer, err = w.commit(batch)
		}
		kept := isAway(err) && w.keep(err)
		if kept {
			err = w.spool.explain(err)
			n = 0 // keep has answered the callers and removed their ops
		}
		w.finishBatch(n, err)
		if err == nil {
			answer()
			pause, again, last = 0, time.Time{}, time.Now()
			continue
		}
		if closed {
			return
		}
		// Half a second, doubled with each failure up to 30 s.
		pause = min(max(2*pause, 500*time.Millisecond), 30*time.Second)
		if kept {
			again = time.Now().Add(pause)
			w.pause(pause, unspooled)
		} else {
			w.pause(pause, waitedFor)
		}
	}
}

// slowCommit is how long a server may take for a commit before its ops are saved in the spool as well: longer than a commit over a slow
// network takes, and shorter than the agent waits for a prompt to be safe (EventLog.syncBriefly).
const slowCommit = 300 * time.Millisecond

// commitOrSpool is commit for a server that may have fallen silent, which the time-out of the connection tells only after seconds. While
// the commit goes on, callers who wait for an op to be safe are answered as soon as it is in the spool.
func (w *writeQueue) commitOrSpool(batch []op) (answer func(), err error) {
	if w.spool == nil {
		return w.commit(batch)
	}
	batch = slices.Clone(batch) // spoolQueued changes the queue, of which it is a part
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err = w.commit(batch)
	}()
	slow := time.NewTimer(slowCommit)
	defer slow.Stop()
	select {
	case <-done:
		return answer, err
	case <-slow.C:
	}
	for {
		w.spoolQueued()
		// run looks at the whole queue after this, so no wake-up is lost.
		select {
		case <-done:
			return answer, err
		case <-w.wake:
		}
	}
}

// gatherFor is how long events wait after a commit for those that follow, when no caller waits for them. A commit costs 0.2 ms of processor
// time whether it has one event or ten. Nobody waits for it, because people and editors are told of an event before it is committed. A
// kill -9 within this time loses these events, as it loses all whose commit has not ended.
const gatherFor = 3 * time.Millisecond

// isAway reports that a server did not answer.
func isAway(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Kind == ProblemAway
}

// What ends a pause of the writer, for each op in the queue.
func waitedFor(o op) bool { return o.done != nil }                   // a caller waits
func awaited(o op) bool   { return o.done != nil || o.after != nil } // somebody is told when it is committed
func unspooled(o op) bool { return !o.spooled }                      // it would not survive a crash

// pause returns after a time, at Close, or as soon as the queue has an op that ends it.
func (w *writeQueue) pause(length time.Duration, ends func(op) bool) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		w.mu.Lock()
		now := w.closed || slices.ContainsFunc(w.queue, ends)
		w.mu.Unlock()
		if now {
			return
		}
		select {
		case <-timer.C:
			return
		case <-w.wake:
		}
	}
}

// finishBatch removes the first n ops of the queue after they were committed. After a failure it answers all callers who wait with err and
// removes their ops, those behind the batch too: their turn would come after the pause. Events and heads stay for the next attempt. It
// reports the first failure, and later that everything is on disk again. onProblem is called without the lock, because it may append events.
func (w *writeQueue) finishBatch(n int, err error) {
	w.mu.Lock()
	var waiting []op // who is answered here, after a failure
	if err == nil {
		clear(w.queue[:n]) // so that what was written can be collected
		w.queue = w.queue[n:]
		if len(w.queue) == 0 {
			w.queue = nil
		}
		w.answered()
		// The spool is emptied once none of its ops is queued any more; leftovers have files of their own.
		if w.spool != nil && !slices.ContainsFunc(w.queue, func(o op) bool { return o.spooled && o.from == nil }) {
			w.spool.clear()
		}
	} else if n > 0 { // with n 0 the spool has all, and who came since is answered by it too
		kept := make([]op, 0, len(w.queue))
		for _, o := range w.queue {
			if o.done != nil {
				waiting = append(waiting, o)
			} else {
				kept = append(kept, o)
			}
		}
		w.queue = kept
	}
	var tell func(error)
	// The end of a problem is reported only when the queue is empty: "saved" then means everything.
	if (err == nil) != (w.problem == nil) && (err != nil || len(w.queue) == 0) {
		tell = w.onProblem
		w.problem = err
	}
	w.mu.Unlock()
	for _, o := range waiting {
		o.answer(err)
	}
	if tell != nil {
		tell(err)
	}
}

// commit writes a batch in one transaction. answer then tells each caller who waits the result of its own call. It must be called after
// the ops have left the queue: a caller that reads earlier would still find them there, for example the events of a session that it has
// just deleted. The error is about the whole batch.
func (w *writeQueue) commit(ops []op) (answer func(), err error) {
	// Opening is part of the commit, so that a failure is retried like any other.
	d, err := w.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitPatience)
	defer cancel()
	ready := w.statements()
	// Statements are prepared between two transactions, since they need the same connection.
	ready.prepare(ctx)
	begun, err := w.b.begin(ctx, w, d)
	if err != nil {
		return nil, w.explain(err)
	}
	defer begun.Rollback() // no effect after Commit
	b := newBatch(tx{begun, w.b, ready})
	// Inside the transaction: until it has ended no other machine can take a session over.
	taken, err := w.takenOver(b.tx, ops)
	if err != nil {
		return nil, w.explain(err)
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
			return nil, w.explain(err)
		}
	}
	if err := b.flush(); err != nil {
		return nil, w.explain(err)
	}
	if err := begun.Commit(); err != nil {
		return nil, w.explain(err)
	}
	var waiting []func() // ops is a part of the queue, which is cleared before they are called
	for i, o := range ops {
		if o.after != nil {
			waiting = append(waiting, o.after)
		}
		if o.done != nil {
			waiting = append(waiting, func() { o.answer(answers[i]) })
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
func (w *writeQueue) takenOver(t tx, ops []op) (map[string]error, error) {
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
	lost, err := w.b.fenced(t, sessions)
	if len(lost) == 0 || err != nil {
		return nil, err
	}
	out := map[string]error{}
	w.mu.Lock()
	// It is called without the lock, because it may use the store.
	tell := w.onProblem
	var fresh []error
	for _, f := range lost {
		out[f.Session] = f
		if !w.lost[f.Session] {
			if w.lost == nil {
				w.lost = map[string]bool{}
			}
			w.lost[f.Session] = true
			fresh = append(fresh, f)
		}
	}
	w.mu.Unlock()
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

// queuedEvents are a session's events that are not committed yet, in order. They are not copied: the writer does not change events, and
// they stay valid when it commits them meanwhile.
func (w *writeQueue) queuedEvents(session string) []*Event {
	w.adopt()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*Event
	for i := range w.queue {
		if o := &w.queue[i]; o.event != nil && o.session == session {
			out = append(out, o.event)
		}
	}
	return out
}

// queuedHeads are the heads that are not committed yet, the newest of each session.
func (w *writeQueue) queuedHeads() map[string]*Session {
	w.adopt()
	w.mu.Lock()
	defer w.mu.Unlock()
	heads := map[string]*Session{}
	for i := range w.queue {
		if h := w.queue[i].head; h != nil {
			heads[h.ID] = h
		}
	}
	return heads
}
