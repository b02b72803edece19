package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// hearingLimit is how many events may wait for extensions. Further events are dropped, because a plugin that hangs must not fill the
// memory.
const hearingLimit = 1000

// hearing passes events to the extensions, in order and in a goroutine of its own, so that no turn waits for a slow plugin.
type hearing struct {
	mu      sync.Mutex
	waiting []func()      // guarded by mu
	idle    chan struct{} // guarded by mu; closed when the queue is empty; nil: no goroutine runs
}

// enqueue queues one call of the extensions, or drops it when hearingLimit is reached.
func (h *hearing) enqueue(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) >= hearingLimit {
		return
	}
	h.waiting = append(h.waiting, f)
	if h.idle == nil {
		h.idle = make(chan struct{})
		go h.run()
	}
}

// run makes the queued calls and ends when none waits. At most one run exists at a time: idle is not nil while it runs.
func (h *hearing) run() {
	for {
		h.mu.Lock()
		if len(h.waiting) == 0 {
			close(h.idle)
			h.idle = nil
			h.mu.Unlock()
			return
		}
		f := h.waiting[0]
		h.waiting = h.waiting[1:]
		h.mu.Unlock()
		f()
	}
}

// waitIdle blocks until the extensions have received every event, at most limit: a plugin that hangs must not keep Pillion from exiting.
func (h *hearing) waitIdle(limit time.Duration) {
	h.mu.Lock()
	idle := h.idle
	h.mu.Unlock()
	if idle == nil {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// heard passes a session's event to the extensions when OpenCode's plugin API has a corresponding event. It is called for every event, in
// order, while the event log's deliver lock is held, so it only queues.
func (r *Runtime) heard(session, cwd string, e Event) {
	switch v := e.Value.(type) {
	case ToolData:
		if v.Status != ToolCompleted && v.Status != ToolError {
			return
		}
	case SessionInfo, PromptData, PlanData, AskData, ChangeData, CompactionData, TurnData:
	default:
		return
	}
	r.hearing.enqueue(func() {
		x := r.extensions(cwd)
		if x.Event == nil {
			return
		}
		openCodeEvents(session, e, func(kind string, properties map[string]any) {
			properties["sessionID"] = session
			x.Event(kind, properties)
		})
	})
}

// openCodeEvents calls tell for each event of OpenCode's plugin API that corresponds to an event of Pillion: none, one or several. Names
// and properties are those of OpenCode's event bus.
func openCodeEvents(session string, e Event, tell func(kind string, properties map[string]any)) {
	status := func(s string) { tell("session.status", map[string]any{"status": map[string]string{"type": s}}) }
	switch v := e.Value.(type) {
	case SessionInfo:
		kind := "session.updated"
		// The head is a session's first event; later ones update it.
		if e.Seq == 1 {
			kind = "session.created"
		}
		tell(kind, map[string]any{"info": map[string]any{"id": v.ID, "title": v.Title, "directory": v.Cwd, "parentID": v.Parent, "time": map[string]int64{"created": v.Created.UnixMilli(), "updated": v.Updated.UnixMilli()}}})
	case PromptData:
		status("busy")
	case PlanData:
		tell("todo.updated", map[string]any{"todos": v.Todos})
	case AskData:
		// A request with a change set causes two events (see AskData.Set); plugins receive only the first.
		if v.Reply == "" && v.Set == nil {
			tell("permission.asked", map[string]any{"id": v.ID, "permission": v.Permission, "patterns": v.Patterns, "callID": v.CallID})
		} else if v.Reply != "" {
			tell("permission.replied", map[string]any{"requestID": v.ID, "permissionID": v.ID, "reply": v.Reply, "response": v.Reply})
		}
	case ChangeData:
		if set := v.Whole(); set != nil && v.State == change.Applied {
			_, files := set.Lines()
			for _, path := range slices.Sorted(maps.Keys(files)) {
				tell("file.edited", map[string]any{"file": path})
			}
		}
	case ToolData:
		tell("message.part.updated", map[string]any{"part": ToolPart(session, v)})
	case CompactionData:
		if v.State == CompactionDone {
			tell("session.compacted", map[string]any{})
		}
	case TurnData:
		if v.Error != "" {
			tell("session.error", map[string]any{"error": map[string]any{"name": "UnknownError", "data": map[string]any{"message": v.Error}}})
		}
		status("idle")
		tell("session.idle", map[string]any{})
	}
}

// heardOutput is how many bytes of a tool's output plugins receive.
const heardOutput = 16 << 10

// ToolPart returns a call in the shape of OpenCode's ToolPart. Times are milliseconds since 1970. The output is cut to heardOutput, because
// every event crosses a process boundary.
func ToolPart(session string, d ToolData) map[string]any {
	state := map[string]any{"status": d.Status, "input": json.RawMessage(`{}`), "title": d.Title, "time": map[string]int64{"start": d.Started.UnixMilli(), "end": d.Ended.UnixMilli()}}
	if json.Valid(d.Input) {
		state["input"] = d.Input
	}
	if d.Status == ToolError {
		state["error"] = d.Error
	} else {
		state["output"] = tools.Cap(d.Output, tools.CapOptions{MaxBytes: heardOutput}).Text
	}
	return map[string]any{"id": d.CallID, "sessionID": session, "messageID": d.MessageID, "callID": d.CallID, "type": "tool", "tool": d.Tool, "state": state}
}
