package agent

import (
	"context"
	"errors"
)

// ErrBusy means that a turn is running and the request would change its conversation.
var ErrBusy = errors.New("a turn is running; cancel it (or wait for its end), then try again")

// ErrNoMessage means that the session has no prompt with this id.
var ErrNoMessage = errors.New("this session has no prompt with that id")

// RestoreState is the stage of a restore.
type RestoreState string

// A restore begins, and is then done or failed. Its beginning is itself a checkpoint to which a later restore can return.
const (
	RestoreBegun  RestoreState = "begun"
	RestoreDone   RestoreState = "done"
	RestoreFailed RestoreState = "failed"
)

// RestoreData describes a restore of files, of the conversation or of both to a checkpoint. Nothing is deleted: the events that leave the
// conversation stay stored, and count again when the restore is undone.
type RestoreData struct {
	ID           string       `json:"id"`
	State        RestoreState `json:"state"`
	Checkpoint   string       `json:"checkpoint"` // a prompt's message id, or the id of an earlier restore
	Title        string       `json:"title,omitempty"`
	Conversation bool         `json:"conversation,omitempty"` // the conversation is restored too
	MessageID    string       `json:"messageID,omitempty"`    // the prompt before which the restored conversation ends; empty: it is complete
	Was          string       `json:"was,omitempty"`          // MessageID before this restore
	ChangeSet    string       `json:"changeSet,omitempty"`    // id of the change set that restores the files; empty: no file changes
	Undoes       string       `json:"undoes,omitempty"`       // id of the restore that this one undoes
}

// ReviewData lists the hunks of a change set that the person has kept or undone after they were written; the lists hold hunk ids.
type ReviewData struct {
	ChangeSet string   `json:"changeSet"`
	Kept      []string `json:"kept,omitempty"`
	Undone    []string `json:"undone,omitempty"`
	Again     []string `json:"again,omitempty"` // hunks that are no longer undone, because the undo was undone
	By        string   `json:"by,omitempty"`    // id of the change set that undid the hunks, or wrote them again
}

// Restore runs a restore: it emits "begun", calls write, which changes the files, then emits "done" with what write has set in d, or
// "failed". Each event is on disk before the next step, so that the next start detects a crash in between. A restore of the conversation is
// refused with ErrBusy while a turn runs; a restore of files alone may run beside the turn.
func (s *Session) Restore(ctx context.Context, d RestoreData, write func(ctx context.Context, d *RestoreData) error) error {
	run := func(ctx context.Context) error {
		d.State = RestoreBegun
		s.emit(EventRestore, d)
		s.flush()
		s.syncBriefly()
		err := write(ctx, &d)
		d.State = RestoreDone
		if err != nil {
			d.State = RestoreFailed
		}
		s.emit(EventRestore, d)
		s.flush()
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

// Hidden tells which events are not part of the conversation, because a restore went back before them.
type Hidden struct {
	ranges    [][2]int64 // half-open, by sequence number
	MessageID string     // the prompt before which the conversation ends at present; empty: it is complete
}

// Has reports whether an event is hidden. Changes, reviews and the queue are not part of the conversation and never are.
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

// forever is greater than every event number: the end of a range that is still open.
const forever = int64(1) << 62

// hiddenOf computes which of a session's events, given in order, are hidden. A restore can be undone until the next prompt, so its range
// stays open until then; that prompt closes the range for good.
func hiddenOf(events func(yield func(Event) error) error) (Hidden, error) {
	var h Hidden
	at := map[string]int64{} // prompt's message id → its number
	// from is where the open range begins; 0: there is none.
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
