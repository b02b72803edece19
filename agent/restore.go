package agent

import (
	"context"
	"errors"
)

// ErrBusy means that a turn runs, and that the request would change the conversation under
// it.
var ErrBusy = errors.New("a turn is running; cancel it (or wait for its end), then try again")

// ErrNoMessage means that the session has no prompt with this id.
var ErrNoMessage = errors.New("this session has no prompt with that id")

// RestoreState is the stage of a restore.
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

// Restore runs a restore: it emits "begun", write changes the files, and it emits "done"
// with what write set in d, or "failed". Both are on disk before the next step, so a crash
// in between is seen at the next start. A restore of the conversation is refused while a
// turn runs; one of files runs beside it.
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

// Hidden says which events are out of the conversation, because it was taken back to before
// them.
type Hidden struct {
	ranges    [][2]int64 // half-open, by sequence number
	MessageID string     // the prompt the conversation stands before now; empty: at its end
}

// Has reports whether an event is out of the conversation. Events that are not part of one
// (changes, reviews, the queue) never are.
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

const forever = int64(1) << 62

// hiddenOf works out from a session's events, in order, which of them are out of the conversation. Until the next prompt a restore
// can be taken back, so its range is open at the end; a prompt closes the range for good.
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
