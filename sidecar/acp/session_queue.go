package acp

import (
	"context"
	"errors"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// queue shows a session's waiting prompts, or changes them first.
func (m *turns) queue(_ context.Context, es *editorSession, p *protocol.SessionQueueRequest) (*protocol.SessionQueueResponse, error) {
	asked := 0
	for _, yes := range []bool{p.Add != nil, len(p.Remove) > 0, p.Edit != nil, p.Move != nil, p.Steer != "", p.Resume} {
		if yes {
			asked++
		}
	}
	if asked > 1 {
		return nil, rpc.InvalidParams("want at most one of add, remove, edit, move, steer, resume; got %d", asked)
	}
	out := &protocol.SessionQueueResponse{}
	var err error
	switch {
	case p.Add != nil:
		err = es.enqueue(p.Add, out)
	case len(p.Remove) > 0:
		err = es.Unqueue(p.Remove...)
	case p.Edit != nil:
		parts, bad := promptParts(p.Edit.Prompt)
		if bad != nil {
			return nil, bad
		}
		err = es.EditQueued(p.Edit.ID, es.prepare(parts))
	case p.Move != nil:
		err = es.MoveQueued(p.Move.ID, p.Move.Before)
	case p.Steer != "":
		out.Injected, err = es.SteerQueued(p.Steer)
	case p.Resume:
		es.Resume()
	}
	if errors.Is(err, agent.ErrNotQueued) {
		return nil, protocol.NotFound("%s", err.Error())
	}
	if err != nil {
		return nil, err
	}
	out.Items, out.Held = es.queued()
	return out, nil
}

func (es *editorSession) enqueue(prompt []protocol.ContentBlock, out *protocol.SessionQueueResponse) error {
	parts, err := promptParts(prompt)
	if err != nil {
		return err
	}
	item, err := es.Enqueue(agent.Prompt{Parts: es.prepare(parts)})
	out.Added = item.ID
	return err
}

// queued is the queue as an editor shows it.
func (es *editorSession) queued() ([]protocol.QueueItem, bool) {
	items, held := es.Queue()
	out := make([]protocol.QueueItem, len(items))
	for i, x := range items {
		out[i] = protocol.QueueItem{ID: x.ID, Prompt: Blocks(x.Parts), Time: x.Time.Format(time.RFC3339), Steer: x.Steer, Request: x.Request}
	}
	return out, held
}

func (m *turns) status(_ context.Context, es *editorSession, _ *protocol.SessionStatusRequest) (*protocol.SessionStatusResponse, error) {
	return es.status(), nil
}

// status is what the session is doing.
func (es *editorSession) status() *protocol.SessionStatusResponse {
	st := es.State()
	items, held := es.Queue()
	readers, queued := int64(es.registry.Readers(es.ID())), int64(len(items))
	out := &protocol.SessionStatusResponse{State: "idle", Turn: st.Turn, Waiting: []string{}, Readers: &readers, Queued: &queued, Held: held,
		StopReason: string(st.Last.Stop), Error: st.Last.Error}
	if st.Busy {
		out.State = "running"
	}
	if len(st.Waiting) > 0 {
		out.State, out.Waiting = "waiting", st.Waiting
	}
	return out
}

// poke is told that the session's state may have changed. It never waits; what changed meanwhile is told at once.
func (es *editorSession) poke() {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.moved = true
	if !es.telling {
		es.telling = true
		go es.tell()
	}
}

// tell sends what the editor follows and has not been told yet; it ends when nothing is new.
func (es *editorSession) tell() {
	for {
		es.mu.Lock()
		if !es.moved || es.ctx.Err() != nil {
			es.telling = false
			es.mu.Unlock()
			return
		}
		es.moved = false
		es.mu.Unlock()
		c := es.editor.Client()
		if c.Does(protocol.MethodPillionSessionQueueUpdated) {
			u := protocol.QueueUpdated{SessionID: es.ID()}
			u.Items, u.Held = es.queued()
			if text := string(rawJSON(u)); text != es.told.queue && (len(u.Items) > 0 || es.told.queue != "") {
				es.told.queue = text
				es.notify(protocol.MethodPillionSessionQueueUpdated, u)
			}
		}
		if c.Does(protocol.MethodPillionSessionStatusUpdated) {
			u := protocol.SessionStatusUpdated{SessionID: es.ID(), Status: *es.status()}
			if text := string(rawJSON(u)); text != es.told.status {
				es.told.status = text
				es.notify(protocol.MethodPillionSessionStatusUpdated, u)
			}
		}
	}
}
