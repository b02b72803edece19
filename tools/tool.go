// Package tools is the contract between a model and what it may do: a Tool has an id, a description that the model reads,
// a JSON Schema for its parameters and a function. Offer chooses the tools of a step, Invoke makes a call: it checks and
// coerces the input, runs hooks, catches panics and caps the output. The package knows nothing of models, editors or
// files; the tools themselves are in tools/builtin, the person and the session are behind Host.
//
//	var Echo = tools.New("echo", "Repeats a text.", func(ctx context.Context, p struct {
//		Text string `json:"text" jsonschema:"what to repeat"`
//	}, call *tools.Call) (tools.Result, error) {
//		return tools.Result{Title: "echo", Output: p.Text}, nil
//	})
package tools

import (
	"context"
	"encoding/json"
	"unsafe"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Tool is one thing a model can call. Tools are values: made once per session, safe for concurrent calls.
type Tool struct {
	ID          string          // the name the model calls, [a-z0-9_]
	Description string          // what the model reads
	Parameters  json.RawMessage // JSON Schema (object) of the input
	Permission  string          // permission that hides the tool when denied for "*"; edit for every tool that changes files
	ReadOnly    bool            // may run beside other read-only calls of the same step
	Parallel    bool            // runs beside its neighbours although it changes things: each call has a session of its own
	OptIn       bool            // offered only where a switch names it
	Kind        Kind            // for the person's card; ACP's word
	Keep        Keep            // which part of a long output survives the cap; empty is Head

	// Run does the work. input has been validated and coerced against Parameters.
	Run func(ctx context.Context, input json.RawMessage, call *Call) (Result, error)
	// Describe, when set, makes the description for an agent's rules; ok false keeps the tool from being offered. It is
	// called for every step, and the same answer is the same bytes.
	Describe func(rules permission.Ruleset) (description string, ok bool)

	// OwnCheck: Run judges its input in its own words. What does not fit Parameters is coerced where it can be and left to it.
	OwnCheck bool

	typed *jsonschema.Schema  // Parameters as New made them; nil for tools from elsewhere
	made  json.RawMessage     // typed as JSON; Parameters are something else where a plugin has replaced them
	also  map[string][]string // see WithNames
	tells bool                // see WithIgnored
	group *Group              // see WithGroup
}

// Kind is ACP's tool kind, chosen for icons and grouping.
type Kind string

// ACP v1's closed set of tool kinds.
const (
	KindRead    Kind = "read"
	KindEdit    Kind = "edit"
	KindDelete  Kind = "delete"
	KindMove    Kind = "move"
	KindSearch  Kind = "search"
	KindExecute Kind = "execute"
	KindThink   Kind = "think"
	KindFetch   Kind = "fetch"
	KindOther   Kind = "other"
)

// Call is the context of one call. Its methods are safe for concurrent use; the fields are set before the call starts.
type Call struct {
	SessionID string
	MessageID string
	CallID    string
	Agent     string
	Tool      string // the tool's id
	Words     string // what the model said in the answer that makes this call; empty where no model makes it
	Host      Host

	// OnMetadata receives live updates; nil drops them.
	OnMetadata func(Update)
	// Hooks run around the call, the first outermost.
	Hooks []Hook

	tree   any   // a long input as decode has it; nil once it was taken
	treeOf *byte // where that input begins
}

// takeTree returns an input as decode has it, once; nil where it must be decoded from its JSON, as after it was changed or copied.
func (c *Call) takeTree(input []byte) any {
	if c == nil || c.treeOf != unsafe.SliceData(input) {
		return nil
	}
	tree := c.tree
	c.tree = nil
	return tree
}

// Update is what a running call shows of itself. Empty fields leave what was shown before.
type Update struct {
	Title     string         `json:"title,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"` // merged key by key
	Locations []Location     `json:"locations,omitempty"`
	// Change is the change set that the call proposes or has made, ChangeState its state; nil: no news of one.
	Change      *change.Set  `json:"-"`
	ChangeState change.State `json:"-"`
}

// Location is a place the call reads or changes, so an editor can follow. Line counts from 1; 0 is the whole file.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// Report sends an update of the running call. A change set in it must not be written to afterwards:
// editors may be reading it.
func (c *Call) Report(u Update) {
	if c.OnMetadata != nil {
		c.OnMetadata(u)
	}
}

// Result is what a call gives back. Output is for the model; Metadata for people and machines.
type Result struct {
	Title       string         `json:"title"`
	Output      string         `json:"output"`
	Metadata    map[string]any `json:"metadata,omitempty"` // "truncated" set by a tool means: I capped it myself
	Attachments []Attachment   `json:"attachments,omitempty"`
	Locations   []Location     `json:"locations,omitempty"`
	Whole       *Whole         `json:"-"` // Output is only the beginning of this text; nil: it is whole
}

// Attachment is a file the model sees as such: an image or a PDF.
type Attachment struct {
	Mime string `json:"mime"`
	Name string `json:"name,omitempty"`
	Data []byte `json:"data"` // raw bytes; base64 in JSON
}

// Error is a tool error with a kind that machines can test; its text is for the model.
type Error struct {
	Kind    string // e.g. not_found, multiple, stale, unread; stable, hooks and editors test it
	Message string
	Err     error // optional cause
}

// KindOutdated is the kind of the error of a reopened proposal that no longer fits the files. No user was asked, so whoever
// reopened it closes its card without a decision.
const KindOutdated = "outdated"

// Error is the message alone: the model reads it, and the kind is for programs.
func (e *Error) Error() string { return e.Message }

// Unwrap keeps the cause in the chain, by which the agent tells a rejection and a cancel from a failure.
func (e *Error) Unwrap() error { return e.Err }
