package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/change"
)

// ErrBusy: a turn runs, and what was asked for changes the conversation under it.
var ErrBusy = errors.New("a turn is running; cancel it (or wait for its end), then try again")

// ErrNoMessage: no prompt of that id in the session.
var ErrNoMessage = errors.New("no prompt of that id in this session")

// RestoreState is where a restore stands.
type RestoreState string

// A restore begins, which is a checkpoint of its own, and is done or failed.
const (
	RestoreBegun  RestoreState = "begun"
	RestoreDone   RestoreState = "done"
	RestoreFailed RestoreState = "failed"
)

// RestoreData takes files, the conversation or both back to a checkpoint. Nothing is deleted: what a conversation
// was taken back over stays in the events, and counts again when the restore is taken back.
type RestoreData struct {
	ID           string       `json:"id"`
	State        RestoreState `json:"state"`
	Checkpoint   string       `json:"checkpoint"` // a prompt's message id, or the id of an earlier restore
	Title        string       `json:"title,omitempty"`
	Conversation bool         `json:"conversation,omitempty"` // it takes the conversation along
	MessageID    string       `json:"messageID,omitempty"`    // the prompt the conversation then stands before; empty: at its end
	Was          string       `json:"was,omitempty"`          // what MessageID was before
	ChangeSet    string       `json:"changeSet,omitempty"`    // what it does to files; empty: nothing
	Undoes       string       `json:"undoes,omitempty"`       // the restore that this one takes back
}

// ReviewData are marks of the person on a change set's hunks.
type ReviewData struct {
	ChangeSet string   `json:"changeSet"`
	Kept      []string `json:"kept,omitempty"`
	Undone    []string `json:"undone,omitempty"`
	Again     []string `json:"again,omitempty"` // no longer undone: the undo was taken back
	By        string   `json:"by,omitempty"`    // the change set that took them back, or brought them again
}

// busy says that a job runs or waits.
func (s *Session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now != nil || slices.ContainsFunc(s.queue, s.runnable)
}

// Beside runs f while this process is the session's only writer: beside the turn that runs, else as a job of its own.
func (s *Session) Beside(ctx context.Context, f func(ctx context.Context) error) error {
	s.mu.Lock()
	running := s.now != nil
	s.mu.Unlock()
	if running {
		return f(ctx)
	}
	var err error
	if e := s.do(ctx, func(ctx context.Context) { err = f(ctx) }, func(e error) { err = e }); e != nil {
		return e
	}
	return err
}

// RecordChange tells of a change set that no tool call made: an undo, a restore. Call it in Beside or Restore. With
// change.Writing it returns when the store has it, so that the death of the process in the middle leaves a trace.
func (s *Session) RecordChange(callID string, state change.State, set *change.Set) {
	s.showChange(callID, state, set)
	s.log.flush()
}

// RecordReview keeps the person's marks.
func (s *Session) RecordReview(d ReviewData) {
	s.log.emit(EventReview, d)
	s.log.flush()
}

// showChange makes an event of a change set as it is now, in the session that the person talks to.
func (s *Session) showChange(callID string, state change.State, set *change.Set) {
	d := ChangeData{CallID: callID, State: state, Full: set}
	if top, task := s.top(); top != s {
		d.Session, d.Task = s.ID(), task
		s = top
	}
	s.diffs.see(state, set)
	if s.rt.st.KeepsEvents() {
		d.Set = s.rt.o.Changes.Pack(state, set)
	}
	s.log.emitNow(EventChange, d)
	if state == change.Writing {
		s.log.flush()
		s.syncBriefly()
	}
}

// Restore runs a restore: it is told as begun, write changes the files, and it is told as done with what write made
// of it. A restore of the conversation is refused while a turn runs; one of files goes on beside it.
func (s *Session) Restore(ctx context.Context, d RestoreData, write func(ctx context.Context, d *RestoreData) error) error {
	run := func(ctx context.Context) error {
		d.State = RestoreBegun
		s.log.emit(EventRestore, d)
		s.log.flush()
		s.syncBriefly()
		err := write(ctx, &d)
		d.State = RestoreDone
		if err != nil {
			d.State = RestoreFailed
		}
		s.log.emit(EventRestore, d)
		s.log.flush()
		s.syncBriefly()
		if err == nil && d.Conversation {
			return s.rebuild(context.WithoutCancel(ctx))
		}
		return err
	}
	if !d.Conversation {
		return s.Beside(ctx, run)
	}
	if s.busy() {
		return ErrBusy
	}
	var err error
	if e := s.do(ctx, func(ctx context.Context) { err = run(ctx) }, func(e error) { err = e }); e != nil {
		return e
	}
	return err
}

// Hidden says which events a conversation was taken back over.
type Hidden struct {
	ranges    [][2]int64 // half-open, by sequence number
	MessageID string     // the prompt the conversation stands before now; empty: at its end
}

// Has reports whether an event is out of the conversation. What is no part of one never is.
func (h Hidden) Has(e Event) bool {
	switch e.Type {
	case EventSession, EventChange, EventReview, EventRestore, EventAsk, EventQueue:
		return false
	}
	for _, r := range h.ranges {
		if e.Seq >= r[0] && e.Seq < r[1] {
			return true
		}
	}
	return false
}

// Hidden reads which events are out of the conversation now.
func (s *Session) Hidden(ctx context.Context) (Hidden, error) {
	return hiddenOf(func(yield func(Event) error) error {
		return s.rt.st.EventsOf(ctx, s.ID(), 0, []string{string(EventPrompt), string(EventRestore)}, func(e store.Event) error { return yield(fromStore(e)) })
	})
}

const forever = int64(1) << 62

// hiddenOf works out the ranges from a session's events in order. A prompt after a conversation was taken back makes
// that final.
func hiddenOf(events func(yield func(Event) error) error) (Hidden, error) {
	var h Hidden
	at := map[string]int64{} // prompts
	from := int64(0)
	err := events(func(e Event) error {
		switch e.Type {
		case EventPrompt:
			if from > 0 {
				h.ranges = append(h.ranges, [2]int64{from, e.Seq})
				from, h.MessageID = 0, ""
			}
			at[decode[PromptData](e).MessageID] = e.Seq
		case EventRestore:
			if d := decode[RestoreData](e); d.State == RestoreDone && d.Conversation {
				from, h.MessageID = at[d.MessageID], d.MessageID
			}
		}
		return nil
	})
	if from > 0 {
		h.ranges = append(h.ranges, [2]int64{from, forever})
	}
	return h, err
}

// Past yields the stored events after from without waiting for those that are on their way, so a sink may call it.
func (s *Session) Past(ctx context.Context, from int64, yield func(Event) error) error {
	return s.rt.st.Events(ctx, s.ID(), from, func(e store.Event) error { return yield(fromStore(e)) })
}

// rebuild makes the history anew, without what the conversation was taken back over. The runner calls it, or load.
func (s *Session) rebuild(ctx context.Context) error {
	hidden, err := s.Hidden(ctx)
	if err != nil {
		return err
	}
	old := s.hist
	h := newHistory()
	err = s.rt.st.Events(ctx, s.ID(), 0, func(e store.Event) error {
		event := fromStore(e)
		if !hidden.Has(event) {
			h.apply(event)
		} else if event.Type == EventStep { // ids stay taken
			for _, p := range decode[StepData](event).Message.Parts {
				if p.Type == provider.PartToolCall {
					h.callIDs[p.CallID] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the conversation could not be read back: %w", err)
	}
	h.info, h.stale = old.info, false
	s.hist = h
	s.adopt()
	return nil
}

// settleChanges ends what the death of a process left half-told: change sets that were being written, and the
// restore they belong to.
func (s *Session) settleChanges() {
	h := s.hist
	for id, d := range h.writing {
		delete(h.writing, id)
		ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
		d.State = s.rt.o.Changes.Recover(ctx, s.Info(), d.Set)
		cancel()
		s.log.emitNow(EventChange, d)
		if h.restoring != nil && h.restoring.ChangeSet == id {
			end := *h.restoring
			if end.State = RestoreDone; d.State != change.Applied {
				end.State = RestoreFailed
			}
			s.log.emit(EventRestore, end)
			h.apply(Event{Type: EventRestore, Value: end})
		}
	}
	if h.restoring != nil { // it died before it wrote anything
		end := *h.restoring
		end.State = RestoreFailed
		s.log.emit(EventRestore, end)
		h.restoring = nil
	}
}

const settleLimit = 10 * time.Second

// Top is the session that a person talks to: the one whose turn a sub-agent works for, or this one.
func (s *Session) Top() *Session {
	top, _ := s.top()
	return top
}

// LastSeq is the number of the newest event that was told.
func (s *Session) LastSeq() int64 {
	s.log.flush()
	s.log.deliver.Lock()
	defer s.log.deliver.Unlock()
	return s.log.seq
}
