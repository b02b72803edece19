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

// Runner runs a session's jobs, one after another, and keeps the prompts that wait. While
// there is a job, one goroutine runs, and it holds the session's lock among processes: two
// processes that wrote one session would number two events alike.
type Runner struct {
	*watchers     // of its state and queue
	*waitingCalls // calls that wait for the person

	work   worker
	log    *EventLog
	masker *masker
	above  *Runner // the parent session's, when this is a sub-agent's

	mu      sync.Mutex
	queue   []*job        // guarded by mu: jobs that have not begun
	now     *job          // guarded by mu: the job that runs
	running chan struct{} // guarded by mu: closed when the runner ends; nil without one
	closed  bool          // guarded by mu
	owning  func()        // guarded by mu: ends the wait for the session's lock; nil when there is none
	last    TurnData      // guarded by mu: the last turn's end

	held        bool   // guarded by mu: stored prompts wait until the user resumes
	queueStored bool   // guarded by mu: there are events of the queue
	steerable   bool   // guarded by mu: a turn runs that will read steers
	steers      []*job // guarded by mu: messages for the running turn that it has not read
	joined      []*job // guarded by mu: requests whose messages it has read; they end with it
}

// newRunner makes a runner without jobs; work is still to be set.
func newRunner(log *EventLog, masker *masker) *Runner {
	w := &watchers{}
	return &Runner{watchers: w, waitingCalls: &waitingCalls{changed: w.notify}, log: log, masker: masker}
}

// worker is the session as its runner sees it.
type worker interface {
	// own makes this process the only writer of the session, and takes over what another one has added.
	own(ctx context.Context) (unlock func(), err error)
	turn(ctx context.Context, p Prompt) TurnData
	byHand(ctx context.Context, tool string, input json.RawMessage) (ToolData, error)
	// listen adds a message to the conversation between two steps.
	listen(d PromptData)
}

// job is a turn, a call by hand, or another use of the session by its only writer.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	item   *QueueItem // a prompt's; guarded by the session's mu until it begins; nil for a call by hand
	run    func(ctx context.Context)
	failed func(error)     // it cannot be begun: the error, or context.Canceled
	end    TurnData        // a prompt's; set before done is closed
	heard  <-chan struct{} // closed when the caller has passed the end on; nil: nothing to wait for
	// It is closed exactly once, by fail, loop or endSteering.
	done chan struct{}
}

// Prompt runs a turn and returns when it is over and every subscriber has seen its end. The
// end of ctx cancels the turn. While another turn runs, the prompt waits in the queue;
// after a cancelled or failed turn it runs before the held prompts and releases them. The
// error says that no turn could begin; what went wrong in a turn is in TurnData.
func (r *Runner) Prompt(ctx context.Context, p Prompt) (TurnData, error) {
	wait, err := r.Submit(ctx, p)
	if err != nil {
		return TurnData{}, err
	}
	return wait()
}

// Submit is the first half of Prompt: when it returns the prompt has its place in the queue.
func (r *Runner) Submit(ctx context.Context, p Prompt) (wait func() (TurnData, error), err error) {
	if len(p.Parts) == 0 {
		return nil, ErrEmptyPrompt
	}
	j := r.newPrompt(ctx, p, true)
	// The next turn waits for it; see heardLimit.
	j.heard = p.Answered
	var failed error
	j.failed = func(err error) { failed = err }
	// A prompt whose context has ended takes no place in the queue.
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
		// A caller that went away has cancelled the turn: that is an outcome, not an error.
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return TurnData{Stop: TurnCancelled}, nil
		}
		return j.end, err
	}, nil
}

// ToolFailure is why a call failed.
type ToolFailure struct {
	Kind    string `json:"kind"` // as tools.Error has it; "error" where no kind is known
	Message string `json:"message"`
}

// Failure is why a call made with Runner.Tool failed, nil if it did not. A failure inside the tool (in d) and one of the
// call itself (err: no such tool, invalid input) look alike to the caller, who can do the same about both.
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

// Tool makes one tool call by hand, through the same gate, hooks, output limit and events
// as a model's. It waits for a running turn. A failed call is in ToolData; the error says
// that the call could not be made.
func (r *Runner) Tool(ctx context.Context, name string, input json.RawMessage) (ToolData, error) {
	var data ToolData
	var failed error
	err := r.do(ctx, func(ctx context.Context) { data, failed = r.work.byHand(ctx, name, input) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return data, err
}

// Cancel ends the running job and drops the requests that wait; each is answered as
// cancelled. Prompts of Enqueue stay in the queue, held: the person who cancels wants the
// agent to stop, not the next prompt to begin.
func (r *Runner) Cancel() {
	r.mu.Lock()
	var dropped, kept []*job
	// Calls by hand and requests have somebody who waits; stored prompts have nobody and stay.
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
	// A job that still waits for the session's lock is ended too.
	if r.owning != nil {
		r.owning()
	}
	r.hold()
	r.mu.Unlock()
	// Outside mu: failed and the watchers may call back into the runner.
	for _, j := range dropped {
		j.fail(context.Canceled)
	}
	r.watchers.notify()
}

// fail ends a job that has not begun, and tells who waits for it why.
func (j *job) fail(err error) {
	j.failed(err)
	j.cancel()
	close(j.done)
}

// newJob makes a job that ends with ctx; run is still to be set.
// The job's context is its own, so that one job can be cancelled without the others.
func (r *Runner) newJob(ctx context.Context) *job {
	j := &job{failed: func(error) {}, done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// do queues a job that is no prompt and waits for its end. failed gets the reason when the job could not begin; the result is an
// error only when it was not queued, or ctx ended before it began.
func (r *Runner) do(ctx context.Context, run func(context.Context), failed func(error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := r.newJob(ctx)
	j.run, j.failed = run, failed
	if err := r.submit(j); err != nil {
		return err
	}
	return r.wait(ctx, j)
}

// newPrompt makes the job of a turn; request says that a caller waits for its end.
func (r *Runner) newPrompt(ctx context.Context, p Prompt, request bool) *job {
	j := r.newJob(ctx)
	// Without an id from the editor one is made, because the queue knows prompts by their ids.
	if p.MessageID == "" {
		p.MessageID = newID("msg_")
	}
	// Secrets are masked before the prompt is stored or shown.
	j.item = &QueueItem{ID: p.MessageID, Parts: r.masker.maskParts(p.Parts), Time: now(), Request: request}
	j.run = func(ctx context.Context) {
		p.MessageID, p.Parts = j.item.ID, j.item.Parts
		j.end = r.work.turn(ctx, p)
	}
	return j
}

// submit appends a job to the queue; a prompt that a person sends while the queue is held
// goes first, and releases it.
func (r *Runner) submit(j *job) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		j.cancel()
		return ErrClosed
	}
	// A person who prompts after a stop means this prompt, and the held ones after it.
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

// wake starts the runner when it does not run. mu is held.
func (r *Runner) wake() {
	if r.running == nil {
		r.running = make(chan struct{})
		go r.loop(r.running)
	}
}

// wait returns when a job has ended, or with ctx's error when it never began or was read by another turn.
func (r *Runner) wait(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
	}
	// A job that waits is taken out of the queue; one that runs is waited for, since its context has ended too.
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
	// The turn's end is still to be written, so the caller waits for it.
	<-j.done
	return nil
}

// loop runs the queued jobs and ends when none is left. It holds the session's lock among
// processes from its first job to the end of its last, and first reads what another process
// has added to the session.
func (r *Runner) loop(ended chan struct{}) {
	var unlock func()
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.queue, r.runnable)
		if i < 0 {
			// The lock is given back before the goroutine ends, and the queue is looked at once more.
			if unlock != nil {
				r.mu.Unlock()
				// What the next owner must see is on disk before it can get the lock.
				r.log.syncBriefly()
				unlock()
				unlock = nil
				continue // a job may have come meanwhile
			}
			// Under mu, so that wake sees either a running loop or none.
			r.running = nil
			r.mu.Unlock()
			close(ended)
			return
		}
		j := r.queue[i]
		// The lock is taken once for a run of jobs: another process waits until the queue is empty.
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
			continue // reading another process's events may have changed the queue
		}
		r.queue = slices.Delete(slices.Clone(r.queue), i, i+1)
		r.now = j
		r.mu.Unlock()
		r.watchers.notify()

		err := j.ctx.Err()
		if err == nil {
			j.run(j.ctx)
			if j.item != nil {
				// The turn's end is known before its caller is told, so that State never shows an older one.
				r.mu.Lock()
				r.last = j.end
				r.mu.Unlock()
				r.endSteering(j.end)
			}
			// What the job emitted is in the subscribers' hands before its caller hears of the end.
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
		// An editor that never confirms costs heardLimit for each turn, and no more.
		if j.heard != nil {
			select {
			case <-j.heard:
			case <-time.After(heardLimit):
			}
		}
	}
}

// heardLimit is how long the next turn waits until the last one's end was passed on: an editor must get the answer to one
// prompt before the updates of the next, and a slow editor must not hold the queue.
const heardLimit = 200 * time.Millisecond

// runnable reports whether a job may begin: stored prompts may not while the queue is held.
// mu is held.
func (r *Runner) runnable(j *job) bool { return !r.held || j.item == nil || j.item.Request }

// failLocked handles a job that cannot begin because another process has the session's lock: a request fails with err, a stored
// prompt stays in the queue, held. The caller holds mu; cannot releases it.
func (r *Runner) failLocked(j *job, err error) {
	// wait may have taken the job out meanwhile, and has answered it then
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

// ErrNotQueued means that no such prompt waits; it may have begun meanwhile.
var ErrNotQueued = errors.New("no such prompt waits in the queue; it may have begun or been removed meanwhile")

// QueueItem is a prompt that waits for the session to be free.
type QueueItem struct {
	ID    string          `json:"id"` // the messageID the prompt will have
	Parts []provider.Part `json:"parts"`
	Time  time.Time       `json:"time"`
	// Steer: a message for the running turn, which reads it before its next step.
	Steer bool `json:"steer,omitempty"`
	// Request: a caller waits for its end (Runner.Prompt). It is not stored, and is dropped when the caller's context ends.
	Request bool `json:"-"`
}

// Queue is what waits, first to run first, messages for the running turn before all. held
// says that none of it runs until the person resumes: the last turn was cancelled or
// failed, or the session has just been loaded.
func (r *Runner) Queue() (items []QueueItem, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A call by hand has no item and is not shown.
	for _, j := range r.waiting() {
		items = append(items, *j.item)
	}
	return items, r.held
}

// Enqueue adds a prompt that runs when the session is free, whichever editor is connected
// then. It is on disk when Enqueue returns. Adding to a held queue releases it.
func (r *Runner) Enqueue(p Prompt) (QueueItem, error) {
	if len(p.Parts) == 0 {
		return QueueItem{}, ErrEmptyPrompt
	}
	// Its context is nobody's: the prompt outlives the connection that sent it.
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
	// Outside mu, since it waits for the disk.
	r.waitStored()
	return *j.item, nil
}

// Unqueue removes prompts from the queue: all of them, or none with ErrNotQueued. One that
// a caller waits for is answered as cancelled.
func (r *Runner) Unqueue(ids ...string) error {
	r.mu.Lock()
	for _, id := range ids {
		// All ids are checked first, so that nothing is removed when one is unknown.
		if r.find(id) == nil {
			r.mu.Unlock()
			return fmt.Errorf("%q: %w", id, ErrNotQueued)
		}
	}
	var out []*job
	for _, id := range ids {
		if j := r.find(id); j != nil { // named twice: gone already
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

// EditQueued replaces the text of a prompt that waits. ErrNotQueued.
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
	// The parts are replaced and not changed: events that were emitted hold the old ones.
	j.item.Parts = parts
	r.storeQueue(*j.item)
	r.mu.Unlock()
	r.watchers.notify()
	r.waitStored()
	return nil
}

// MoveQueued puts a prompt before another one, or last. ErrNotQueued.
func (r *Runner) MoveQueued(id, before string) error {
	r.mu.Lock()
	j, to := r.find(id), r.find(before)
	switch {
	case j == nil, before != "" && to == nil:
		r.mu.Unlock()
		if j != nil {
			// the error names the one that is missing
			id = before
		}
		return fmt.Errorf("%q: %w", id, ErrNotQueued)
	case j.item.Steer || to != nil && to.item.Steer:
		r.mu.Unlock()
		return errors.New("a message for the running turn cannot be moved in the queue; remove it, or wait until the turn has read it")
	case j != to:
		r.dequeue(j)
		// the place is looked up after the job is out, since the others have moved up
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

// Resume releases a held queue.
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

// Steer sends a message to the running turn, which reads it before its next step; it is on
// disk when Steer returns. When the turn is cancelled or fails before that, the message
// becomes a held prompt. Without a running turn injected is false and nothing has happened.
func (r *Runner) Steer(_ context.Context, p Prompt) (injected bool, err error) {
	if len(p.Parts) == 0 {
		return false, ErrEmptyPrompt
	}
	j := r.newPrompt(context.Background(), p, false)
	r.mu.Lock()
	// A turn that is about to end reads no more messages; see stopSteering.
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

// SteerQueued sends a waiting prompt to the running turn. Without one the prompt runs next,
// immediately, and a held queue is released; injected is false then. ErrNotQueued.
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
		// no turn reads it, so it becomes the next prompt
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

// waiting are the prompts that have not begun. mu is held.
func (r *Runner) waiting() []*job {
	// steers come first: the running turn reads them before any prompt begins
	all := slices.Clone(r.steers)
	for _, j := range r.queue {
		if j.item != nil {
			all = append(all, j)
		}
	}
	return all
}

// find is the waiting prompt with this id, or nil. mu is held.
func (r *Runner) find(id string) *job {
	for _, j := range r.waiting() {
		if j.item.ID == id {
			return j
		}
	}
	return nil
}

// dequeue removes a job from where it waits. mu is held.
func (r *Runner) dequeue(j *job) {
	is := func(x *job) bool { return x == j }
	r.queue = slices.DeleteFunc(slices.Clone(r.queue), is)
	r.steers = slices.DeleteFunc(slices.Clone(r.steers), is)
}

// stored are the prompts that outlive whoever sent them. mu is held.
func (r *Runner) stored() []QueueItem {
	// A request belongs to a caller that waits, and is not stored: after a crash nobody waits any more.
	var all []QueueItem
	for _, j := range r.waiting() {
		if !j.item.Request {
			all = append(all, *j.item)
		}
	}
	return all
}

// storeQueue emits the order of the queue, and the items in put, as far as they are stored
// at all. mu is held, so that the order of these events is the order of the changes.
func (r *Runner) storeQueue(put ...QueueItem) {
	// An empty order is written as [], not as null.
	d := QueueData{Order: []string{}, Held: r.held}
	for _, i := range r.stored() {
		d.Order = append(d.Order, i.ID)
	}
	for _, i := range put {
		if !i.Request {
			d.Put = append(d.Put, i)
		}
	}
	if len(d.Order) == 0 && len(d.Put) == 0 && !r.queueStored {
		return // nothing was ever stored: a session without a queue has no events of one
	}
	r.queueStored = true
	r.log.emit(EventQueue, d)
}

// hold keeps the stored prompts from running until the person resumes. mu is held.
func (r *Runner) hold() {
	// A queue without stored prompts has nothing to hold.
	if !r.held && len(r.stored()) > 0 {
		r.held = true
		r.storeQueue()
	}
}

// waitStored waits until the queue is on disk: a prompt that Enqueue has accepted must survive a crash.
func (r *Runner) waitStored() {
	r.log.flush()
	r.log.syncBriefly()
}

// adoptQueue makes the queue agree with the events: what another process has run or removed
// is dropped, what it has added waits, held. mu is held.
func (r *Runner) adoptQueue(items []QueueItem) {
	have := map[string]bool{}
	for _, j := range r.waiting() {
		have[j.item.ID] = true
		// Requests are this process's own, so the events do not know them.
		if !j.item.Request && !slices.ContainsFunc(items, func(i QueueItem) bool { return i.ID == j.item.ID }) {
			r.dequeue(j)
			j.cancel()
		}
	}
	for _, i := range items {
		if have[i.ID] {
			continue
		}
		i.Steer = false // the turn it was meant for is over
		j := r.newPrompt(context.Background(), Prompt{MessageID: i.ID, Parts: i.Parts}, false)
		j.item.Time = i.Time
		// what another process had queued waits for the person, who may not know of it
		r.queue = append(r.queue, j)
		r.held = true
	}
	r.queueStored = r.queueStored || len(items) > 0
}

// endSteering turns the messages that a turn has not read into the next prompts, held when
// the turn did not end well, and ends the requests that it did read.
func (r *Runner) endSteering(end TurnData) {
	r.mu.Lock()
	left := r.steers
	r.steers, r.steerable = nil, false
	for _, j := range left {
		j.item.Steer = false
	}
	// They come before the queue, in the order in which they were sent.
	r.queue = append(left, r.queue...)
	was := r.held
	if end.Stop == TurnCancelled || end.Stop == TurnError {
		r.hold()
	}
	// hold has stored the queue already, if it changed something
	if len(left) > 0 && r.held == was {
		r.storeQueue()
	}
	joined := r.joined
	r.joined = nil
	r.mu.Unlock()
	// Their callers get the end of the turn that has read their messages.
	for _, j := range joined {
		j.end = end
		j.cancel()
		close(j.done)
	}
}

// Tell adds a message to the conversation that the next turn reads; no turn begins.
// Synthetic parts are not shown to the person.
func (r *Runner) Tell(ctx context.Context, parts []provider.Part) error {
	var failed error
	err := r.do(ctx, func(context.Context) { r.work.listen(PromptData{MessageID: newID("msg_"), Parts: parts}) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return err
}

// State is what a session is doing.
type State struct {
	Turn    string   // message id of the running turn's prompt; empty between turns
	Busy    bool     // a turn or a call by hand runs
	Waiting []string // calls that wait for the person
	Last    TurnData // the end of the last turn since the session was opened
}

// State is what the session is doing now.
func (r *Runner) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := State{Busy: r.now != nil, Waiting: r.waitingCalls.list(), Last: r.last}
	if r.now != nil && r.now.item != nil {
		st.Turn = r.now.item.ID
	}
	return st
}

// steering allows Steer from now on: a turn runs that will read what is sent.
func (r *Runner) steering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steerable = true
}

// readSteers returns the messages for the running turn that it has not read yet.
func (r *Runner) readSteers() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	jobs := r.steers
	r.steers = nil
	// A request that was read ends with the turn; a stored message is done with.
	for _, j := range jobs {
		if j.item.Request {
			r.joined = append(r.joined, j)
		}
	}
	return jobs
}

// steered reports whether words wait for the running turn.
func (r *Runner) steered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steers) > 0
}

// stopSteering reports whether a turn that could end may do so: no message waits for it.
// From then on it accepts none; both under one lock, or a message sent in between would be
// lost.
func (r *Runner) stopSteering() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steers) > 0 {
		return false
	}
	r.steerable = false
	return true
}

// busy reports whether a job runs, or waits and is not held.
func (r *Runner) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now != nil || slices.ContainsFunc(r.queue, r.runnable)
}

// Beside runs f while this process is the session's only writer: beside the turn that runs, else as a job of its own.
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

// Closing says that the session is about to be closed: requests that end from now on were
// interrupted, not decided, and a reopened session may ask them again.
func (r *Runner) Closing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// isClosing is true for sub-agents as well when the session that started them is closing.
func (r *Runner) isClosing() bool {
	for ; r != nil; r = r.above {
		// One lock at a time, from the inside out.
		r.mu.Lock()
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return true
		}
	}
	return false
}

// close refuses new jobs, and returns a channel that is closed when the last one has ended;
// nil when none runs.
func (r *Runner) close() (ended <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.running
}

// adopt makes the queue agree with the events.
func (r *Runner) adopt(items []QueueItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adoptQueue(items)
}

// storedItems is stored with the lock taken.
func (r *Runner) storedItems() []QueueItem {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored()
}
