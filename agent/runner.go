package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// Runner runs a session's jobs one after another, and keeps the queue of prompts. While there is a job, one goroutine runs and holds the
// session's lock across processes: two processes that write one session would give two events the same number.
//
// The queue, steering and the loop are one type on purpose: whether a prompt starts a turn, joins the running one or waits is decided in
// one critical section; separate locks would let the turn end in between. The methods are ordered: starting jobs, the loop that runs them,
// the queue, steering, closing.
type Runner struct {
	*watchers     // called when the state or the queue changes
	*waitingCalls // calls that wait for the person

	work   worker
	log    *EventLog
	masker *masker
	above  *Runner // the parent session's, when this is a sub-agent's

	mu      sync.Mutex
	queue   []*job        // guarded by mu: jobs that have not begun
	now     *job          // guarded by mu: the job that runs
	running chan struct{} // guarded by mu; closed when the loop ends; nil while no loop runs
	closed  bool          // guarded by mu
	owning  func()        // guarded by mu; cancels the wait for the session's lock; nil while nothing waits for it
	last    TurnData      // guarded by mu: the last turn's end

	held        bool   // guarded by mu; stored prompts do not run until the person resumes
	queueStored bool   // guarded by mu: the event log has events of the queue
	steerable   bool   // guarded by mu; a turn runs and will read steers before its next step
	steers      []*job // guarded by mu; unread messages for the running turn
	joined      []*job // guarded by mu; requests whose messages the running turn has read; they end with it
}

// newRunner makes a runner without jobs. The caller sets work afterwards, because work needs the runner.
func newRunner(log *EventLog, masker *masker) *Runner {
	w := &watchers{}
	return &Runner{watchers: w, waitingCalls: &waitingCalls{changed: w.notify}, log: log, masker: masker}
}

// worker is the part of a session that its runner calls.
type worker interface {
	// own makes this process the only writer of the session until unlock, and reads what another process has added.
	own(ctx context.Context) (unlock func(), err error)
	turn(ctx context.Context, p Prompt) TurnData
	byHand(ctx context.Context, tool string, input json.RawMessage) (ToolData, error)
	// listen adds a message to the conversation. It may be called only between two steps.
	listen(d PromptData)
}

// job is a turn, a call by hand, or another task that needs to be the session's only writer.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	item   *QueueItem // of a prompt; guarded by Runner.mu until the job begins; nil for other jobs
	run    func(ctx context.Context)
	failed func(error)     // called instead of run when the job cannot begin, with the reason or context.Canceled
	end    TurnData        // of a prompt; set before done is closed
	heard  <-chan struct{} // closed when the caller has been told of the end; nil: nothing to wait for
	// done is closed exactly once: by fail, loop or endSteering.
	done chan struct{}
}

// Prompt runs a turn, and returns when it is over and every subscriber has received its end event. When ctx ends, the turn is cancelled.
// While another turn runs, the prompt waits in the queue. After a cancelled or failed turn it runs before the held prompts, and releases
// them. An error means that no turn could begin; a failure inside a turn is in TurnData.
func (r *Runner) Prompt(ctx context.Context, p Prompt) (TurnData, error) {
	wait, err := r.Submit(ctx, p)
	if err != nil {
		return TurnData{}, err
	}
	return wait()
}

// Submit is the first half of Prompt: when it returns, the prompt has its place in the queue, so a caller can keep its prompts in order.
func (r *Runner) Submit(ctx context.Context, p Prompt) (wait func() (TurnData, error), err error) {
	if len(p.Parts) == 0 {
		return nil, ErrEmptyPrompt
	}
	j := r.newPrompt(ctx, p, true)
	// The next turn waits until the caller has answered this one, at most heardLimit.
	j.heard = p.Answered
	var failed error
	j.failed = func(err error) { failed = err }
	// A prompt whose context has already ended is not queued.
	if err := ctx.Err(); err != nil {
		return func() (TurnData, error) { return TurnData{Stop: TurnCancelled}, nil }, nil
	}
	if err := r.submit(j); err != nil {
		return nil, err
	}
	return func() (TurnData, error) {
		err := r.wait(ctx, j)
		if err == nil {
			err = failed
		}
		// The caller cancelled the turn by ending ctx; that is an outcome, not an error.
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return TurnData{Stop: TurnCancelled}, nil
		}
		return j.end, err
	}, nil
}

// ToolFailure says why a call failed.
type ToolFailure struct {
	Kind    string `json:"kind"` // tools.Error.Kind; "error" where the error has none
	Message string `json:"message"`
}

// Failure returns why a call made with Runner.Tool failed; nil when it succeeded. A failure inside the tool (in d) and one of the call
// itself (err: no such tool, invalid input) look alike, because the caller handles both in the same way.
func (d ToolData) Failure(err error) *ToolFailure {
	var f *ToolFailure
	if d.Status == ToolError {
		f = &ToolFailure{Kind: d.ErrorKind, Message: d.Error}
	} else if err != nil {
		f = &ToolFailure{Message: err.Error()}
		var e *tools.Error
		if errors.As(err, &e) {
			f.Kind = e.Kind
		}
	}
	if f != nil && f.Kind == "" {
		f.Kind = "error"
	}
	return f
}

// Tool makes one tool call by hand, with the gate, hooks, output limit and events of a model's call. It waits until a running turn has
// ended. A failed call is reported in ToolData; an error means that the call could not be made.
func (r *Runner) Tool(ctx context.Context, name string, input json.RawMessage) (ToolData, error) {
	var data ToolData
	var failed error
	err := r.do(ctx, func(ctx context.Context) { data, failed = r.work.byHand(ctx, name, input) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return data, err
}

// Cancel cancels the running job and drops the waiting requests, which end as cancelled. Prompts of Enqueue stay in the queue, held: a
// person who cancels wants the agent to stop, not the next prompt to begin.
func (r *Runner) Cancel() {
	r.mu.Lock()
	var dropped, kept []*job
	// Calls by hand and requests have a caller that waits for them. Stored prompts have none and are kept.
	for _, j := range r.queue {
		if j.item != nil && !j.item.Request {
			kept = append(kept, j)
		} else {
			dropped = append(dropped, j)
		}
	}
	r.queue = kept
	for _, j := range slices.Clone(r.steers) {
		if j.item.Request {
			r.dequeue(j)
			dropped = append(dropped, j)
		}
	}
	if r.now != nil {
		r.now.cancel()
	}
	// Also end the wait of a job for the session's lock.
	if r.owning != nil {
		r.owning()
	}
	r.hold()
	r.mu.Unlock()
	// After unlocking: failed and the watchers may call the runner.
	for _, j := range dropped {
		j.fail(context.Canceled)
	}
	r.watchers.notify()
}

// fail ends a job that has not begun, and tells its caller why.
func (j *job) fail(err error) {
	j.failed(err)
	j.cancel()
	close(j.done)
}

// newJob makes a job with a context of its own below ctx, so that one job can be cancelled without the others. The caller sets run.
func newJob(ctx context.Context) *job {
	j := &job{failed: func(error) {}, done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// do queues a job that is not a prompt and waits for its end. failed is called with the reason when the job could not begin. An error of do
// itself means that the job was not queued, or that ctx ended before it began.
func (r *Runner) do(ctx context.Context, run func(context.Context), failed func(error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := newJob(ctx)
	j.run, j.failed = run, failed
	if err := r.submit(j); err != nil {
		return err
	}
	return r.wait(ctx, j)
}

// newPrompt makes the job of a turn; request means that a caller waits for its end.
func (r *Runner) newPrompt(ctx context.Context, p Prompt, request bool) *job {
	j := newJob(ctx)
	// The queue finds prompts by their ids.
	if p.MessageID == "" {
		p.MessageID = newID("msg_")
	}
	// Mask keys before the prompt is stored or shown.
	j.item = &QueueItem{ID: p.MessageID, Parts: r.masker.maskParts(p.Parts), Time: now(), Request: request}
	j.run = func(ctx context.Context) {
		p.MessageID, p.Parts = j.item.ID, j.item.Parts
		j.end = r.work.turn(ctx, p)
	}
	return j
}

// submit appends a job to the queue. A prompt that arrives while the queue is held goes first and releases the queue.
func (r *Runner) submit(j *job) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		j.cancel()
		return ErrClosed
	}
	// A person who prompts after a stop wants this prompt first, and the held ones after it.
	if r.held && j.item != nil {
		r.held = false
		r.queue = append([]*job{j}, r.queue...)
		r.storeQueue()
	} else {
		r.queue = append(r.queue, j)
	}
	r.wake()
	r.mu.Unlock()
	r.watchers.notify()
	return nil
}

// wake starts the loop when it does not run. The caller holds mu.
func (r *Runner) wake() {
	if r.running == nil {
		r.running = make(chan struct{})
		go r.loop(r.running)
	}
}

// wait returns nil when a job has ended, or the error of ctx when ctx ended before the job began or after a running turn had read its
// message.
func (r *Runner) wait(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
	}
	// A waiting job is removed from the queue. A running job's context has ended too, so it ends soon.
	is := func(x *job) bool { return x == j }
	r.mu.Lock()
	if slices.ContainsFunc(r.queue, is) || slices.ContainsFunc(r.steers, is) || slices.ContainsFunc(r.joined, is) {
		r.dequeue(j)
		r.joined = slices.DeleteFunc(slices.Clone(r.joined), is)
		r.mu.Unlock()
		j.cancel()
		r.watchers.notify()
		return ctx.Err()
	}
	r.mu.Unlock()
	// The turn still writes its end event; wait for that.
	<-j.done
	return nil
}

// loop runs the queued jobs, and ends when none can run. It holds the session's lock across processes from its first job to its last, and
// first reads what another process has added to the session.
func (r *Runner) loop(ended chan struct{}) {
	var unlock func()
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.queue, r.runnable)
		if i < 0 {
			// Release the lock before the goroutine ends, then look at the queue once more.
			if unlock != nil {
				r.mu.Unlock()
				// The next owner of the lock must find everything on disk.
				r.log.syncBriefly()
				unlock()
				unlock = nil
				continue // a job may have been queued meanwhile
			}
			// Set under mu, so that wake sees a loop either running or ended.
			r.running = nil
			r.mu.Unlock()
			close(ended)
			return
		}
		j := r.queue[i]
		// The lock is kept until the queue is empty, so that another process does not interrupt a series of jobs.
		if unlock == nil {
			ctx, cancel := context.WithCancel(j.ctx)
			r.owning = cancel
			r.mu.Unlock()
			var err error
			unlock, err = r.work.own(ctx)
			cancel()
			// Cancel may have ended the wait through owning.
			r.mu.Lock()
			r.owning = nil
			if err != nil {
				r.failLocked(j, err)
			} else {
				r.mu.Unlock()
			}
			continue // the events of another process may have changed the queue
		}
		r.queue = slices.Delete(slices.Clone(r.queue), i, i+1)
		r.now = j
		r.mu.Unlock()
		r.watchers.notify()

		err := j.ctx.Err()
		if err == nil {
			j.run(j.ctx)
			if j.item != nil {
				// Set before the caller learns of the end, so that State never returns an older one.
				r.mu.Lock()
				r.last = j.end
				r.mu.Unlock()
				r.endSteering(j.end)
			}
			// Deliver all events of the job before its caller learns of the end.
			r.log.flush()
		}
		r.mu.Lock()
		r.now = nil
		r.mu.Unlock()
		if err != nil {
			j.fail(err)
		} else {
			j.cancel()
			close(j.done)
		}
		r.watchers.notify()
		// A caller that never confirms delays the next turn by at most heardLimit.
		if j.heard != nil {
			select {
			case <-j.heard:
			case <-time.After(heardLimit):
			}
		}
	}
}

// heardLimit is how long the next turn waits until the last turn's caller has been told of its end. An editor must receive the answer to
// one prompt before the updates of the next, but a slow editor must not hold up the queue.
const heardLimit = 200 * time.Millisecond

// runnable reports whether a job may begin: stored prompts may not while the queue is held. The caller holds mu.
func (r *Runner) runnable(j *job) bool { return !r.held || j.item == nil || j.item.Request }

// failLocked handles a job that cannot begin because another process has the session's lock: a request fails with err; a stored prompt
// stays in the queue, held. The caller holds mu, and failLocked unlocks it.
func (r *Runner) failLocked(j *job, err error) {
	// wait may have removed and ended the job meanwhile.
	waits := slices.Contains(r.queue, j)
	if j.item != nil && !j.item.Request {
		r.hold()
		waits = false
	} else {
		r.dequeue(j)
	}
	r.mu.Unlock()
	if waits {
		j.fail(err)
	}
	r.watchers.notify()
}

// ErrNotQueued means that no prompt with this id is waiting; it may have begun meanwhile.
var ErrNotQueued = errors.New("the queue has no such prompt; it may have begun or been removed")

// QueueItem is a prompt that waits for the session to be free.
type QueueItem struct {
	ID    string          `json:"id"` // the message id that the prompt will have
	Parts []provider.Part `json:"parts"`
	Time  time.Time       `json:"time"`
	// Steer means that it is a message for the running turn, which reads it before its next step.
	Steer bool `json:"steer,omitempty"`
	// Request means that a caller of Runner.Prompt waits for its end. Such an item is not stored, and is dropped when the caller's context
	// ends.
	Request bool `json:"-"`
}

// Queue returns the waiting items: messages for the running turn first, then prompts in their order. held means that no stored prompt runs
// until the person resumes, because the last turn was cancelled or failed, or the session has just been loaded.
func (r *Runner) Queue() (items []QueueItem, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Calls by hand have no item and are not shown.
	for _, j := range r.waiting() {
		items = append(items, *j.item)
	}
	return items, r.held
}

// Enqueue adds a prompt that runs when the session is free, whichever editor is connected then. The prompt is on disk when Enqueue returns.
// It releases a held queue.
func (r *Runner) Enqueue(p Prompt) (QueueItem, error) {
	if len(p.Parts) == 0 {
		return QueueItem{}, ErrEmptyPrompt
	}
	// The prompt outlives the connection that sent it, so no caller's context may cancel it.
	j := r.newPrompt(context.Background(), p, false)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		j.cancel()
		return QueueItem{}, ErrClosed
	}
	r.queue = append(r.queue, j)
	r.held = false
	r.storeQueue(*j.item)
	r.wake()
	r.mu.Unlock()
	r.watchers.notify()
	// After unlocking, because it waits for the disk.
	r.waitStored()
	return *j.item, nil
}

// Unqueue removes prompts from the queue: all of them, or none with ErrNotQueued. For a caller that waits for one of them, the prompt ends
// as cancelled.
func (r *Runner) Unqueue(ids ...string) error {
	r.mu.Lock()
	for _, id := range ids {
		// Check all ids first, so that nothing is removed when one is unknown.
		if r.find(id) == nil {
			r.mu.Unlock()
			return fmt.Errorf("%q: %w", id, ErrNotQueued)
		}
	}
	var out []*job
	for _, id := range ids {
		if j := r.find(id); j != nil { // nil: the id was given twice
			r.dequeue(j)
			out = append(out, j)
		}
	}
	r.storeQueue()
	r.mu.Unlock()
	for _, j := range out {
		j.fail(context.Canceled)
	}
	r.watchers.notify()
	r.waitStored()
	return nil
}

// EditQueued replaces the text of a waiting prompt; ErrNotQueued when it is no longer waiting.
func (r *Runner) EditQueued(id string, parts []provider.Part) error {
	if len(parts) == 0 {
		return ErrEmptyPrompt
	}
	r.mu.Lock()
	j := r.find(id)
	if j == nil {
		r.mu.Unlock()
		return fmt.Errorf("%q: %w", id, ErrNotQueued)
	}
	// Replace the slice instead of changing it: emitted events hold the old one.
	j.item.Parts = parts
	r.storeQueue(*j.item)
	r.mu.Unlock()
	r.watchers.notify()
	r.waitStored()
	return nil
}

// MoveQueued moves a waiting prompt before another one, or to the end when before is empty; ErrNotQueued when one of them is not waiting.
func (r *Runner) MoveQueued(id, before string) error {
	r.mu.Lock()
	j, to := r.find(id), r.find(before)
	switch {
	case j == nil, before != "" && to == nil:
		r.mu.Unlock()
		if j != nil {
			// Name the prompt that is missing.
			id = before
		}
		return fmt.Errorf("%q: %w", id, ErrNotQueued)
	case j.item.Steer || to != nil && to.item.Steer:
		r.mu.Unlock()
		return errors.New("a message for the running turn cannot be moved in the queue; remove it, or wait until the turn has read it")
	case j != to:
		r.dequeue(j)
		// Look up the index after the removal, which has shifted it.
		at := len(r.queue)
		if to != nil {
			at = slices.Index(r.queue, to)
		}
		r.queue = slices.Insert(r.queue, at, j)
		r.storeQueue()
	}
	r.mu.Unlock()
	r.watchers.notify()
	r.waitStored()
	return nil
}

// Resume releases a held queue, and its prompts run.
func (r *Runner) Resume() {
	r.mu.Lock()
	if r.held && !r.closed {
		r.held = false
		r.storeQueue()
		r.wake()
	}
	r.mu.Unlock()
	r.watchers.notify()
}

// Steer sends a message to the running turn, which reads it before its next step. The message is on disk when Steer returns. When the turn
// is cancelled or fails before that step, the message becomes a held prompt. When no turn runs, injected is false and nothing has changed.
func (r *Runner) Steer(_ context.Context, p Prompt) (injected bool, err error) {
	if len(p.Parts) == 0 {
		return false, ErrEmptyPrompt
	}
	j := r.newPrompt(context.Background(), p, false)
	r.mu.Lock()
	// A turn that is about to end reads no further messages; see stopSteering.
	if r.closed || !r.steerable {
		r.mu.Unlock()
		j.cancel()
		return false, nil
	}
	j.item.Steer = true
	r.steers = append(r.steers, j)
	r.storeQueue(*j.item)
	r.mu.Unlock()
	r.watchers.notify()
	r.waitStored()
	return true, nil
}

// SteerQueued sends a waiting prompt to the running turn. When no turn runs, the prompt runs next, a held queue is released, and injected
// is false. ErrNotQueued when the prompt is no longer waiting.
func (r *Runner) SteerQueued(id string) (injected bool, err error) {
	r.mu.Lock()
	j := r.find(id)
	if j == nil {
		r.mu.Unlock()
		return false, fmt.Errorf("%q: %w", id, ErrNotQueued)
	}
	switch {
	case j.item.Steer:
		injected = true
	case r.steerable:
		r.dequeue(j)
		j.item.Steer, injected = true, true
		r.steers = append(r.steers, j)
	default:
		// No turn can read it, so it becomes the next prompt.
		r.dequeue(j)
		r.queue = slices.Insert(r.queue, 0, j)
		r.held = false
		r.wake()
	}
	r.storeQueue(*j.item)
	r.mu.Unlock()
	r.watchers.notify()
	r.waitStored()
	return injected, nil
}

// waiting returns the jobs of prompts that have not begun. The caller holds mu.
func (r *Runner) waiting() []*job {
	// Steers come first: the running turn reads them before any prompt begins.
	all := slices.Clone(r.steers)
	for _, j := range r.queue {
		if j.item != nil {
			all = append(all, j)
		}
	}
	return all
}

// find returns the waiting prompt with this id, or nil. The caller holds mu.
func (r *Runner) find(id string) *job {
	for _, j := range r.waiting() {
		if j.item.ID == id {
			return j
		}
	}
	return nil
}

// dequeue removes a job from the queue or from the steers, wherever it waits. The caller holds mu.
func (r *Runner) dequeue(j *job) {
	is := func(x *job) bool { return x == j }
	r.queue = slices.DeleteFunc(slices.Clone(r.queue), is)
	r.steers = slices.DeleteFunc(slices.Clone(r.steers), is)
}

// stored returns the prompts that outlive their sender. The caller holds mu.
func (r *Runner) stored() []QueueItem {
	// A request is not stored: after a crash its caller is gone.
	var all []QueueItem
	for _, j := range r.waiting() {
		if !j.item.Request {
			all = append(all, *j.item)
		}
	}
	return all
}

// storeQueue emits the order of the queue and the items in put, without requests. The caller holds mu, so that the events are in the order
// of the changes.
func (r *Runner) storeQueue(put ...QueueItem) {
	// An empty order must be encoded as [], not as null.
	d := QueueData{Order: []string{}, Held: r.held}
	for _, i := range r.stored() {
		d.Order = append(d.Order, i.ID)
	}
	for _, i := range put {
		if !i.Request {
			d.Put = append(d.Put, i)
		}
	}
	// A session that never had a stored prompt gets no queue events.
	if len(d.Order) == 0 && len(d.Put) == 0 && !r.queueStored {
		return
	}
	r.queueStored = true
	r.log.emit(EventQueue, d)
}

// hold prevents the stored prompts from running until the person resumes. The caller holds mu.
func (r *Runner) hold() {
	if !r.held && len(r.stored()) > 0 {
		r.held = true
		r.storeQueue()
	}
}

// waitStored blocks until the queue is on disk: a prompt that Enqueue has accepted must survive a crash.
func (r *Runner) waitStored() {
	r.log.flush()
	r.log.syncBriefly()
}

// adoptQueue makes the queue agree with the events: prompts that another process has run or removed are dropped; those that it has added
// are queued, held. The caller holds mu.
func (r *Runner) adoptQueue(items []QueueItem) {
	have := map[string]bool{}
	for _, j := range r.waiting() {
		have[j.item.ID] = true
		// Requests exist in this process only and are in no event.
		if !j.item.Request && !slices.ContainsFunc(items, func(i QueueItem) bool { return i.ID == j.item.ID }) {
			r.dequeue(j)
			j.cancel()
		}
	}
	for _, i := range items {
		if have[i.ID] {
			continue
		}
		i.Steer = false // the turn for which it was meant is over
		j := r.newPrompt(context.Background(), Prompt{MessageID: i.ID, Parts: i.Parts}, false)
		j.item.Time = i.Time
		// Hold it: the person may not know what another process has queued.
		r.queue = append(r.queue, j)
		r.held = true
	}
	r.queueStored = r.queueStored || len(items) > 0
}

// endSteering makes prompts of the messages that the turn has not read, held when the turn was cancelled or failed, and ends the requests
// whose messages it has read.
func (r *Runner) endSteering(end TurnData) {
	r.mu.Lock()
	left := r.steers
	r.steers, r.steerable = nil, false
	for _, j := range left {
		j.item.Steer = false
	}
	// They go before the queue, in the order in which they were sent.
	r.queue = append(left, r.queue...)
	was := r.held
	if end.Stop == TurnCancelled || end.Stop == TurnError {
		r.hold()
	}
	// When hold changed held, it has stored the queue already.
	if len(left) > 0 && r.held == was {
		r.storeQueue()
	}
	joined := r.joined
	r.joined = nil
	r.mu.Unlock()
	// These callers receive the end of the turn that has read their messages.
	for _, j := range joined {
		j.end = end
		j.cancel()
		close(j.done)
	}
}

// Tell adds a message to the conversation, which the next turn reads; it starts no turn. Synthetic parts are not shown to the person.
func (r *Runner) Tell(ctx context.Context, parts []provider.Part) error {
	var failed error
	err := r.do(ctx, func(context.Context) { r.work.listen(PromptData{MessageID: newID("msg_"), Parts: parts}) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return err
}

// State is what a session is doing at one moment.
type State struct {
	Turn    string   // message id of the running turn's prompt; empty between turns
	Busy    bool     // a turn or a call by hand runs
	Waiting []string // calls that wait for the person
	Last    TurnData // the end of the last turn since the session was opened
}

// State returns what the session is doing.
func (r *Runner) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := State{Busy: r.now != nil, Waiting: r.waitingCalls.list(), Last: r.last}
	if r.now != nil && r.now.item != nil {
		st.Turn = r.now.item.ID
	}
	return st
}

// steering allows Steer from here on: the running turn will read the messages.
func (r *Runner) steering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steerable = true
}

// readSteers returns the unread messages for the running turn and marks them as read.
func (r *Runner) readSteers() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	jobs := r.steers
	r.steers = nil
	// A request whose message was read ends with the turn; a stored message has no caller.
	for _, j := range jobs {
		if j.item.Request {
			r.joined = append(r.joined, j)
		}
	}
	return jobs
}

// steered reports whether there are unread messages for the running turn.
func (r *Runner) steered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steers) > 0
}

// stopSteering reports whether there is no unread message, so that the turn may end; if so, the turn accepts no more messages. Both happen
// under one lock: else a message sent in between would be lost.
func (r *Runner) stopSteering() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steers) > 0 {
		return false
	}
	r.steerable = false
	return true
}

// busy reports whether a job runs, or waits and may run.
func (r *Runner) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now != nil || slices.ContainsFunc(r.queue, r.runnable)
}

// Beside runs f while this process is the session's only writer: alongside the running job if there is one, else as a job of its own.
func (r *Runner) Beside(ctx context.Context, f func(ctx context.Context) error) error {
	r.mu.Lock()
	running := r.now != nil
	r.mu.Unlock()
	if running {
		return f(ctx)
	}
	var err error
	if e := r.do(ctx, func(ctx context.Context) { err = f(ctx) }, func(e error) { err = e }); e != nil {
		return e
	}
	return err
}

// Closing announces that the session is about to be closed. Approval requests that end after this count as interrupted, not decided, so a
// reopened session may ask them again.
func (r *Runner) Closing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// isClosing reports whether the session or one of its parents is about to be closed.
func (r *Runner) isClosing() bool {
	for ; r != nil; r = r.above {
		// Hold one lock at a time, so that the order of sessions does not matter.
		r.mu.Lock()
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return true
		}
	}
	return false
}

// close refuses further jobs, and returns a channel that is closed when the loop ends; nil when no job runs.
func (r *Runner) close() (ended <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.running
}

// adopt is adoptQueue for a caller that does not hold mu.
func (r *Runner) adopt(items []QueueItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adoptQueue(items)
}

// storedItems is stored for a caller that does not hold mu.
func (r *Runner) storedItems() []QueueItem {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored()
}
