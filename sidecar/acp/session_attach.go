package acp

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// attach answers session/new with a live session: so every editor that can start a session can join one. The past
// follows the answer as updates.
func (o *openings) attach(ctx context.Context, r *rpc.Request, id string) (any, error) {
	live, ok := o.rt.Session(id)
	if !ok {
		return nil, protocol.NotFound("session %s has ended meanwhile", id)
	}
	w := o.opening(id)
	es, had, err := w.open(ctx, live.Info().Cwd, nil)
	// Where the session is new to this connection, done is called after the replay instead: a close must wait for it.
	if err != nil || had {
		w.done()
	}
	if err != nil {
		return nil, err
	}
	info := es.Info()
	answer := &protocol.NewSessionResponse{SessionID: id, Modes: o.choices.modes(info), ConfigOptions: o.choices.configOptions(info)}
	if had {
		return answer, nil
	}
	// The past follows the answer: before it the editor does not know the session, and would drop its updates.
	o.wire.afterAnswer(r, func() {
		go func() {
			defer w.done()
			if err := w.finish(es.replay(o.ctx, es.view)); err != nil {
				o.log.Warn("replay", "session", id, "err", err)
				return
			}
			o.afterOpened(es, "", true)
		}()
	})
	return answer, nil
}

// replay shows in v what it has not shown of the past. If v is the session's own view it shows later events as well.
func (es *editorSession) replay(ctx context.Context, v *view) error {
	hidden, err := es.Hidden(ctx)
	if err == nil {
		err = es.Events(ctx, v.seq, func(e agent.Event) error {
			v.showPast(e, hidden.Has(e))
			return ctx.Err()
		})
	}
	if err == nil && v == es.view {
		es.subscribe(v.seq, false)
	}
	return err
}

// reader shows the session's past while it is read from the store, as far as the editor keeps up: replay shows the rest.
// check is called before the first update.
func (es *editorSession) reader(check func(*agent.Session) error) *agent.Reader {
	behind := false
	return &agent.Reader{
		Begin: func(s *agent.Session) error {
			es.Session = s
			return check(s)
		},
		Event: func(e agent.Event, hidden bool) {
			// Another editor that opens the session waits for the reading, and must not wait for this one.
			if behind = behind || !es.wire.hasRoom(len(e.Data)); !behind {
				es.view.showPast(e, hidden)
			}
		},
	}
}
