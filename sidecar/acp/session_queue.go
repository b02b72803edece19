package acp

import (
	"context"
	"errors"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// queue answers _pillion/session/queue: it changes the queue, if asked to, and returns it.
func (m *turns) queue(_ context.Context, es *editorSession, p *protocol.SessionQueueRequest) (*protocol.SessionQueueResponse, error) {
	// Two changes in one request would have no defined order.
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
		err = es.EditQueued(p.Edit.ID, es.input.prepare(es.Info().Cwd, parts))
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

// enqueue adds a prompt. Its id is in the answer, so that the editor can move or remove it. No request waits for its
// turn: the editor follows it in the queue.
func (es *editorSession) enqueue(prompt []protocol.ContentBlock, out *protocol.SessionQueueResponse) error {
	parts, err := promptParts(prompt)
	if err != nil {
		return err
	}
	item, err := es.Enqueue(agent.Prompt{Parts: es.input.prepare(es.Info().Cwd, parts)})
	out.Added = item.ID
	return err
}

// queued is the queue for the wire; held means that it waits for the person after an error or a cancel.
func (es *editorSession) queued() ([]protocol.QueueItem, bool) {
	items, held := es.Queue()
	out := make([]protocol.QueueItem, len(items))
	for i, x := range items {
		out[i] = protocol.QueueItem{ID: x.ID, Prompt: Blocks(x.Parts), Time: x.Time.Format(time.RFC3339), Steer: x.Steer, Request: x.Request}
	}
	return out, held
}

// status answers _pillion/session/status.
func (m *turns) status(_ context.Context, es *editorSession, _ *protocol.SessionStatusRequest) (*protocol.SessionStatusResponse, error) {
	return es.status(), nil
}

// status is what the session is doing. Readers counts this editor too, Queued the prompts behind the running one.
func (es *editorSession) status() *protocol.SessionStatusResponse {
	st := es.State()
	items, held := es.Queue()
	readers, queued := int64(es.registry.Readers(es.ID())), int64(len(items))
	out := &protocol.SessionStatusResponse{State: "idle", Turn: st.Turn, Waiting: []string{}, Readers: &readers, Queued: &queued, Held: held,
		StopReason: string(st.Last.Stop), Error: st.Last.Error}
	if st.Busy {
		out.State = "running"
	}
	// A session that waits for the person is busy too; waiting is what the person must see.
	if len(st.Waiting) > 0 {
		out.State, out.Waiting = "waiting", st.Waiting
	}
	return out
}

// stateChanged notes that queue or status may have changed. It never waits: it is called while the session holds
// locks.
func (es *editorSession) stateChanged() {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.stateDirty = true
	if !es.sending {
		es.sending = true
		go es.sendState()
	}
}

// sendState sends queue and status, if they differ from what was sent last, until nothing is new. Changes in quick
// succession are sent once. One goroutine of it runs for a session, so an older state never follows a newer one.
func (es *editorSession) sendState() {
	for {
		es.mu.Lock()
		if !es.stateDirty || es.ctx.Err() != nil {
			es.sending = false
			es.mu.Unlock()
			return
		}
		es.stateDirty = false
		es.mu.Unlock()
		c := es.editor.Client()
		if c.Does(protocol.MethodPillionSessionQueueUpdated) {
			u := protocol.QueueUpdated{SessionID: es.ID()}
			u.Items, u.Held = es.queued()
			// An empty queue is not worth a message until another one was sent.
			if text := string(rawJSON(u)); text != es.sent.queue && (len(u.Items) > 0 || es.sent.queue != "") {
				es.sent.queue = text
				es.notify(protocol.MethodPillionSessionQueueUpdated, u)
			}
		}
		if c.Does(protocol.MethodPillionSessionStatusUpdated) {
			u := protocol.SessionStatusUpdated{SessionID: es.ID(), Status: *es.status()}
			if text := string(rawJSON(u)); text != es.sent.status {
				es.sent.status = text
				es.notify(protocol.MethodPillionSessionStatusUpdated, u)
			}
		}
	}
}
