package agent

import (
	"context"
	"errors"
)

// ErrBusy means that a turn runs whose conversation the request would change.
var ErrBusy = errors.New("a turn is running; cancel it (or wait for its end), then try again")

// ErrNoMessage means that the session has no prompt with this id.
var ErrNoMessage = errors.New("this session has no prompt with that id")

// RestoreState is the stage of a restore.
type RestoreState string

// A restore begins, which is a checkpoint of its own, and is then done or failed.
const (
	RestoreBegun  RestoreState = "begun"
	RestoreDone   RestoreState = "done"
	RestoreFailed RestoreState = "failed"
)

// RestoreData takes files, the conversation or both back to a checkpoint. Nothing is deleted: the events that leave the conversation stay
// stored, and count again when the restore itself is undone.
type RestoreData struct {
	ID           string       `json:"id"`
	State        RestoreState `json:"state"`
	Checkpoint   string       `json:"checkpoint"` // a prompt's message id, or the id of an earlier restore
	Title        string       `json:"title,omitempty"`
	Conversation bool         `json:"conversation,omitempty"` // the conversation goes back too
	MessageID    string       `json:"messageID,omitempty"`    // the prompt before which the conversation then ends; empty: it ends with its last event
	Was          string       `json:"was,omitempty"`          // MessageID before this restore
	ChangeSet    string       `json:"changeSet,omitempty"`    // id of the change set of the files; empty: no file changes
	Undoes       string       `json:"undoes,omitempty"`       // id of the restore that this one undoes
}

// ReviewData says which hunks of a change set the person has kept or undone after it was written.
type ReviewData struct {
	ChangeSet string   `json:"changeSet"`
	Kept      []string `json:"kept,omitempty"`
	Undone    []string `json:"undone,omitempty"`
	Again     []string `json:"again,omitempty"` // no longer undone, because the undo was undone
	By        string   `json:"by,omitempty"`    // id of the change set that undid the hunks, or wrote them again
}

// Restore runs a restore: it emits "begun", write changes the files, then it emits "done" with what write has set in d, or "failed". Each
// event is on disk before the next step, so that the next start sees a crash in between. A restore of the conversation is refused while a
// turn runs; one of files only runs beside it.
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

// Hidden is which events are out of the conversation, because a restore took it back to before them.
type Hidden struct {
	ranges    [][2]int64 // half-open, by sequence number
	MessageID string     // the prompt before which the conversation ends at present; empty: it is complete
}

// Has reports whether an event is out of the conversation. Events that are not part of one (changes, reviews, the queue) never are.
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

// forever is greater than every number of an event: the end of a range that is still open.
const forever = int64(1) << 62

// hiddenOf computes from a session's events, in order, which of them are out of the conversation. Until the next prompt a restore can be
// undone, so its range has no end; that prompt closes the range for good.
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
