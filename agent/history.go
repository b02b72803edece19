package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// history is what the model is sent, rebuilt from a session's events, and which turn, calls and writes are still open. It has no lock: only
// the session's runner uses it, and before the session is live the code that loads it.
type history struct {
	messages []provider.Message // append-only; the values never change
	accepted int                // how many messages a provider has accepted, so that a refusal must be about later ones; 0 after a reload
	callIDs  map[string]bool    // all call ids of this session; each may be used only once
	info     SessionInfo        // from the last EventSession
	todos    []tools.Todo
	used     int // tokens of context after the last step, counted by the provider
	usedAt   int // how many messages used covers
	futile   int // tokens at the last compaction that failed or gained nothing; 0: none
	prompts  int
	did      sessionDiff // the changes of its turns

	writing   map[string]ChangeData // change sets whose write has not ended, by id
	restoring *RestoreData          // a restore that has not ended
	stale     bool                  // a restore moved the conversation: rebuild it
	queue     []QueueItem           // prompts that wait

	cutOff string              // the words for the person when the last turn was cut off; see TurnData.CutOff
	turn   *TurnData           // totals of the open turn; nil between turns
	msg    *MessageData        // the message that no step has closed yet
	text   strings.Builder     // its text so far
	calls  []string            // its calls in order
	last   map[string]rawEvent // newest state of each open call, calls by hand included
}

// rawEvent is a tool event that is decoded only if a crash has left its call open. Outputs are long and nearly all calls have ended, so
// decoding every event would slow down loading.
type rawEvent struct {
	data   []byte
	value  any
	before *rawEvent // the event that has the input, where this one left it out
}

// tool decodes the event. What cannot be read stays zero.
func (e rawEvent) tool() (t ToolData) {
	if v, ok := e.value.(ToolData); ok {
		t = v
	} else {
		_ = json.Unmarshal(e.data, &t)
	}
	if e.before != nil {
		t = t.After(e.before.tool())
	}
	return t
}

// after returns the event of a call with that of its state before, where it needs it.
func (e rawEvent) after(was rawEvent, inputBefore bool) rawEvent {
	if inputBefore {
		if e.before = was.before; e.before == nil {
			e.before = &was
		}
	}
	return e
}

// newHistory returns the history of a session without events.
func newHistory() *history {
	return &history{callIDs: map[string]bool{}, last: map[string]rawEvent{}, writing: map[string]ChangeData{}}
}

// open reports whether a turn, a call by hand, a write or a restore has no end. Then either another process is running it, or that process
// crashed; the session's lock tells which.
func (h *history) open() bool {
	return h.turn != nil || len(h.last) > 0 || len(h.writing) > 0 || h.restoring != nil
}

// apply adds the next event to the history. It ignores types that do not concern the model, so that this version can read sessions of later
// versions.
func (h *history) apply(e Event) {
	switch e.Type {
	case EventSession:
		h.info = decode[SessionInfo](e)
	case EventPrompt:
		p := decode[PromptData](e)
		h.messages = append(h.messages, provider.Message{ID: p.MessageID, Role: provider.RoleUser, Parts: p.Parts})
		h.prompts++
		// The turn is open until its EventTurn. A turn without one was cut off by a crash.
		h.turn, h.cutOff = &TurnData{}, ""
		h.clear()
		h.unqueue(p.MessageID)
	case EventSteer:
		p := decode[PromptData](e)
		h.messages = append(h.messages, provider.Message{ID: p.MessageID, Role: provider.RoleUser, Parts: p.Parts})
		h.unqueue(p.MessageID)
	case EventQueue:
		h.requeue(decode[QueueData](e))
	case EventMessage:
		m := decode[MessageData](e)
		h.clear()
		h.msg = &m
	case EventText:
		// Text of a message that a step has closed is already in that step.
		if t := decode[TextData](e); h.msg != nil && t.MessageID == h.msg.MessageID {
			h.text.WriteString(t.Text)
		}
	case EventTool:
		h.tool(e)
	case EventStep:
		h.step(decode[StepData](e))
	case EventPlan:
		h.todos = decode[PlanData](e).Todos
	case EventPrune:
		ids := map[string]bool{}
		d := decode[PruneData](e)
		for _, id := range d.CallIDs {
			ids[id] = true
		}
		h.prune(ids, d.Tokens)
	case EventRefusal:
		h.leaveOut(decode[RefusalData](e))
	case EventCompaction:
		if d := decode[CompactionData](e); d.State == CompactionDone {
			h.compact(d)
		}
	case EventChange:
		h.change(e)
	case EventRestore:
		d := decode[RestoreData](e)
		// The newest restore event tells whether a restore is running.
		if h.restoring = nil; d.State == RestoreBegun {
			h.restoring = &d
		}
		h.stale = h.stale || d.State == RestoreDone && d.Conversation
	case EventTurn:
		t := decode[TurnData](e)
		// Later estimates start from the provider's count for the messages so far.
		if t.ContextUsed > 0 {
			h.used, h.usedAt = t.ContextUsed, len(h.messages)
		}
		h.did.add(t.Diff)
		if h.turn = nil; t.CutOff() {
			h.cutOff = t.Error
		}
		h.clear()
	}
}

// unqueue removes a prompt that has begun from the queue.
func (h *history) unqueue(id string) {
	h.queue = slices.DeleteFunc(h.queue, func(i QueueItem) bool { return i.ID == id })
}

// requeue puts the queue into the stored order. An id without an item is skipped: the event with the item may have been lost on a full
// disk.
func (h *history) requeue(d QueueData) {
	known := map[string]QueueItem{}
	// An item is stored once and later ordered by its id, so that moving it does not store its text again.
	for _, i := range append(h.queue, d.Put...) {
		known[i.ID] = i
	}
	h.queue = nil
	for _, id := range d.Order {
		if i, ok := known[id]; ok {
			h.queue = append(h.queue, i)
		}
	}
}

// change records change sets whose write has begun, for recovery after a crash. Sets can be long and most were applied, so a stored one is
// decoded only when its state is "writing".
func (h *history) change(e Event) {
	// Only an event of this process has its value; a stored one has only JSON.
	d, fresh := e.Value.(ChangeData)
	if !fresh {
		head := decode[struct {
			State change.State
			Set   struct{ ID string }
		}](e)
		if head.State != change.Writing {
			delete(h.writing, head.Set.ID)
			return
		}
		d = decode[ChangeData](e)
	}
	set := d.Whole()
	if set == nil {
		return
	}
	if delete(h.writing, set.ID); d.State == change.Writing {
		d.Full = nil // frees the texts: recovery reads them from the stored set
		h.writing[set.ID] = d
	}
}

// tool keeps the newest state of an open call. Outputs can be long, so it decodes only the fields that it needs.
func (h *history) tool(e Event) {
	t, whole := e.Value.(ToolData)
	if !whole {
		head := decode[struct {
			MessageID string
			CallID    string
			Status    ToolStatus

			InputBefore bool
		}](e)
		t.MessageID, t.CallID, t.Status, t.InputBefore = head.MessageID, head.CallID, head.Status, head.InputBefore
	}
	if t.MessageID == "" { // a call by hand closes with its own final state; other calls close with the step of their message
		if h.last[t.CallID] = (rawEvent{data: e.Data, value: e.Value}).after(h.last[t.CallID], t.InputBefore); t.Status == ToolCompleted || t.Status == ToolError {
			delete(h.last, t.CallID)
		}
		return
	}
	// A call of a message that a step has closed is already in that step.
	if h.msg == nil || t.MessageID != h.msg.MessageID {
		return
	}
	if _, known := h.last[t.CallID]; !known {
		h.calls = append(h.calls, t.CallID)
	}
	h.last[t.CallID] = rawEvent{data: e.Data, value: e.Value}.after(h.last[t.CallID], t.InputBefore)
}

// step closes the message of the step, and adds up its costs.
func (h *history) step(s StepData) {
	if h.turn != nil {
		h.turn.Steps++
		h.turn.Usage = sum(h.turn.Usage, s.Usage)
		h.turn.Cost += s.Cost
	}
	if !s.Dropped {
		h.add(s.Message, s.Results)
	}
	h.clear()
}

// add appends a step. It skips a message without parts, because providers refuse it.
func (h *history) add(m provider.Message, results *provider.Message) {
	if len(m.Parts) > 0 {
		h.messages = append(h.messages, m)
	}
	for _, p := range m.Parts {
		if p.Type == provider.PartToolCall {
			h.callIDs[p.CallID] = true
		}
	}
	if results != nil && len(results.Parts) > 0 {
		h.messages = append(h.messages, *results)
	}
}

// lastWords returns the text of the newest answer after the last message of the user; "" when none has text.
func (h *history) lastWords() string {
	for _, m := range slices.Backward(h.messages) {
		// Earlier answers of a resumed session belong to earlier tasks.
		if m.Role == provider.RoleUser {
			break
		}
		var text strings.Builder
		for _, p := range m.Parts {
			if p.Type == provider.PartText {
				text.WriteString(p.Text)
			}
		}
		if m.Role == provider.RoleAssistant && strings.TrimSpace(text.String()) != "" {
			return text.String()
		}
	}
	return ""
}

// clear drops the open message and its calls. Calls by hand stay, because they belong to no message.
func (h *history) clear() {
	h.msg = nil
	h.text.Reset()
	for _, id := range h.calls {
		delete(h.last, id)
	}
	h.calls = nil
}

// decode returns an event's data; events of this process have it as a value. Fields that cannot be read stay zero, so that sessions of
// later versions can be opened.
func decode[T any](e Event) (v T) {
	if have, ok := e.Value.(T); ok {
		return have
	}
	_ = json.Unmarshal(e.Data, &v)
	return v
}

// sum adds the counts of two requests.
func sum(a, b provider.Usage) provider.Usage {
	return provider.Usage{Input: a.Input + b.Input, Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning,
		CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite}
}

// resultPart returns a finished call as the model reads it. A failed call shows its output before the error.
func resultPart(t ToolData) provider.Part {
	p := provider.Part{Type: provider.PartToolResult, CallID: t.CallID, Name: safeName(t.Tool), Text: t.Output}
	if t.Status == ToolError {
		p.IsError, p.ErrorKind = true, t.ErrorKind
		p.Text = t.Error
		if t.Output != "" && t.Output != t.Error {
			p.Text = t.Output + "\n\n" + t.Error
		}
	}
	for _, a := range t.Attachments {
		p.Files = append(p.Files, provider.File{Mime: a.Mime, Name: a.Name, Data: a.Data})
	}
	// A tool may return a picture that providers refuse.
	p = fitPictures(p)
	if p.Text == "" && len(p.Files) == 0 {
		p.Text = "(no output)" // providers refuse an empty result
	}
	return p
}

// safeName returns a tool name that every provider accepts: letters, digits, _ and -, at most 64 of them. The model may have written
// anything.
func safeName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "invalid"
	}
	return clean[:min(len(clean), 64)]
}

// inputJSON returns the arguments as JSON: unchanged when valid, else as a JSON string, because events and requests must be valid JSON.
func inputJSON(raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	if json.Valid(raw) {
		return json.RawMessage(raw)
	}
	quoted, _ := json.Marshal(string(raw))
	return quoted
}
