package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// history is what a model is sent, rebuilt from a session's events, and which turn, calls and writes have no end among them. It has no
// lock: only the session's runner uses it, and before the session is live the code that loads it.
type history struct {
	messages []provider.Message // append-only; the values never change
	accepted int                // how many of them a provider has answered to, so that a refusal is about later ones; 0 after a reload
	callIDs  map[string]bool    // ids of calls in this session; a call never gets one of these
	info     SessionInfo        // as the last session event has it
	todos    []tools.Todo
	used     int // tokens of context after the last step, as the provider counted
	usedAt   int // how many messages used covers
	futile   int // tokens at which a compaction gained nothing; 0: none has failed
	prompts  int
	did      sessionDiff // what its turns changed

	writing   map[string]ChangeData // change sets that were being written, by id
	restoring *RestoreData          // a restore that has not ended
	stale     bool                  // a restore moved the conversation: rebuild it
	queue     []QueueItem           // stored prompts that wait

	turn  *TurnData           // sums of the open turn; nil between turns
	msg   *MessageData        // the message that no step has closed yet
	text  strings.Builder     // its text so far
	calls []string            // its calls in order
	last  map[string]rawEvent // newest state of each open call, calls by hand included
}

// rawEvent is a tool event that is decoded only when a crash has left its call open. Outputs are long and nearly all calls have ended, so
// decoding each would slow down loading.
type rawEvent struct {
	data  []byte
	value any
}

func (e rawEvent) tool() (t ToolData) {
	if v, ok := e.value.(ToolData); ok {
		return v
	}
	_ = json.Unmarshal(e.data, &t)
	return t
}

func newHistory() *history {
	return &history{callIDs: map[string]bool{}, last: map[string]rawEvent{}, writing: map[string]ChangeData{}}
}

// open reports whether a turn, a call by hand, a write or a restore has no end. Either it runs in another process or that process
// crashed; the session's lock tells which.
func (h *history) open() bool {
	return h.turn != nil || len(h.last) > 0 || len(h.writing) > 0 || h.restoring != nil
}

// apply adds the next event to the history. Types that do not concern the model are ignored, so that this version can read sessions of
// newer ones.
func (h *history) apply(e Event) {
	switch e.Type {
	case EventSession:
		h.info = decode[SessionInfo](e)
	case EventPrompt:
		p := decode[PromptData](e)
		h.messages = append(h.messages, provider.Message{ID: p.MessageID, Role: provider.RoleUser, Parts: p.Parts})
		h.prompts++
		// The turn is open until its end event: what a crash cut off is recognised by that.
		h.turn = &TurnData{}
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
		// Text of a message that a step has closed is part of that step already.
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
	case EventCompaction:
		if d := decode[CompactionData](e); d.State == CompactionDone {
			h.compact(d)
		}
	case EventChange:
		h.change(e)
	case EventRestore:
		d := decode[RestoreData](e)
		// The newest restore event says whether a restore is under way.
		if h.restoring = nil; d.State == RestoreBegun {
			h.restoring = &d
		}
		h.stale = h.stale || d.State == RestoreDone && d.Conversation
	case EventTurn:
		t := decode[TurnData](e)
		// The provider's count for the messages so far is the base of later estimates.
		if t.ContextUsed > 0 {
			h.used, h.usedAt = t.ContextUsed, len(h.messages)
		}
		h.did.add(t.Diff)
		h.turn = nil
		h.clear()
	}
}

// unqueue removes a prompt that has begun from the queue.
func (h *history) unqueue(id string) {
	h.queue = slices.DeleteFunc(h.queue, func(i QueueItem) bool { return i.ID == id })
}

// requeue gives the queue the stored order. An id without an item is left out: the event with the item may have been lost on a full disk.
func (h *history) requeue(d QueueData) {
	known := map[string]QueueItem{}
	// An item is stored once and then ordered by its id, so that moving it does not store its text again.
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

// change notes change sets that were being written, for recovery after a crash. Sets can be long and most were applied, so a stored one
// is decoded only when its state is "writing".
func (h *history) change(e Event) {
	// An event of this process has its value; a stored one has only JSON.
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
		d.Full = nil // its texts need not stay in memory: recovery reads them from the stored set
		h.writing[set.ID] = d
	}
}

// tool keeps the newest state of an open call. Outputs can be long, so only the fields that tell calls apart are decoded.
func (h *history) tool(e Event) {
	t := decode[struct {
		MessageID string
		CallID    string
		Status    ToolStatus
	}](e)
	if t.MessageID == "" { // a call by hand, which ends by itself; those of a message end with its step
		if h.last[t.CallID] = (rawEvent{e.Data, e.Value}); t.Status == ToolCompleted || t.Status == ToolError {
			delete(h.last, t.CallID)
		}
		return
	}
	// The call of a message that a step has closed is part of that step.
	if h.msg == nil || t.MessageID != h.msg.MessageID {
		return
	}
	if _, known := h.last[t.CallID]; !known {
		h.calls = append(h.calls, t.CallID)
	}
	h.last[t.CallID] = rawEvent{e.Data, e.Value}
}

// step closes the message that the step is about, and adds up its costs.
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

// add appends a step. A message without parts is left out, because providers refuse it.
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

// lastWords is the text of the newest answer since the last message of the user; empty when no answer has text.
func (h *history) lastWords() string {
	for _, m := range slices.Backward(h.messages) {
		// Not further back: a resumed session has answers to earlier tasks.
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

// clear forgets the open message and its calls. Calls by hand stay, because they belong to no message.
func (h *history) clear() {
	h.msg = nil
	h.text.Reset()
	for _, id := range h.calls {
		delete(h.last, id)
	}
	h.calls = nil
}

// decode returns an event's data; events of this process have it as a value already. Fields that cannot be read stay zero, so that
// sessions of newer versions can be opened.
func decode[T any](e Event) (v T) {
	if have, ok := e.Value.(T); ok {
		return have
	}
	_ = json.Unmarshal(e.Data, &v)
	return v
}

func sum(a, b provider.Usage) provider.Usage {
	return provider.Usage{Input: a.Input + b.Input, Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning,
		CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite}
}

// resultPart is a finished call as the model reads it: a failed call shows its output before the error.
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

// safeName is a tool name that every provider accepts; a model may write anything. Providers allow letters, digits, _ and -, and at most
// 64 of them.
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

// inputJSON is the arguments as JSON: as they were written when that is valid, else as a JSON string. Events and requests must be valid
// JSON in any case.
func inputJSON(raw []byte) json.RawMessage {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return json.RawMessage("{}")
	}
	if json.Valid(raw) {
		return json.RawMessage(raw)
	}
	quoted, _ := json.Marshal(string(raw))
	return quoted
}
