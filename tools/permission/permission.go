// Package permission decides whether a call may go on: rules say allow, ask or deny, and a Gate asks a person
// for the rest and remembers "always". It does not know what a tool, a file or an editor is.
//
//	gate := permission.NewGate(permission.GateOptions{Rules: rules, Asker: person, Grants: store, Project: root})
//	_, err := gate.Ask(ctx, permission.Request{Permission: "edit", Patterns: []string{"a.go"}, Always: []string{"*"}})
//	if errors.Is(err, permission.ErrRejected) { … }
package permission

import (
	"context"
	"errors"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
)

// Action is what a rule says.
type Action string

// The three actions of OpenCode's configuration.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Rule is one line of a ruleset; both fields take the wildcards * and ?.
type Rule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     Action `json:"action"`
	Origin     string `json:"origin,omitempty"` // file:line, "default", "session", "project", "agent plan"
}

// Ruleset is judged from its end: the last matching rule wins.
type Ruleset []Rule

// Request is what a call wants to do.
type Request struct {
	ID         string   `json:"id"` // made by the gate when empty
	SessionID  string   `json:"sessionID"`
	CallID     string   `json:"callID"`
	Tool       string   `json:"tool"`       // the tool's id; rules written for it count too
	Permission string   `json:"permission"` // read edit glob grep list bash task external_directory …
	Patterns   []string `json:"patterns"`   // every one is judged; any deny denies, else any ask asks
	Always     []string `json:"always"`     // what "always" would remember; empty: not offered
	// Also are other spellings of what the patterns name (the absolute or resolved path, the command as it was
	// typed). They can only deny: an allow must match the pattern itself.
	Also []string `json:"also,omitempty"`
	// NoGrant are those of Patterns that a remembered "always" never covers: wrappers, shells, interpreters.
	NoGrant []string `json:"noGrant,omitempty"`
	// Exact are those of Patterns that only a grant of exactly their text covers: a wider one was given for less.
	Exact []string `json:"exact,omitempty"`
	// Limits says for patterns of Always what they do not stand for, in words for the person: "git clean *" → "-f -x".
	Limits map[string]string `json:"limits,omitempty"`
	// ReadOnly are those of Patterns that are commands known to change nothing; see ReadOnlyCommands.
	ReadOnly []string `json:"readOnly,omitempty"`

	// AskIf weakens an ask that comes after another one of the same call; a deny counts always.
	AskIf AskIf `json:"-"`

	Title string `json:"title"` // one line for the person
	Why   string `json:"why"`   // why it is asked, for the person
	// MustAsk asks even when a rule allows (never when one denies): protected paths, opaque commands, loops.
	MustAsk bool `json:"mustAsk,omitempty"`
	// Followable: a change of files inside the project that can be undone; see GateOptions.Follow. MustAsk wins.
	Followable bool `json:"followable,omitempty"`
	// Named: only rules that name the permission itself allow it. A wildcard such as {"*": "allow"} was not written
	// with it in mind.
	Named bool `json:"named,omitempty"`
	// Added: the tool came from elsewhere (an MCP server, the project, the editor). Only rules that somebody wrote
	// allow it; Pillion's own defaults were not made with it in mind.
	Added    bool           `json:"added,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	// Change is the proposal that an edit asks about; nil for everything else.
	Change *change.Set `json:"-"`
}

// Remembers is what "always" would remember, for the person: each pattern with what it does not stand for.
func (r Request) Remembers() string {
	out := make([]string, len(r.Always))
	for i, pattern := range r.Always {
		out[i] = pattern
		if limits := r.Limits[pattern]; limits != "" {
			out[i] = strings.TrimSuffix(pattern, " *") + " without " + limits
		}
	}
	return strings.Join(out, ", ")
}

// AskIf says which rules may make a request ask.
type AskIf string

// Any rule that says ask, only those that name more than "*", or none.
const (
	AskIfAny      AskIf = ""
	AskIfSpecific AskIf = "specific"
	AskIfNone     AskIf = "none"
)

// ReplyKind is the person's answer.
type ReplyKind string

// OpenCode's three replies.
const (
	Once   ReplyKind = "once"
	Always ReplyKind = "always"
	Reject ReplyKind = "reject"
)

// Scope says how long an "always" lasts.
type Scope string

// Scopes, from short to long.
const (
	ScopeSession Scope = "session"
	ScopeProject Scope = "project"
	// ScopeEverywhere is every project of the person's. It is listed and revoked like a project's.
	ScopeEverywhere Scope = "everywhere"
)

// Reply is the answer to a Request.
type Reply struct {
	Kind    ReplyKind
	Scope   Scope  // with Always; empty is ScopeSession
	Message string // with Reject: words for the model
	// Decisions are the person's, hunk by hunk, on Request.Change; nil accepts or rejects the whole, as Kind says.
	Decisions *change.Decisions
	Asked     bool // a person answered (false: a rule did)
	// Unanswered: nobody could be asked, which counts as Reject.
	Unanswered bool
	Granted    bool // not asked, because of a remembered "always"
}

// Asker is the person. It returns the context's error when the question dies with its turn.
type Asker interface {
	AskPermission(ctx context.Context, r Request) (Reply, error)
}

// ErrDenied: a rule forbids it. ErrRejected: the person said no; without a message that ends the turn.
var (
	ErrDenied   = errors.New("denied by a permission rule")
	ErrRejected = errors.New("rejected by the person")
)

// RejectedError carries the person's words. errors.Is(err, ErrRejected) holds.
type RejectedError struct {
	Message    string
	Unanswered bool // nobody could be asked
}

func (e *RejectedError) Error() string {
	if e.Message == "" {
		return "The user rejected permission to use this specific tool call."
	}
	return "The user rejected permission to use this specific tool call with the following feedback: " + e.Message
}
func (e *RejectedError) Is(t error) bool { return t == ErrRejected }

// DeniedError carries the rules that matter. errors.Is(err, ErrDenied) holds.
type DeniedError struct {
	Permission, Pattern string
	Rule                Rule
}

func (e *DeniedError) Error() string {
	return "A permission rule denies " + e.Permission + " for " + e.Pattern + " (rule " + e.Rule.Permission + ": " + e.Rule.Pattern + " = deny, from " + e.Rule.Origin + "). Do it another way or ask the user to change the rule."
}
func (e *DeniedError) Is(t error) bool { return t == ErrDenied }
