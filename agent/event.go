package agent

import (
	"encoding/json"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// Event is one numbered entry of a session. A session *is* its events: panels, terminals, session/load and export are readers of this
// sequence. Seq counts from 1 without gaps.
type Event struct {
	Seq  int64           `json:"seq"`
	Time time.Time       `json:"time"`
	Type EventType       `json:"type"`
	Data json.RawMessage `json:"data"` // nil while the event has a Value and its JSON is very long
	// Value is the decoded Data while the event has not left this process; nil for an event read from the store. The function Value handles
	// both.
	Value any `json:"-"`
}

// EventType names the shape of Data.
type EventType string

// All types of events, with the type of their data. "Upsert" means that a later event with the same id replaces an earlier one.
const (
	EventSession    EventType = "session"    // SessionInfo: the head was created or has changed (title, model, agent)
	EventPrompt     EventType = "prompt"     // PromptData: the person's message; a turn begins
	EventMessage    EventType = "message"    // MessageData: an assistant message (one model step) begins
	EventText       EventType = "text"       // TextData: a piece of the answer
	EventThinking   EventType = "thinking"   // TextData
	EventTool       EventType = "tool"       // ToolData: the present state of a tool call (upsert by callID)
	EventStep       EventType = "step"       // StepData: the finished message as the history keeps it, with usage
	EventPlan       EventType = "plan"       // PlanData: the todo list
	EventChange     EventType = "change"     // ChangeData: a change set proposed, decided, applied (upsert by set id)
	EventAsk        EventType = "ask"        // AskData: a permission request, then its reply
	EventNotice     EventType = "notice"     // NoticeData: something the person should know (retry, compaction, a missing server)
	EventTurn       EventType = "turn"       // TurnData: the turn is over
	EventPrune      EventType = "prune"      // PruneData: old tool outputs were dropped from the history
	EventReview     EventType = "review"     // ReviewData: hunks kept or undone after the fact
	EventRestore    EventType = "restore"    // RestoreData: files or the conversation were restored to a checkpoint
	EventSteer      EventType = "steer"      // PromptData: a message that the person sent to a running turn, and that the model has read
	EventCompaction EventType = "compaction" // CompactionData: a summary replaces older turns for the model (upsert by id)
	EventSummary    EventType = "summary"    // TextData: a piece of that summary, by the compaction's id
	EventQueue      EventType = "queue"      // QueueData: the prompts that wait
	EventRefusal    EventType = "refusal"    // RefusalData: files that a provider refused were left out of the history
)

// SessionInfo is a session's head: the settings and figures that lists of sessions show.
type SessionInfo struct {
	ID     string   `json:"id"`
	Cwd    string   `json:"cwd"`             // absolute
	Extra  []string `json:"extra,omitempty"` // additional directories
	Title  string   `json:"title,omitempty"`
	Agent  string   `json:"agent"`
	Model  string   `json:"model"`            // provider/model
	Effort string   `json:"effort,omitempty"` // reasoning effort: low, medium or high; empty: the model's own
	Parent string   `json:"parent,omitempty"` // id of the session for which this sub-agent works; empty: a person's session
	Review string   `json:"review,omitempty"` // one of ReviewStyles; empty: as configured
	// Permission is PermissionAsk or PermissionAuto; empty: as configured.
	Permission string    `json:"permission,omitempty"`
	Forked     string    `json:"forked,omitempty"` // id of the session of which this is a fork
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"` // last use; see Head.touch
	// Diff is what the turns of the conversation changed; nil when nothing was.
	Diff *DiffStat `json:"diff,omitempty"`
}

// PromptData is the person's message.
type PromptData struct {
	MessageID string          `json:"messageID"`
	Parts     []provider.Part `json:"parts"`
	Agent     string          `json:"agent"`
	Model     string          `json:"model"`
}

// MessageData begins an assistant message.
type MessageData struct {
	MessageID string `json:"messageID"`
	Model     string `json:"model"`
	Step      int    `json:"step"` // counts from 1 in a turn
}

// TextData is a piece of text or thinking. Pieces that wait for delivery at the same time are joined to one event.
type TextData struct {
	MessageID string `json:"messageID"`
	Text      string `json:"text"`
}

// ToolStatus is the state of a tool call.
type ToolStatus string

// The states of OpenCode's tool parts.
const (
	ToolPending   ToolStatus = "pending" // arguments are streaming
	ToolRunning   ToolStatus = "running"
	ToolCompleted ToolStatus = "completed"
	ToolError     ToolStatus = "error"
)

// ToolData is a tool call in its present state. Each stored update has every field that is known, so that readers need only the newest;
// only a long input is stored once.
type ToolData struct {
	MessageID   string          `json:"messageID"`
	CallID      string          `json:"callID"`           // unique in the session; the loop makes it where the provider's id is not
	Parent      string          `json:"parent,omitempty"` // id of the call that made this one
	Tool        string          `json:"tool"`
	Kind        tools.Kind      `json:"kind"`
	Status      ToolStatus      `json:"status"`
	Input       json.RawMessage `json:"input,omitempty"`       // the arguments; a JSON string when the model's text was not valid JSON
	InputBefore bool            `json:"inputBefore,omitempty"` // Input is long and left out: an earlier stored event of the call has it; see After
	Title       string          `json:"title,omitempty"`       // for people
	Output      string          `json:"output,omitempty"`      // as the model reads it
	Error       string          `json:"error,omitempty"`       // as the model reads it, after Output
	// Unexplained means a rejection without a message, after which the turn ends. Only ToolBeside sets it; it is not stored.
	Unexplained bool               `json:"-"`
	ErrorKind   string             `json:"errorKind,omitempty"` // for programs: a tools.Error's Kind, cancelled, cut, not_run …
	Metadata    map[string]any     `json:"metadata,omitempty"`  // for programs and cards; its members depend on the tool
	Locations   []tools.Location   `json:"locations,omitempty"`
	Attachments []tools.Attachment `json:"attachments,omitempty"`
	Started     time.Time          `json:"started,omitzero"`
	Ended       time.Time          `json:"ended,omitzero"`
}

// After returns the state with the input of the state before, where the stored event left it out.
func (d ToolData) After(before ToolData) ToolData {
	if d.InputBefore && len(d.Input) == 0 {
		d.Input, d.InputBefore = before.Input, before.InputBefore
	}
	return d
}

// StepData closes an assistant message and holds what the history keeps of it.
type StepData struct {
	Message provider.Message    `json:"message"`
	Results *provider.Message   `json:"results,omitempty"` // the tool results, RoleTool
	Usage   provider.Usage      `json:"usage"`
	Cost    float64             `json:"cost,omitempty"` // USD
	Stop    provider.StopReason `json:"stop"`
	Error   string              `json:"error,omitempty"` // why the answer is incomplete; masked
	// Cut means that the answer broke off: its text is kept, and the next message continues it.
	Cut bool `json:"cut,omitempty"`
	// Dropped means that the request was repeated: the transcript keeps the message, the history does not.
	Dropped bool `json:"dropped,omitempty"`
}

// RefusalData says which files a provider refused. The answer to the request without them has arrived.
type RefusalData struct {
	Messages []string `json:"messages"` // ids of the messages whose files the model no longer sees
	Files    []string `json:"files"`    // their names, for people
	Why      string   `json:"why"`      // the provider's words; masked
}

// PlanData is the todo list.
type PlanData struct {
	Todos []tools.Todo `json:"todos"`
}

// ChangeData is a change set and its state.
type ChangeData struct {
	CallID string       `json:"callID"`
	State  change.State `json:"state"`
	// Session is the sub-agent's session in which the call was made; Task is the call of this session that started the sub-agent.
	Session string `json:"session,omitempty"`
	Task    string `json:"task,omitempty"`
	// Set is the change set as the store keeps it: long texts may be references (change.File.OldRef). nil where the store keeps no events.
	Set *change.Set `json:"set"`
	// Full is the change set with all its texts while the event has not left this process; nil in a stored event.
	Full *change.Set `json:"-"`
}

// Whole returns the change set with as many texts as the event has; nil when the stored one could not be read.
func (d ChangeData) Whole() *change.Set {
	if d.Full != nil {
		return d.Full
	}
	return d.Set
}

// AskData is a permission request and its answer.
type AskData struct {
	ID         string   `json:"id"`
	CallID     string   `json:"callID"`
	Permission string   `json:"permission"`
	Patterns   []string `json:"patterns"`
	Reply      string   `json:"reply"`             // "" while it waits; then once, always, reject, cancelled or AskInterrupted
	Message    string   `json:"message,omitempty"` // the person's message with the reply
	// Set is the change set that the request is about, as the store keeps it. It comes in a second event after the request, so that the
	// person need not wait until its texts are stored.
	Set *change.Set `json:"set,omitempty"`
}

// AskInterrupted is the reply to a request whose session was closed before the person answered. Unlike a rejection it is no decision, so a
// reopened session may ask again.
const AskInterrupted = "interrupted"

// QueueData is the queue of prompts at that moment. A prompt or steer event with the id of an item removes the item.
type QueueData struct {
	Put   []QueueItem `json:"put,omitempty"` // items that are new or were changed
	Order []string    `json:"order"`         // ids of all waiting items, the next to run first
	Held  bool        `json:"held,omitempty"`
}

// PruneData names the calls whose results no longer go to the model.
type PruneData struct {
	CallIDs []string `json:"callIDs"`
	Tokens  int      `json:"tokens"` // estimated tokens that this frees
}

// NoticeData is a line for the person.
type NoticeData struct {
	Level string `json:"level"` // "info", "warning" or "error"
	Text  string `json:"text"`
	// Until and Attempt are set for a retry: the loop waits until Until before it makes attempt number Attempt.
	Until   time.Time `json:"until,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	// Install is the id of a language server that is not installed and that "pillion doctor --install" can install.
	Install string `json:"install,omitempty"`
}

// StopReason is why a turn ended; the first five are ACP's.
type StopReason string

// TurnError means a failure that retries did not overcome; TurnData.Error says which.
const (
	TurnEnd       StopReason = "end_turn"
	TurnMaxTokens StopReason = "max_tokens"
	TurnMaxSteps  StopReason = "max_turn_requests"
	TurnRefusal   StopReason = "refusal"
	TurnCancelled StopReason = "cancelled"
	TurnError     StopReason = "error"
)

// TurnData ends a turn.
type TurnData struct {
	Stop  StopReason     `json:"stop"`
	Error string         `json:"error,omitempty"` // for a person: what happened, then what to do
	Usage provider.Usage `json:"usage"`           // sum of the turn's steps
	Cost  float64        `json:"cost,omitempty"`  // USD
	Steps int            `json:"steps"`           // model answers
	// Diff counts the changes of files, including those of sub-agents; nil when there are none.
	Diff *DiffStat `json:"diff,omitempty"`
	// Tasks is what sub-agents used; Usage and Cost do not include it.
	Tasks *TaskSpend `json:"tasks,omitempty"`
	// Rejected means that the person rejected a call without a message, which ended the turn.
	Rejected bool `json:"rejected,omitempty"`
	// Undone means that the model says that it could do nothing of what was asked.
	Undone bool `json:"undone,omitempty"`
	// ContextUsed and ContextSize are in tokens, for a meter; size 0 is unknown.
	ContextUsed int `json:"contextUsed,omitempty"`
	ContextSize int `json:"contextSize,omitempty"`
}

// CutOff reports whether Pillion ended in the middle of the turn. Error then says so for the person, who was not there to see it: of turns
// that were cancelled only such a one has an error.
func (d TurnData) CutOff() bool { return d.Stop == TurnCancelled && d.Error != "" }

// decoded returns a stored event with its Value, for a reading that has several readers: each of them would decode the data again. Types
// that only one of them looks at stay as they are, and so does what cannot be read.
func (e Event) decoded() Event {
	switch e.Type {
	case EventTool:
		keepValue[ToolData](&e)
	case EventText:
		keepValue[TextData](&e)
	case EventPrompt, EventSteer:
		keepValue[PromptData](&e)
	case EventSession:
		keepValue[SessionInfo](&e)
	case EventTurn:
		keepValue[TurnData](&e)
	}
	return e
}

// keepValue decodes an event's data as T and keeps it as its Value.
func keepValue[T any](e *Event) {
	if v, ok := Value[T](*e); ok {
		e.Value = v
	}
}

// Value returns an event's data as T, for fresh and for stored events; false when the data is not a T.
func Value[T any](e Event) (T, bool) {
	if v, ok := e.Value.(T); ok {
		return v, true
	}
	if p, ok := e.Value.(*T); ok && p != nil {
		return *p, true
	}
	var v T
	return v, json.Unmarshal(e.Data, &v) == nil
}
