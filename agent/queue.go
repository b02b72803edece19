package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

// ErrNotQueued: no such prompt waits; it may have begun meanwhile.
var ErrNotQueued = errors.New("no such prompt waits in the queue; it may have begun or been removed meanwhile")

// QueueItem is a prompt that waits for the session to be free.
type QueueItem struct {
	ID    string          `json:"id"` // the messageID the prompt will have
	Parts []provider.Part `json:"parts"`
	Time  time.Time       `json:"time"`
	// Steer: words for the running turn, which reads them before its next step.
	Steer bool `json:"steer,omitempty"`
	// Request: somebody waits for its end (Session.Prompt). It is not stored, and ends with the one who waits.
	Request bool `json:"-"`
}

// Queue is what waits, first to run first, words for the running turn before all. held says that nothing of it runs
// until the person goes on: the turn before was cancelled or failed, or the session has just been loaded.
func (s *Session) Queue() (items []QueueItem, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.waiting() {
		items = append(items, *j.item)
	}
	return items, s.held
}

// Enqueue adds a prompt that runs when the session is free, whoever is connected then. It is stored when Enqueue
// returns. Adding to a held queue goes on with it.
func (s *Session) Enqueue(p Prompt) (QueueItem, error) {
	if len(p.Parts) == 0 {
		return QueueItem{}, ErrEmptyPrompt
	}
	j := s.newPrompt(context.Background(), p, false)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		j.cancel()
		return QueueItem{}, ErrClosed
	}
	s.queue = append(s.queue, j)
	s.held = false
	s.storeQueue(*j.item)
	s.wake()
	s.mu.Unlock()
	s.changed()
	s.keep()
	return *j.item, nil
}

// Unqueue takes prompts out of the queue. One that somebody waits for is answered as cancelled. ErrNotQueued.
func (s *Session) Unqueue(ids ...string) error {
	s.mu.Lock()
	for _, id := range ids {
		if s.find(id) == nil {
			s.mu.Unlock()
			return fmt.Errorf("%q: %w", id, ErrNotQueued)
		}
	}
	var out []*job
	for _, id := range ids {
		if j := s.find(id); j != nil { // named twice: gone already
			s.take(j)
			out = append(out, j)
		}
	}
	s.storeQueue()
	s.mu.Unlock()
	for _, j := range out {
		j.fail(context.Canceled)
	}
	s.changed()
	s.keep()
	return nil
}

// EditQueued gives a prompt that waits other words. ErrNotQueued.
func (s *Session) EditQueued(id string, parts []provider.Part) error {
	if len(parts) == 0 {
		return ErrEmptyPrompt
	}
	s.mu.Lock()
	j := s.find(id)
	if j == nil {
		s.mu.Unlock()
		return fmt.Errorf("%q: %w", id, ErrNotQueued)
	}
	j.item.Parts = parts
	s.storeQueue(*j.item)
	s.mu.Unlock()
	s.changed()
	s.keep()
	return nil
}

// MoveQueued puts a prompt before another one, or last. ErrNotQueued.
func (s *Session) MoveQueued(id, before string) error {
	s.mu.Lock()
	j, to := s.find(id), s.find(before)
	switch {
	case j == nil, before != "" && to == nil:
		s.mu.Unlock()
		if j != nil {
			id = before
		}
		return fmt.Errorf("%q: %w", id, ErrNotQueued)
	case j.item.Steer || to != nil && to.item.Steer:
		s.mu.Unlock()
		return errors.New("words for the running turn have no place in the queue; remove them, or wait until they are read")
	case j != to:
		s.take(j)
		at := len(s.queue)
		if to != nil {
			at = slices.Index(s.queue, to)
		}
		s.queue = slices.Insert(s.queue, at, j)
		s.storeQueue()
	}
	s.mu.Unlock()
	s.changed()
	s.keep()
	return nil
}

// Resume goes on with a queue that is held.
func (s *Session) Resume() {
	s.mu.Lock()
	if s.held && !s.closed {
		s.held = false
		s.storeQueue()
		s.wake()
	}
	s.mu.Unlock()
	s.changed()
}

// Steer gives words to the running turn, which reads them before its next step; they are stored when Steer returns.
// Should the turn be cancelled or fail before, they wait in the queue, held. Without a running turn injected is false
// and nothing has happened.
func (s *Session) Steer(_ context.Context, p Prompt) (injected bool, err error) {
	if len(p.Parts) == 0 {
		return false, ErrEmptyPrompt
	}
	j := s.newPrompt(context.Background(), p, false)
	s.mu.Lock()
	if s.closed || s.steerable == nil {
		s.mu.Unlock()
		j.cancel()
		return false, nil
	}
	j.item.Steer = true
	s.steers = append(s.steers, j)
	s.storeQueue(*j.item)
	s.mu.Unlock()
	s.changed()
	s.keep()
	return true, nil
}

// SteerQueued gives a prompt that waits to the running turn. Without one it is the next to run, at once, and what is
// held goes on behind it; injected is false then. ErrNotQueued.
func (s *Session) SteerQueued(id string) (injected bool, err error) {
	s.mu.Lock()
	j := s.find(id)
	if j == nil {
		s.mu.Unlock()
		return false, fmt.Errorf("%q: %w", id, ErrNotQueued)
	}
	switch {
	case j.item.Steer:
		injected = true
	case s.steerable != nil:
		s.take(j)
		j.item.Steer, injected = true, true
		s.steers = append(s.steers, j)
	default:
		s.take(j)
		s.queue = slices.Insert(s.queue, 0, j)
		s.held = false
		s.wake()
	}
	s.storeQueue(*j.item)
	s.mu.Unlock()
	s.changed()
	s.keep()
	return injected, nil
}

// waiting are the prompts that have not begun. mu is held.
func (s *Session) waiting() []*job {
	all := slices.Clone(s.steers)
	for _, j := range s.queue {
		if j.item != nil {
			all = append(all, j)
		}
	}
	return all
}

func (s *Session) find(id string) *job {
	for _, j := range s.waiting() {
		if j.item.ID == id {
			return j
		}
	}
	return nil
}

// take removes a job from where it waits. mu is held.
func (s *Session) take(j *job) {
	is := func(x *job) bool { return x == j }
	s.queue = slices.DeleteFunc(slices.Clone(s.queue), is)
	s.steers = slices.DeleteFunc(slices.Clone(s.steers), is)
}

// stored are the prompts that outlive whoever sent them. mu is held.
func (s *Session) stored() []QueueItem {
	var all []QueueItem
	for _, j := range s.waiting() {
		if !j.item.Request {
			all = append(all, *j.item)
		}
	}
	return all
}

// storeQueue writes down the order of the queue, and the items named, as far as they are stored at all. mu is held.
func (s *Session) storeQueue(put ...QueueItem) {
	d := QueueData{Order: []string{}, Held: s.held}
	for _, i := range s.stored() {
		d.Order = append(d.Order, i.ID)
	}
	for _, i := range put {
		if !i.Request {
			d.Put = append(d.Put, i)
		}
	}
	if len(d.Order) == 0 && len(d.Put) == 0 && !s.queueStored {
		return // nothing was ever stored: a session without a queue has no events of one
	}
	s.queueStored = true
	s.log.emit(EventQueue, d)
}

// hold keeps what is stored from running until the person goes on. mu is held.
func (s *Session) hold() {
	if !s.held && len(s.stored()) > 0 {
		s.held = true
		s.storeQueue()
	}
}

// keep waits until what was queued is on disk: words that were taken are not lost.
func (s *Session) keep() {
	s.log.flush()
	s.syncBriefly()
}

// adoptQueue makes the queue agree with the events: what another process has run or removed goes, what it has added
// waits until the person goes on. mu is held.
func (s *Session) adoptQueue(items []QueueItem) {
	have := map[string]bool{}
	for _, j := range s.waiting() {
		have[j.item.ID] = true
		if !j.item.Request && !slices.ContainsFunc(items, func(i QueueItem) bool { return i.ID == j.item.ID }) {
			s.take(j)
			j.cancel()
		}
	}
	for _, i := range items {
		if have[i.ID] {
			continue
		}
		i.Steer = false // the turn it was meant for is over
		j := s.newPrompt(context.Background(), Prompt{MessageID: i.ID, Parts: i.Parts}, false)
		j.item.Time = i.Time
		s.queue = append(s.queue, j)
		s.held = true
	}
	s.queueStored = s.queueStored || len(items) > 0
}

// read hands the words that wait for a turn to it.
func (t *turn) read() (any bool) {
	s := t.s
	s.mu.Lock()
	jobs := s.steers
	s.steers = nil
	for _, j := range jobs {
		if j.item.Request {
			s.joined = append(s.joined, j)
		}
	}
	s.mu.Unlock()
	for _, j := range jobs {
		s.listen(PromptData{MessageID: j.item.ID, Parts: j.item.Parts})
	}
	if len(jobs) > 0 {
		t.rejected.Store(false) // the person has said how to go on
		s.changed()
	}
	return len(jobs) > 0
}

// listen adds words to the conversation in its middle.
func (s *Session) listen(d PromptData) {
	info := s.Info()
	d.Agent, d.Model = info.Agent, info.Model
	s.log.emit(EventSteer, d)
	s.hist.messages = append(s.hist.messages, provider.Message{ID: d.MessageID, Role: provider.RoleUser, Parts: d.Parts})
}

// spoken reports whether words wait for the turn.
func (t *turn) spoken() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return len(t.s.steers) > 0
}

// over reports whether a turn that could end here does: no words wait for it. From then on it takes none.
func (t *turn) over() bool {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steers) > 0 {
		return false
	}
	s.steerable = nil
	return true
}

// endSteering makes of the words that a turn has not read the next prompts, and holds them when it did not end well.
func (s *Session) endSteering(end TurnData) {
	s.mu.Lock()
	left := s.steers
	s.steers, s.steerable = nil, nil
	for _, j := range left {
		j.item.Steer = false
	}
	s.queue = append(left, s.queue...)
	was := s.held
	if end.Stop == TurnCancelled || end.Stop == TurnError {
		s.hold()
	}
	if len(left) > 0 && s.held == was {
		s.storeQueue()
	}
	joined := s.joined
	s.joined = nil
	s.mu.Unlock()
	for _, j := range joined {
		j.end = end
		j.cancel()
		close(j.done)
	}
}

// Tell adds words to the conversation that the next turn reads; no turn begins. They are not shown when synthetic.
func (s *Session) Tell(ctx context.Context, parts []provider.Part) error {
	var failed error
	err := s.do(ctx, func(context.Context) { s.listen(PromptData{MessageID: newID("msg_"), Parts: parts}) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return err
}
