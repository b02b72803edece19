package acp

import (
	"context"
	"math"

	"github.com/pillion-dev/pillion/agent"
)

// ReadersChanged implements editors.Person: the number of editors is part of the session's status. The registry calls
// it in a goroutine of its own.
func (who *person) ReadersChanged(session string) {
	if es := who.sessions.lookup(session); es != nil {
		es.stateChanged()
	}
}

// AnsweredElsewhere implements editors.Person. The person must know why the question has gone, and that their own
// answer was not used.
func (who *person) AnsweredElsewhere(session, decision string) {
	if es := who.sessions.lookup(session); es != nil {
		es.view.notice("info", "Another window answered first: "+decision+". Your decision in this window was not used.")
	}
}

// waitUntilChildShown waits until the editor has been sent what a sub-agent did so far, and shows the card of the
// call that asks. It returns the sub-agent's view; nil for the session itself.
func (who *person) waitUntilChildShown(ctx context.Context, session, child, call string) (*view, error) {
	es := who.sessions.lookup(session)
	if es == nil || child == session || child == "" {
		return nil, nil
	}
	kid := es.view.childView(child)
	live, ok := who.rt.Session(child)
	// A sub-agent whose task has ended meanwhile has no card to show.
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
