package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// job is a turn or a call by hand.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	item   *QueueItem // a prompt's; guarded by the session's mu until it begins; nil for a call by hand
	run    func(ctx context.Context)
	failed func(error)     // it cannot be begun: the error, or context.Canceled
	end    TurnData        // a prompt's; set before done is closed
	heard  <-chan struct{} // closed when who waits has passed the end on; nil: nobody to wait for
	done   chan struct{}
}

// Prompt runs a turn and returns when it is over and every subscriber has seen its end. The end of ctx cancels the
// turn. While another turn runs the prompt waits in the queue; one that follows a cancelled or failed turn goes before
// what is held there, and lets it go on. The error says that no turn could begin; what went wrong in a turn is in
// TurnData.
func (s *Session) Prompt(ctx context.Context, p Prompt) (TurnData, error) {
	wait, err := s.Submit(ctx, p)
	if err != nil {
		return TurnData{}, err
	}
	return wait()
}

// Submit is the first half of Prompt: when it returns the prompt has its place in the queue.
func (s *Session) Submit(ctx context.Context, p Prompt) (wait func() (TurnData, error), err error) {
	if len(p.Parts) == 0 {
		return nil, ErrEmptyPrompt
	}
	j := s.newPrompt(ctx, p, true)
	j.heard = p.Answered
	var failed error
	j.failed = func(err error) { failed = err }
	if err := ctx.Err(); err != nil {
		return func() (TurnData, error) { return TurnData{Stop: TurnCancelled}, nil }, nil
	}
	if err := s.submit(j); err != nil {
		return nil, err
	}
	return func() (TurnData, error) {
		err := s.wait(ctx, j)
		if err == nil {
			err = failed
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return TurnData{Stop: TurnCancelled}, nil
		}
		return j.end, err
	}, nil
}

// Tool makes one tool call by hand, through the same gate, hooks, cap and events as a model's. It waits for a turn
// that runs. A failed call is in ToolData; the error says that it could not be made.
func (s *Session) Tool(ctx context.Context, name string, input json.RawMessage) (ToolData, error) {
	var data ToolData
	var failed error
	err := s.do(ctx, func(ctx context.Context) { data, failed = s.byHand(ctx, name, input) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return data, err
}

// Cancel ends what runs and drops what somebody waits for; each is answered as cancelled. Prompts of Enqueue stay in
// the queue, held.
func (s *Session) Cancel() {
	s.mu.Lock()
	var dropped, kept []*job
	for _, j := range s.queue {
		if j.item != nil && !j.item.Request {
			kept = append(kept, j)
		} else {
			dropped = append(dropped, j)
		}
	}
	s.queue = kept
	for _, j := range slices.Clone(s.steers) {
		if j.item.Request {
			s.take(j)
			dropped = append(dropped, j)
		}
	}
	if s.now != nil {
		s.now.cancel()
	}
	if s.owning != nil {
		s.owning()
	}
	s.hold()
	s.mu.Unlock()
	for _, j := range dropped {
		j.fail(context.Canceled)
	}
	s.changed()
}

func (j *job) fail(err error) {
	j.failed(err)
	j.cancel()
	close(j.done)
}

func (s *Session) newJob(ctx context.Context) *job {
	j := &job{failed: func(error) {}, done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// do queues a job that is no prompt and waits for its end.
func (s *Session) do(ctx context.Context, run func(context.Context), failed func(error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := s.newJob(ctx)
	j.run, j.failed = run, failed
	if err := s.submit(j); err != nil {
		return err
	}
	return s.wait(ctx, j)
}

// newPrompt makes the job of a turn; request says that somebody waits for its end.
func (s *Session) newPrompt(ctx context.Context, p Prompt, request bool) *job {
	j := s.newJob(ctx)
	if p.MessageID == "" {
		p.MessageID = newID("msg_")
	}
	j.item = &QueueItem{ID: p.MessageID, Parts: s.maskParts(p.Parts), Time: now(), Request: request}
	j.run = func(ctx context.Context) {
		p.MessageID, p.Parts = j.item.ID, j.item.Parts
		j.end = s.turn(ctx, p)
	}
	return j
}

// submit gives a job its place: last, or before what is held.
func (s *Session) submit(j *job) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		j.cancel()
		return ErrClosed
	}
	if s.held && j.item != nil {
		s.held = false
		s.queue = append([]*job{j}, s.queue...)
		s.storeQueue()
	} else {
		s.queue = append(s.queue, j)
	}
	s.wake()
	s.mu.Unlock()
	s.changed()
	return nil
}

// wake starts the runner when it does not run. mu is held.
func (s *Session) wake() {
	if s.running == nil {
		s.running = make(chan struct{})
		go s.runner(s.running)
	}
}

// wait returns when a job has ended, or with ctx's error when it never began or was read by another turn.
func (s *Session) wait(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
	}
	is := func(x *job) bool { return x == j }
	s.mu.Lock()
	if slices.ContainsFunc(s.queue, is) || slices.ContainsFunc(s.steers, is) || slices.ContainsFunc(s.joined, is) {
		s.take(j)
		s.joined = slices.DeleteFunc(slices.Clone(s.joined), is)
		s.mu.Unlock()
		j.cancel()
		s.changed()
		return ctx.Err()
	}
	s.mu.Unlock()
	<-j.done
	return nil
}

// runner does the queued jobs and ends. It holds the session's lock among processes from its first job to the end
// of its last, and takes over first what another process has added.
func (s *Session) runner(ended chan struct{}) {
	var unlock func()
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.queue, s.runnable)
		if i < 0 {
			if unlock != nil {
				s.mu.Unlock()
				// What the next owner must see is on disk before it can get the lock.
				s.syncBriefly()
				unlock()
				unlock = nil
				continue // a job may have come meanwhile
			}
			s.running = nil
			s.mu.Unlock()
			close(ended)
			return
		}
		j := s.queue[i]
		if unlock == nil {
			ctx, cancel := context.WithCancel(j.ctx)
			s.owning = cancel
			s.mu.Unlock()
			var err error
			unlock, err = s.own(ctx)
			cancel()
			s.mu.Lock()
			s.owning = nil
			if err != nil {
				s.cannot(j, err)
			} else {
				s.mu.Unlock()
			}
			continue // what another process has done may have changed the queue
		}
		s.queue = slices.Delete(slices.Clone(s.queue), i, i+1)
		s.now = j
		s.mu.Unlock()
		s.changed()

		err := j.ctx.Err()
		if err == nil {
			j.run(j.ctx)
			if j.item != nil {
				s.mu.Lock()
				s.last = j.end
				s.mu.Unlock()
				s.endSteering(j.end)
			}
			s.log.flush()
		}
		s.mu.Lock()
		s.now = nil
		s.mu.Unlock()
		if err != nil {
			j.fail(err)
		} else {
			j.cancel()
			close(j.done)
		}
		s.changed()
		if j.heard != nil {
			select {
			case <-j.heard:
			case <-time.After(heardLimit):
			}
		}
	}
}

// heardLimit is how long the next turn waits for the end of the last one to be passed on.
const heardLimit = 200 * time.Millisecond

// runnable says that a job may begin; what is held may not. mu is held.
func (s *Session) runnable(j *job) bool { return !s.held || j.item == nil || j.item.Request }

// cannot deals with a job whose session this process cannot have: who waits for it is told, what is stored is held.
// mu is held, and given up.
func (s *Session) cannot(j *job, err error) {
	waits := slices.Contains(s.queue, j)
	if j.item != nil && !j.item.Request {
		s.hold()
		waits = false
	} else {
		s.take(j)
	}
	s.mu.Unlock()
	if waits {
		j.fail(err)
	}
	s.changed()
}

// syncBriefly waits for the store, unless it is in trouble: that is reported through OnProblem.
func (s *Session) syncBriefly() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.rt.st.Sync(ctx)
}

// own makes this process the only writer of the session.
func (s *Session) own(ctx context.Context) (unlock func(), err error) {
	unlock, err = s.rt.st.Lock(ctx, s.ID())
	if err != nil {
		return nil, err
	}
	s.log.flush()
	s.hist.info, s.hist.todos = s.Info(), todoList{s}.Get()
	s.mu.Lock()
	s.hist.queue = s.stored()
	s.mu.Unlock()
	changed := false
	err = s.log.catchUp(ctx, func(e Event) {
		s.hist.apply(e)
		changed = true
	})
	if err != nil {
		unlock()
		return nil, err
	}
	if changed {
		s.adopt()
	}
	if s.hist.open() {
		s.repair()
	}
	if s.hist.stale {
		s.log.flush()
		if err := s.rebuild(ctx); err != nil {
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}
