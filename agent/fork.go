package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
)

// Fork makes a new session with a copy of another session's conversation: all of it, or the part before the prompt whose message id is
// before. A turn that still runs is not copied, nor are events that a restore removed from the conversation. Files are not changed. The
// returned parts are those of the prompt named by before, so that an editor can offer them for editing. With an empty title, the new title
// is the old one and "(fork)". The errors ErrNoSession and ErrNoMessage may be wrapped.
func (r *Runtime) Fork(ctx context.Context, id, before, title string) (SessionInfo, []provider.Part, error) {
	// Events that wait for the pump would be missing from the store.
	if s, ok := r.Session(id); ok {
		s.flush()
	}
	head, err := r.st.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return SessionInfo{}, nil, fmt.Errorf("%q: %w", id, ErrNoSession)
	}
	if err != nil {
		return SessionInfo{}, nil, err
	}
	// all yields the stored events. They are read twice, because only the last restore tells which events are hidden.
	all := func(yield func(Event) error) error {
		return r.st.Events(ctx, id, 0, func(e store.Event) error { return yield(fromStore(e)) })
	}
	hidden, err := hiddenOf(all)
	if err != nil {
		return SessionInfo{}, nil, err
	}
	// kept are the events to copy; left are the parts of the prompt before which the copy ends.
	var kept []store.Event
	var left []provider.Part
	var did sessionDiff
	cut, turn, whole := -1, -1, 0 // the event to stop before (-1: none); where an open turn begins (-1: none is open); how many events are whole turns
	err = all(func(e Event) error {
		switch e.Type {
		case EventSession, EventRestore, EventAsk, EventQueue: // not copied: they belong to the old session, and the new one gets its own head
			return nil
		}
		if hidden.Has(e) || cut >= 0 {
			return nil
		}
		switch e.Type {
		case EventPrompt:
			d := decode[PromptData](e)
			if turn = len(kept); d.MessageID == before {
				cut, left = turn, d.Parts
				return nil
			}
		case EventTurn:
			turn = -1
			did.add(decode[TurnData](e).Diff)
		}
		kept = append(kept, store.Event{Time: e.Time, Type: string(e.Type), Data: e.Data})
		if turn < 0 {
			whole = len(kept)
		}
		return nil
	})
	if err != nil {
		return SessionInfo{}, nil, err
	}
	if before != "" && cut < 0 {
		return SessionInfo{}, nil, fmt.Errorf("%q: %w", before, ErrNoMessage)
	}
	kept = kept[:whole] // recovery would take a turn without its end for one that a crash cut off
	at := now()
	info := infoOf(head)
	// A live session may have a newer head than the stored one.
	if s, ok := r.Session(id); ok {
		info = s.Info()
	}
	info.ID, info.Forked, info.Parent, info.Created, info.Updated = newID("ses_"), id, "", at, at
	info.Diff = did.stat()
	if title != "" {
		info.Title = title
	} else if info.Title != "" {
		info.Title += " (fork)"
	}
	r.st.PutSession(store.Session{ID: info.ID, Cwd: info.Cwd, Title: info.Title, Created: at, Updated: at, Info: encode(info)})
	r.st.Append(info.ID, store.Event{Seq: 1, Time: at, Type: string(EventSession), Data: encode(info)})
	// Renumber the copy: left-out events must not be gaps, and number 1 is the head.
	for i := range kept {
		kept[i].Seq = int64(i) + 2
	}
	r.st.Append(info.ID, kept...)
	return info, left, r.st.Sync(ctx)
}
