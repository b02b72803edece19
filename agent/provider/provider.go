// Package provider sends requests to models: a Request goes in, a stream of Events comes out. There is one adapter for each wire
// format, over plain HTTP. It leaves to others what a tool does (it sends schemas only), sessions, files, and when a failed
// request is repeated: an *Error says only whether that may help.
//
//	err := p.Stream(ctx, req, func(e provider.Event) error { … })
package provider

import (
	"context"
	"encoding/json"
	"time"
)

// Provider streams one model answer. Stream calls emit from one goroutine and in order, and has called it for all of an SSE event before
// it reads the next event. An error from emit ends the stream and is returned unchanged. Every other failure is an *Error, also that of a
// cancelled ctx (ErrCanceled, which unwraps to ctx's error).
type Provider interface {
	Stream(ctx context.Context, req *Request, emit func(Event) error) error
}

// Forgetter is a provider that keeps something for each session, such as encoded messages, and drops it when the session is closed. The
// sidecar runs for days: without Forget what is kept for closed sessions would add up.
type Forgetter interface{ Forget(session string) }

// Request is one step of a conversation.
// It is not changed by Stream: retries send the same one.
type Request struct {
	Model       Model
	System      []string  // blocks, the stable ones first (prompt caches)
	Messages    []Message // append-only between steps, so that adapters can keep what they encoded
	Tools       []ToolSpec
	MaxOutput   int      // tokens; 0: the model's own limit
	Temperature *float64 // nil: the model's own
	TopP        *float64 // nil: the model's own
	Effort      string   // thinking effort: "", "low", "medium", "high"
	SessionID   string   // for prompt caches
	Options     Options  // of the agent, over the model's own
	// Headers are added to the request, after those of the configuration: a plugin's.
	Headers map[string]string

	rest extras // options that have no field here; set by resolveOptions
}

// ToolSpec is a tool as a model sees it.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema as the tool made it; adapters transform it for their provider
}

// Role of a message.
type Role string

// Tool results travel in messages of RoleTool, whatever the provider makes of them.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of the history. It is immutable once appended: adapters recognise a message that they have encoded by the address
// of its first part, so a change in place would not be sent.
type Message struct {
	ID    string `json:"id"`
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	Model string `json:"model,omitempty"` // provider/model that wrote it (assistant)
}

// PartType tells which fields of a Part count.
type PartType string

// The parts of a message.
const (
	PartText       PartType = "text"        // Text
	PartThinking   PartType = "thinking"    // Text, Signature
	PartToolCall   PartType = "tool_call"   // CallID, Name, Input
	PartToolResult PartType = "tool_result" // CallID, Name, Text, IsError, Files
	PartFile       PartType = "file"        // Files: attachments of the person (images, PDFs, texts)
)

// Part is one piece of a message.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"`
	// Another provider refuses it, or cannot read it: see sameProvider.
	Signature string          `json:"signature,omitempty"` // opaque provider state: Anthropic's signature, OpenAI's encrypted reasoning item, Gemini's thought signature
	CallID    string          `json:"callID,omitempty"`
	Name      string          `json:"name,omitempty"`  // a tool's; of a text that stands for a link, the address
	Input     json.RawMessage `json:"input,omitempty"` // the arguments as the model wrote them; may be invalid JSON held as a JSON string
	IsError   bool            `json:"isError,omitempty"`
	Files     []File          `json:"files,omitempty"`
	Synthetic bool            `json:"synthetic,omitempty"` // written by Pillion, not by the person
	// ErrorKind is the kind of a tool result that is an error, as in tools.Error.
	ErrorKind string `json:"errorKind,omitempty"`
	// Metadata is what a tool result says to machines, in this process and for the built-in model only: it reads no prose.
	Metadata json.RawMessage `json:"-"`
}

// File is an attachment.
type File struct {
	Mime string `json:"mime"`
	Name string `json:"name,omitempty"`
	// Mime decides what becomes of the file: sent as it is, sent as text, or replaced by a note; see sendable and fileText.
	Data []byte `json:"data"`
}

// EventType tells which fields of an Event count.
type EventType string

// What a stream says, with the fields of Event that are set.
const (
	EventText      EventType = "text"       // Text
	EventThinking  EventType = "thinking"   // Text; Signature when the block ends (with no Text before it: a block of its own)
	EventToolStart EventType = "tool_start" // Index, CallID, Name
	EventToolDelta EventType = "tool_delta" // Index, Text: a piece of the arguments
	EventToolEnd   EventType = "tool_end"   // Index, CallID, Name, Text: the whole arguments as written (empty: long, and what the pieces were), Signature
	EventUsage     EventType = "usage"      // Usage, cumulative for this request
	EventStop      EventType = "stop"       // Stop; the last event of a good stream
)

// Event is one piece of a streamed answer.
type Event struct {
	Type      EventType
	Index     int // distinguishes the calls of one answer, which may be streamed in turns
	Text      string
	Signature string
	CallID    string
	Name      string
	Usage     Usage
	Stop      StopReason
}

// StopReason is why the model stopped.
type StopReason string

// Stop reasons, the union of what providers say.
const (
	StopEnd       StopReason = "end_turn"
	StopTools     StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopRefusal   StopReason = "refusal" // refusals and content filters
)

// Usage in tokens. Input counts what was neither read from nor written to a cache.
// Input, CacheRead and CacheWrite together are the size of the prompt. Cost relies on that, so adapters subtract cached tokens from sums
// that include them.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"` // without reasoning
	Reasoning  int `json:"reasoning,omitempty"`
	CacheRead  int `json:"cacheRead,omitempty"`
	CacheWrite int `json:"cacheWrite,omitempty"`
}

// ErrorKind decides what the loop does about an error.
type ErrorKind string

// Kinds of failure. Retriable: rate_limit, overloaded, server, network, cut.
const (
	ErrAuth          ErrorKind = "auth"       // missing or wrong key
	ErrNotFound      ErrorKind = "not_found"  // no such model
	ErrInvalid       ErrorKind = "invalid"    // the provider refuses the request as written
	ErrRateLimit     ErrorKind = "rate_limit" // 429
	ErrOverloaded    ErrorKind = "overloaded" // 529, 503
	ErrServer        ErrorKind = "server"     // other 5xx
	ErrNetwork       ErrorKind = "network"    // no connection, time-out
	ErrCut           ErrorKind = "cut"        // the stream ended before its end
	ErrContextLength ErrorKind = "context_length"
	ErrQuota         ErrorKind = "quota"     // no credit: do not retry
	ErrCanceled      ErrorKind = "cancelled" // the caller's ctx ended
	ErrAgent         ErrorKind = "agent"     // an external agent failed: repeating its prompt would repeat what it did
)

// Error is every failure of a provider. Its message tells a person what happened and what to do; keys have been removed from it.
type Error struct {
	Kind       ErrorKind
	Status     int // HTTP status, 0 where there was none
	Message    string
	RetryAfter time.Duration // as the provider asked; 0: it did not
	Err        error

	shape string // what a chat template complained about: see complaint
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Retriable reports whether the same request may succeed later.
func (e *Error) Retriable() bool {
	switch e.Kind {
	case ErrRateLimit, ErrOverloaded, ErrServer, ErrNetwork, ErrCut:
		return true
	}
	return false
}

// Model is what is known of a model. Zero limits mean unknown: safe defaults apply.
// It comes from the catalogue, from a local server's list or from the configuration.
type Model struct {
	Provider  string  `json:"provider"` // configuration's provider id: anthropic, openai, google, builtin, or the user's own
	ID        string  `json:"id"`       // as the provider's API knows it
	Name      string  `json:"name,omitempty"`
	Context   int     `json:"context,omitempty"` // tokens
	Output    int     `json:"output,omitempty"`  // tokens
	Images    bool    `json:"images,omitempty"`
	PDF       bool    `json:"pdf,omitempty"`
	Thinking  bool    `json:"thinking,omitempty"`
	CostIn    float64 `json:"costIn,omitempty"` // USD per million tokens
	CostOut   float64 `json:"costOut,omitempty"`
	CostRead  float64 `json:"costRead,omitempty"`
	CostWrite float64 `json:"costWrite,omitempty"`

	Options  Options            `json:"options,omitempty"`  // sent with every request
	Variants map[string]Options `json:"variants,omitempty"` // laid over them where the effort has this name
	Headers  map[string]string  `json:"-"`                  // besides the provider's
}

// String is provider/model, as people write it.
func (m Model) String() string { return m.Provider + "/" + m.ID }
