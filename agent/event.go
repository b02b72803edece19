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
	Data json.RawMessage `json:"data"`
	// Value is the decoded Data while the event is fresh in this process. Readers of stored events decode Data; see the function Value.
	Value any `json:"-"`
}

// EventType names the shape of Data.
type EventType string

// All types of events, with the type of their data. "Upsert" means that a later event with the same id replaces an earlier one.
const (
	EventSession    EventType = "session"    // SessionInfo: created, or renamed, or another model or agent
	EventPrompt     EventType = "prompt"     // PromptData: the person's message; a turn begins
	EventMessage    EventType = "message"    // MessageData: an assistant message (one model step) begins
	EventText       EventType = "text"       // TextData: a piece of the answer
	EventThinking   EventType = "thinking"   // TextData
	EventTool       EventType = "tool"       // ToolData: a tool call, as it is now (upsert by callID)
	EventStep       EventType = "step"       // StepData: the step's message as it goes into the history, with usage
	EventPlan       EventType = "plan"       // PlanData: the todo list
	EventChange     EventType = "change"     // ChangeData: a change set proposed, decided, applied (upsert by set id)
	EventAsk        EventType = "ask"        // AskData: a permission asked and answered
	EventNotice     EventType = "notice"     // NoticeData: something the person should know (retry, compaction, a missing server)
	EventTurn       EventType = "turn"       // TurnData: the turn is over
	EventPrune      EventType = "prune"      // PruneData: old tool outputs left the history
	EventReview     EventType = "review"     // ReviewData: hunks kept or undone after the fact
	EventRestore    EventType = "restore"    // RestoreData: files or the conversation taken back to a checkpoint
	EventSteer      EventType = "steer"      // PromptData: words that a running turn has read
	EventCompaction EventType = "compaction" // CompactionData: older turns became a summary, for the model (upsert by id)
	EventSummary    EventType = "summary"    // TextData: a piece of that summary, by the compaction's id
	EventQueue      EventType = "queue"      // QueueData: the stored prompts that wait
)

// SessionInfo is a session's head.
type SessionInfo struct {
	ID     string   `json:"id"`
	Cwd    string   `json:"cwd"`
	Extra  []string `json:"extra,omitempty"` // additional directories
	Title  string   `json:"title,omitempty"`
	Agent  string   `json:"agent"`
	Model  string   `json:"model"` // provider/model
	Effort string   `json:"effort,omitempty"`
	Parent string   `json:"parent,omitempty"`
	Review string   `json:"review,omitempty"` // one of ReviewStyles; empty: as configured
	// Permission is PermissionAsk or PermissionAuto; empty: as configured.
	Permission string    `json:"permission,omitempty"`
	Forked     string    `json:"forked,omitempty"` // the session it was forked from
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
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

// TextData is a piece of text or thought. Pieces that waited together are one event.
type TextData struct {
	MessageID string `json:"messageID"`
	Text      string `json:"text"`
}

// ToolStatus is a call's state.
type ToolStatus string

// The states of OpenCode's tool parts.
const (
	ToolPending   ToolStatus = "pending" // arguments are streaming
	ToolRunning   ToolStatus = "running"
	ToolCompleted ToolStatus = "completed"
	ToolError     ToolStatus = "error"
)

// ToolData is a tool call in its present state. Each stored update has every field that is known, so that readers need only the newest.
type ToolData struct {
	MessageID   string             `json:"messageID"`
	CallID      string             `json:"callID"`           // unique in the session, made by the loop
	Parent      string             `json:"parent,omitempty"` // the call in whose name it was made
	Tool        string             `json:"tool"`
	Kind        tools.Kind         `json:"kind"`
	Status      ToolStatus         `json:"status"`
	Input       json.RawMessage    `json:"input,omitempty"`
	Title       string             `json:"title,omitempty"`
	Output      string             `json:"output,omitempty"`
	Error       string             `json:"error,omitempty"`
	ErrorKind   string             `json:"errorKind,omitempty"`
	Metadata    map[string]any     `json:"metadata,omitempty"`
	Locations   []tools.Location   `json:"locations,omitempty"`
	Attachments []tools.Attachment `json:"attachments,omitempty"`
	Started     time.Time          `json:"started,omitzero"`
	Ended       time.Time          `json:"ended,omitzero"`
}

// StepData closes an assistant message. It is what the history keeps of it.
type StepData struct {
	Message provider.Message    `json:"message"`
	Results *provider.Message   `json:"results,omitempty"` // the tool results, RoleTool
	Usage   provider.Usage      `json:"usage"`
	Cost    float64             `json:"cost,omitempty"` // USD
	Stop    provider.StopReason `json:"stop"`
	Error   string              `json:"error,omitempty"`
	// Cut: the answer broke off; its text stays, and the next message continues it.
	Cut bool `json:"cut,omitempty"`
	// Dropped: the request was repeated. The transcript keeps the message, the history does not.
	Dropped bool `json:"dropped,omitempty"`
}

// PlanData is the todo list.
type PlanData struct {
	Todos []tools.Todo `json:"todos"`
}

// ChangeData is a change set and its state.
type ChangeData struct {
	CallID string       `json:"callID"`
	State  change.State `json:"state"`
	// Session is the sub-agent's session in which the call was made, Task the call of this session that started it.
	Session string `json:"session,omitempty"`
	Task    string `json:"task,omitempty"`
	// Set is the change set as the store keeps it, in which long texts may be references (change.File.OldRef). It is nil where the store
	// keeps no events.
	Set *change.Set `json:"set"`
	// Full is the change set with all its texts while the event is fresh in this process; nil in a stored event.
	Full *change.Set `json:"-"`
}

// Whole is the change set with as many texts as the event has; nil when the stored one could not be read.
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
	Reply      string   `json:"reply"`             // "" while it waits; once, always, reject, cancelled
	Message    string   `json:"message,omitempty"` // what the person wrote with the answer
	// Set is the change set that the request is about, as the store keeps it. It comes in an event of its own after the question, so that
	// the person need not wait until its texts are stored.
	Set *change.Set `json:"set,omitempty"`
}

// AskInterrupted is the reply to a question whose session was closed before the person answered. Unlike a rejection it is not a decision, so
// a reopened session may ask again.
const AskInterrupted = "interrupted"

// QueueData is the queue at that moment. A prompt or steer event with the id of an item removes the item.
type QueueData struct {
	Put   []QueueItem `json:"put,omitempty"` // items that are new or were changed
	Order []string    `json:"order"`         // ids of all that wait, first to run first
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
	// Until and Attempt belong to a retry: the loop waits until then before this attempt.
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
	Cost  float64        `json:"cost,omitempty"`
	Steps int            `json:"steps"`
	// Diff is what was done to files, sub-agents' changes included; nil when nothing was.
	Diff *DiffStat `json:"diff,omitempty"`
	// Tasks is what sub-agents used, besides Usage and Cost.
	Tasks *TaskSpend `json:"tasks,omitempty"`
	// Rejected: the person rejected a call without a message, which ended the turn.
	Rejected bool `json:"rejected,omitempty"`
	// Undone: the model itself says that it could do nothing of what was asked.
	Undone bool `json:"undone,omitempty"`
	// ContextUsed and ContextSize are in tokens, for a meter; size 0 is unknown.
	ContextUsed int `json:"contextUsed,omitempty"`
	ContextSize int `json:"contextSize,omitempty"`
}

// Value is an event's data as T, for fresh and for stored events; false when the data is not a T.
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
