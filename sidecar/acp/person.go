package acp

import (
	"context"
	"math"

	"github.com/pillion-dev/pillion/agent"
)

// ReadersChanged implements Person.
func (who *person) ReadersChanged(session string) {
	if es := who.sessions.lookup(session); es != nil {
		es.poke()
	}
}

// AnsweredElsewhere implements Person.
func (who *person) AnsweredElsewhere(session, decision string) {
	if es := who.sessions.lookup(session); es != nil {
		es.view.notice("info", "Another window of this session decided first: "+decision+". A decision made here at the same moment does not count.")
	}
}

// shownChild waits until the editor has what a sub-agent did so far, and shows the call it asks about.
func (who *person) shownChild(ctx context.Context, session, child, call string) (*view, error) {
	es := who.sessions.lookup(session)
	if es == nil || child == session || child == "" {
		return nil, nil
	}
	kid := es.view.kidOf(child)
	live, ok := who.rt.Session(child)
	if kid == nil || !ok {
		return nil, nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = live.Events(ctx, math.MaxInt64-1, func(agent.Event) error { return nil })
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	kid.reveal(call)
	return kid, nil
}
