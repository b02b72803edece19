// Package permission decides whether a tool call may run: rules say allow, ask or deny, and a Gate asks a person
// for the rest and remembers "always". It does not know what a tool, a file or an editor is: a caller names what it
// wants to do as a permission and patterns, and resolves symbolic links before it asks.
//
// The order is fixed, from the strongest to the weakest: a configured deny, a managed rule that asks, Request.MustAsk, a rule that
// allows, a grant, Follow, a plugin's advice, the person. Nothing that comes later overrules a deny.
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

// Rule is one line of a ruleset. Permission and Pattern take the wildcards * and ?, as Match reads them.
type Rule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     Action `json:"action"`
	Origin     string `json:"origin,omitempty"` // file:line, "default", "session", "project", "agent plan"
	// Managed: the rule is one that whoever manages the machine has made. It is a floor: the last such rule that matches and the last of
	// the others are both looked at, and the stricter one counts, in whatever order they are. Where it asks, only a person answers.
	Managed bool `json:"managed,omitempty"`
}

// Ruleset is in the order of the configuration layers, defaults first. The last matching rule wins, as in OpenCode, so a
// project or a person refines a general rule by a later one.
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
	// NoGrant are those of Patterns that a remembered "always" never covers: wrappers, shells, interpreters, which run anything.
	NoGrant []string `json:"noGrant,omitempty"`
	// Exact are those of Patterns that only a grant of exactly their text covers: a wider grant was given for a command that does
	// less, such as "git clean *" for one without -f.
	Exact []string `json:"exact,omitempty"`
	// Limits says for patterns of Always what they do not cover, for the person: "git clean *" → "-f -x".
	Limits map[string]string `json:"limits,omitempty"`
	// ReadOnly are those of Patterns that are commands known to change nothing; see ReadOnlyCommands.
	ReadOnly []string `json:"readOnly,omitempty"`

	// AskIf weakens an ask that comes after another one of the same call; a deny counts always.
	AskIf AskIf `json:"-"`

	Title string `json:"title"` // one line for the person
	Why   string `json:"why"`   // why it is asked, for the person
	// MustAsk asks even when a rule allows (never when one denies): protected paths, opaque commands, loops.
	MustAsk bool `json:"mustAsk,omitempty"`
	// Managed is where the managed rule is that asks, as file:line:column; the gate sets it. Only a person answers such a request: no
	// option of the command line, hook or plugin does.
	Managed string `json:"managed,omitempty"`
	// Followable marks a change of files inside the project, which can be undone; see GateOptions.Follow. MustAsk is stronger.
	Followable bool `json:"followable,omitempty"`
	// Named says that only rules which name the permission itself allow it: a wildcard such as {"*": "allow"} was not written with it
	// in mind.
	Named bool `json:"named,omitempty"`
	// Added says that the tool is not Pillion's (an MCP server, the project, the editor added it). Only configured rules allow it;
	// Pillion's defaults were not made with it in mind.
	Added    bool           `json:"added,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	// Change is the proposal that an edit asks about; nil for everything else.
	Change *change.Set `json:"-"`
}

// Remembers is what "always" would remember, as text for the approval request: each pattern with the options it does not
// cover, because the person decides by this text and not by the pattern.
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

// AskIfAny lets any rule that says ask make the request ask; AskIfSpecific only a rule whose pattern is not "*"; with
// AskIfNone no rule does. A call that was approved as a command is not asked once more for each file it names, unless
// somebody wrote a rule for such files.
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
	// Unanswered says that no user could answer, which counts as Reject. Message says why.
	Unanswered bool
	Granted    bool // not asked, because of a remembered "always"
}

// Asker shows an approval request to a person and returns the decision. The context ends when the turn is cancelled or
// another window has answered: the Asker then closes its prompt and returns the context's error.
type Asker interface {
	AskPermission(ctx context.Context, r Request) (Reply, error)
}

// ErrDenied matches a *DeniedError, ErrRejected a *RejectedError. A rejection without a message ends the turn: the
// person gave the model nothing to continue with. A denial does not, because the model can choose another way.
var (
	ErrDenied   = errors.New("denied by a permission rule")
	ErrRejected = errors.New("rejected by the person")
)

// RejectedError carries the person's words, which the model reads. errors.Is(err, ErrRejected) holds. Its text is the one
// that OpenCode's prompts and models know.
type RejectedError struct {
	Message    string
	Unanswered bool // no user could answer; Message then says why
}

// NoUser is the error of a request that a person would have to answer where none can. why says what is missing, for example
// "no editor is connected to this session". It is one text for all hosts, because models act on it: they must neither look
// for a way around the question nor give up the rest of the work.
func NoUser(permission, why string) *RejectedError {
	return &RejectedError{Unanswered: true, Message: permission + " needs approval, but no user can answer (" + why +
		"). Do not try it another way: continue with what needs no approval, and say at the end what you would have done."}
}

// Error is the text that the model reads.
func (e *RejectedError) Error() string {
	if e.Unanswered {
		return e.Message // no person rejected it
	}
	if e.Message == "" {
		return "The user rejected permission to use this specific tool call."
	}
	return "The user rejected permission to use this specific tool call with the following feedback: " + e.Message
}

// Is matches ErrRejected.
func (e *RejectedError) Is(t error) bool { return t == ErrRejected }

// DeniedError carries the rule that denied, so that the model and the person see where to change it.
// errors.Is(err, ErrDenied) holds.
type DeniedError struct {
	Permission, Pattern string
	Rule                Rule
}

// Error is the text that the model reads; it has the rule and its origin, so that the model can tell the user where to change it.
func (e *DeniedError) Error() string {
	return "A permission rule denies " + e.Permission + " for " + e.Pattern + " (rule " + e.Rule.Permission + ": " + e.Rule.Pattern + " = deny, from " + e.Rule.Origin + "). Do it another way or ask the user to change the rule."
}

// Is matches ErrDenied.
func (e *DeniedError) Is(t error) bool { return t == ErrDenied }
