// Package worker runs Pillion's own tools inside a draft's view. The tools' process sees the project as the draft has it; what
// needs the person or the language servers is asked of the process that started it, over the worker's standard input and
// output. The gate, its rules and its grants stay there: a worker decides nothing.
//
//	cmd, err := d.Command("/proc/self/exe", worker.Arg)
//	c, err := worker.Start(ctx, cmd, worker.Settings{Cwd: dir, Root: root}, worker.Host{Bridge: servers})
//	r, err := c.Call(ctx, "bash", input, call)
//	err = c.Close()
package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/skill"
)

// Arg is the first argument of the process that serves tools in a view. The program's main hands over to Main.
const Arg = "__worker"

// maxMessage bounds one message, in bytes: the largest file a tool changes, several times (before, after, escaped). It is a guard
// against a process gone wild and not a budget; both sides use it.
const maxMessage = 512 << 20

// Settings are what the tools of a worker are made of. They come from the person's configuration as it is outside: a draft
// must not be able to loosen them by writing configuration files.
type Settings struct {
	// Cwd, Root, Own, StateDir and Home are those of builtin.Env, as the program in the view finds them.
	Cwd, Root string
	Own       []string
	StateDir  string
	Home      string
	Shell     string
	Sandbox   Sandbox
	Programs  map[string]string // the person's own records of programs
	Ripgrep   string
	Format    *builtin.FormatOptions // nil: no formatters
	Skills    skill.Places
	Servers   bool              // the host has language servers
	MoreEnv   bool              // the host has more environment for commands
	Read      map[string]string // files that the session knows from before; see files.Tracker.States
}

// Sandbox is builtin.SandboxSettings without its functions, which cannot be sent; ByEffects is what Auto returned at the start.
type Sandbox struct {
	// Draft: the person has set no mode. Commands are held in the draft by the sandbox where the system has one, and not asked about
	// then. The worker looks for it at the first command, as that takes processes of its own.
	Draft                         bool
	Mode                          string
	Network, AutoAllow, ByEffects bool
	Writable                      []string
	Processes                     int
}

// Host is what a worker may ask of the process that started it. Nothing else of that process can be reached from a draft.
type Host struct {
	Bridge  builtin.Bridge  // nil: no language servers
	Queries builtin.Queries // nil: the servers are asked for problems only
	// Texts are the draft's own, which Queries are answered about; nil: none.
	Texts func() []lspbridge.Proposal
	// Environ is the environment that plugins add to a command, by name; nil: none.
	Environ func(ctx context.Context, dir string, call *tools.Call) map[string]string
}

// The methods, from the host to the worker …
const (
	methodSetup  = "setup"
	methodCall   = "call"
	methodCancel = "cancel" // notification
	methodClose  = "close"
)

// … and back.
const (
	methodAsk      = "ask"
	methodWould    = "would"
	methodUpdate   = "update" // notification
	methodEnviron  = "environ"
	methodServers  = "servers"
	methodQuestion = "question"
)

// callParams is one tool call. Key names it in both directions; it is the Client's own count and is never used twice.
type callParams struct {
	Key       int64           `json:"key"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
	SessionID string          `json:"sessionID"`
	MessageID string          `json:"messageID,omitempty"`
	CallID    string          `json:"callID"`
	Agent     string          `json:"agent,omitempty"`
}

// callAnswer is what a tool returned. A failed call may have output too.
type callAnswer struct {
	Result tools.Result `json:"result"`
	Error  *wireError   `json:"error,omitempty"`
}

// askParams carries a request with what its own JSON leaves out. The change set stays: nothing is written outside the draft.
type askParams struct {
	Key     int64              `json:"key"`
	Request permission.Request `json:"request"`
	AskIf   permission.AskIf   `json:"askIf,omitempty"`
}

// request is the request as the worker's tool made it, with AskIf in its place.
func (p askParams) request() permission.Request {
	r := p.Request
	r.AskIf = p.AskIf
	return r
}

// askAnswer is the gate's decision. A rejection is in Error.
type askAnswer struct {
	Reply permission.Reply `json:"reply"`
	Error *wireError       `json:"error,omitempty"`
}

// updateParams is progress of a call: title, metadata, locations.
type updateParams struct {
	Key    int64        `json:"key"`
	Update tools.Update `json:"update"`
}

// environParams asks for the environment that plugins add to a command in Dir.
type environParams struct {
	Key int64  `json:"key"`
	Dir string `json:"dir"`
}

// serversParams is a question to the language servers.
type serversParams struct {
	Op    string               `json:"op"` // check, changed, diagnostics, warm
	Files []lspbridge.Proposal `json:"files,omitempty"`
	Path  string               `json:"path,omitempty"`
	Wait  int64                `json:"wait,omitempty"` // milliseconds until the context's deadline; 0: none
}

// serversAnswer has Delta or Report set, depending on serversParams.Op.
type serversAnswer struct {
	Delta  lspbridge.Delta      `json:"delta"`
	Report lspbridge.FileReport `json:"report"`
	Sent   []problem            `json:"sent,omitempty"` // the report's problems, in full
}

// wireError keeps of an error what the other side decides by: whether the person rejected it, a rule denied it, the
// call was cancelled, and the kind of a tools.Error. Other types arrive as their text alone.
type wireError struct {
	Text     string                    `json:"text"`
	Kind     string                    `json:"kind,omitempty"` // of a tools.Error
	Rejected *permission.RejectedError `json:"rejected,omitempty"`
	Denied   *permission.DeniedError   `json:"denied,omitempty"`
	Canceled bool                      `json:"canceled,omitempty"`
	NotAble  bool                      `json:"notAble,omitempty"` // lspbridge.ErrUnsupported
}

// toWire is nil for no error; the other side then gets no error either.
func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Text: err.Error(), Canceled: errors.Is(err, context.Canceled), NotAble: errors.Is(err, lspbridge.ErrUnsupported)}
	var busy *lspbridge.BusyError
	if errors.As(err, &busy) {
		w.Kind = "busy"
	}
	var known *tools.Error
	if errors.As(err, &known) {
		w.Kind = known.Kind
	}
	_ = errors.As(err, &w.Rejected)
	_ = errors.As(err, &w.Denied)
	return w
}

// err is the error again: errors.Is and errors.As find what they found on the other side.
func (w *wireError) err() error {
	if w == nil {
		return nil
	}
	var cause error
	switch {
	// The most specific first: an error can be both a rejection and the cancellation that followed it.
	case w.Rejected != nil:
		cause = w.Rejected
	case w.Denied != nil:
		cause = w.Denied
	case w.Canceled:
		cause = context.Canceled
	case w.NotAble:
		w.Kind, cause = "unsupported", lspbridge.ErrUnsupported
	}
	switch {
	case w.Kind != "":
		return &tools.Error{Kind: w.Kind, Message: w.Text, Err: cause}
	case cause != nil:
		return cause
	}
	return errors.New(w.Text)
}
