package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
)

// Fork makes a new session with a copy of another's conversation: all of it, or the part before the prompt whose message id is
// before. What a restore took out of the conversation is not copied, and neither is a turn that still runs. Files stay as they
// are. The parts are those of the prompt named before, so that an editor can offer to change it. An empty title becomes the
// old one with "(fork)". ErrNoSession, ErrNoMessage.
func (r *Runtime) Fork(ctx context.Context, id, before, title string) (SessionInfo, []provider.Part, error) {
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
	all := func(yield func(Event) error) error {
		return r.st.Events(ctx, id, 0, func(e store.Event) error { return yield(fromStore(e)) })
	}
	hidden, err := hiddenOf(all)
	if err != nil {
		return SessionInfo{}, nil, err
	}
	var kept []store.Event
	var left []provider.Part
	var did sessionDiff
	cut, turn, whole := -1, -1, 0 // the event to stop before; where an open turn begins; how many events are whole turns
	err = all(func(e Event) error {
		switch e.Type {
		case EventSession, EventRestore, EventAsk, EventQueue: // of the old session only; the new one has a head of its own
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
	kept = kept[:whole] // a turn without its end would be repaired as one that a crash cut off
	at := now()
	info := infoOf(head)
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
	for i := range kept {
		kept[i].Seq = int64(i) + 2
	}
	r.st.Append(info.ID, kept...)
	return info, left, r.st.Sync(ctx)
}
