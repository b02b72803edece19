// Package worker runs Pillion's own tools in a process inside a draft's view (see package draft). For approvals and language servers
// the worker asks the process that started it, the host, over its standard input and output. Permission rules and grants stay in the
// host: a worker decides nothing.
//
//	cmd, err := d.Command("/proc/self/exe", worker.Arg)
//	c, err := worker.Start(ctx, cmd, worker.Settings{Cwd: dir, Root: root}, worker.Host{Bridge: servers})
//	r, err := c.Call(ctx, "bash", input, call)
//	read := c.Close()
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

// Arg is the first argument that makes this program a worker. The program's main calls Main for it.
const Arg = "__worker"

// RelayArg is the first argument that makes this program a relay, see Client.Start. The program's main calls Relay for it.
const RelayArg = "__inside"

// maxMessage bounds one message in both directions, in bytes. It is far above the largest file that a tool changes, counted several times
// (before, after, JSON escapes): it stops a runaway process and is not a budget.
const maxMessage = 512 << 20

// Settings are what the worker builds its tools from. The host reads them from the configuration outside of the draft: a command must not
// be able to loosen them by writing configuration files in the draft.
type Settings struct {
	// Cwd, Root, Own, StateDir and Home are those of builtin.Env, as the program in the view finds them.
	Cwd, Root string
	Own       []string
	StateDir  string
	Home      string
	Shell     string
	Sandbox   Sandbox
	Programs  map[string]string // the person's own program records, the source of programs.NewSet
	Ripgrep   string
	Format    *builtin.FormatOptions // nil: no formatters
	Skills    skill.Places
	Servers   bool              // the host has language servers
	MoreEnv   bool              // the host has more environment for commands
	Launches  bool              // set by Start: Client.Start uses the worker
	Read      map[string]string // files that the session has read before, as files.Tracker.States returns them
}

// Sandbox is builtin.SandboxSettings without its functions, which cannot be sent; ByEffects is what its Auto returned at the start.
type Sandbox struct {
	// Draft means that the person has set no sandbox mode. Where the system has a sandbox, it then confines commands to the draft, and they
	// need no approval. The worker probes for one at the first command, as the probe starts processes.
	Draft                         bool
	Mode                          string
	Network, AutoAllow, ByEffects bool
	Writable                      []string
	Processes                     int
}

// Host is what a worker may ask of the process that started it. Nothing else of that process is reachable from a draft.
type Host struct {
	Bridge builtin.Bridge // nil: no language servers
	// Queries returns the servers to ask about the draft as it is now, the best first: the next one is asked if one fails. nil: only the
	// requests of Bridge are answered.
	Queries func() []builtin.Queries
	// Texts returns the draft's changed files, which the servers see in place of the project's for each query; nil: none.
	Texts func() []lspbridge.Proposal
	// Environ returns the variables that plugins add to a command's environment, by name; nil: none. dir is the command's folder.
	Environ func(ctx context.Context, dir string, call *tools.Call) map[string]string
}

// The methods from the host to the worker. They are internal: both sides are always the same build, see draft.Arg.
const (
	methodSetup  = "setup"
	methodCall   = "call"
	methodCancel = "cancel" // notification
	methodClose  = "close"
)

// The methods from the worker to the host.
const (
	methodAsk      = "ask"
	methodWould    = "would"
	methodRules    = "rules"
	methodUpdate   = "update" // notification
	methodEnviron  = "environ"
	methodServers  = "servers"
	methodQuestion = "question"
)

// callParams is one tool call. Key identifies it in both directions: the Client counts its calls, so a key is never used twice. CallID is
// the model's and may repeat.
type callParams struct {
	Key       int64           `json:"key"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
	SessionID string          `json:"sessionID"`
	MessageID string          `json:"messageID,omitempty"`
	CallID    string          `json:"callID"`
	Agent     string          `json:"agent,omitempty"`
}

// callAnswer is what a tool returned. A tool's error is in Error and not an error of the connection: a failed call may have output too.
type callAnswer struct {
	Result tools.Result `json:"result"`
	Error  *wireError   `json:"error,omitempty"`
}

// askParams carries an approval request and the AskIf that its own JSON leaves out. Its change set is not sent: in a draft an edit is not
// reviewed by itself, but with the whole draft.
type askParams struct {
	Key     int64              `json:"key"`
	Request permission.Request `json:"request"`
	AskIf   permission.AskIf   `json:"askIf,omitempty"`
}

// request is the approval request with AskIf restored.
func (p askParams) request() permission.Request {
	r := p.Request
	r.AskIf = p.AskIf
	return r
}

// askAnswer is the gate's decision; a rejection is in Error.
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
	Sent   []problem            `json:"sent,omitempty"` // the problems of Report with their Raw, which Report's JSON leaves out
}

// wireError is an error on the wire. It keeps what the receiver's decisions depend on: a person's rejection, a denial by a rule, a
// cancellation, and the kind of a tools.Error. Of any other error only the text arrives.
type wireError struct {
	Text     string                    `json:"text"`
	Kind     string                    `json:"kind,omitempty"` // of a tools.Error
	Rejected *permission.RejectedError `json:"rejected,omitempty"`
	Denied   *permission.DeniedError   `json:"denied,omitempty"`
	Canceled bool                      `json:"canceled,omitempty"`
	NotAble  bool                      `json:"notAble,omitempty"` // lspbridge.ErrUnsupported
}

// toWire converts an error for the wire; nil stays nil. A BusyError crosses as a tools.Error of kind "busy".
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

// err rebuilds the error: errors.Is and errors.As find the types that wireError keeps, as they did on the other side.
func (w *wireError) err() error {
	if w == nil {
		return nil
	}
	var cause error
	switch {
	// The most specific one first: an error can hold both a rejection and the cancellation that followed it.
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
