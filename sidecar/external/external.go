// Package external offers agents of other makers as models of Pillion: Claude Code, Codex, Gemini, OpenCode, or any program that speaks the
// Agent Client Protocol (ACP). Pillion is the ACP client of such a program. When the agent asks its client to read, write or run something,
// the package carries that out as a call of Pillion's own tools, so permissions, review, verdicts, checkpoints and undo work as with
// Pillion's own agent. What the agent does without asking happens where Place started it: in a draft, whose changes become one proposal at
// the end of the turn.
//
// The package knows the protocol and the lifetime of the processes. It leaves to others where a process runs, what tools do, and signing
// in: a person signs in with the maker's own program, and this package neither reads nor stores its tokens; it only passes on the
// environment variables in Agent.Keys.
//
//	agents := external.New(external.Options{Place: place, Tools: toolsOf, Dir: state + "/agents"})
//	var model provider.Provider = agents.Provider(external.Agent{ID: "claude", Command: []string{"claude-agent-acp"}})
package external

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/whole"
)

// ProviderID is the provider id of all external agents: the agent claude is the model acp/claude.
const ProviderID = "acp"

// Agent is an external agent as it is configured.
type Agent struct {
	ID      string // the part of the model's name after acp/
	Name    string // for people
	Command []string
	Env     map[string]string // added to the environment of its process
	// Keys names environment variables that the process keeps although they hold keys, because the agent signs in with them. guard removes
	// all other keys from the environment of a child.
	Keys []string
	// Contained and ContainedEnv are arguments and environment variables for a place with a sandbox, where the agent's own sandbox could not
	// start inside ours.
	Contained    []string
	ContainedEnv map[string]string
	// Asking names for a mode that new conversations begin in by the agent's own choice the mode that they begin in here, because in the agent's
	// choice it decides itself which commands run, and Pillion's rules are not asked. The person can choose any mode of the agent.
	Asking map[string]string
	// Meta is the _meta of session/new, which ACP leaves to the agents.
	Meta map[string]any
	// Asks means that the agent changes files and runs commands only by asking its client, so each change is reviewed before it is made.
	// Any other agent changes files by itself and therefore works in a draft.
	Asks    bool
	Folders []string     // absolute paths of the agent's own state; it may write there
	SignIn  string       // the command that a person runs to sign in
	Reason  guard.Reason // the setting that names the command
}

// Model returns the agent as a model. It has no context window: the agent keeps and compacts its own conversation.
func (a Agent) Model() provider.Model {
	return provider.Model{Provider: ProviderID, ID: a.ID, Name: a.Name, Images: true}
}

// Process is an agent's program before it is started.
type Process struct {
	// Cwd is the session's folder as the program sees it; inside a draft the path may differ from the one outside.
	Cwd string
	// Held means that what the program writes in the project goes to a draft and is reviewed later.
	Held bool
	// Start starts the program. env is added to its environment; stderr receives what the program writes to standard error.
	Start func(ctx context.Context, env []string, stderr io.Writer) (Program, error)
	// Worked is called when the agent may have changed files: after each call that it ran itself, and at the end of a prompt. nil: there is
	// no draft to record changes in.
	Worked func()
}

// Program is a running program: its standard input, its output and its end.
type Program interface {
	io.WriteCloser
	Output() io.ReadCloser
	Exited() <-chan struct{}
	Err() error // how it ended; valid once Exited is closed
	Kill()      // does not wait for the end
}

// Place decides where agents run. Process fails when the agent may not run in this session, such as in a folder that is not trusted.
type Place interface {
	Process(ctx context.Context, s agent.SessionInfo, a Agent) (*Process, error)
}

// Tools are the tools that carry out the requests of an agent. AskCommand only asks for approval of a command that the agent then runs
// itself.
type Tools struct{ Read, Write, Bash, AskCommand tools.Tool }

// Options configure Agents.
type Options struct {
	Place   Place
	Tools   func(s agent.SessionInfo) Tools
	Lent    func(s agent.SessionInfo) []tools.Tool // offered to the agent over MCP
	Dir     string                                 // folder for the files of memory; empty: no conversation outlives its process
	Version string
	Log     *slog.Logger // nil: nothing is logged
	// MenuChanged is called when a session's Menu has changed. It may call Menu and must not wait. nil: nobody shows the menu.
	MenuChanged func(session string)
}

// Agents are the running external agents, one process for each session that has one.
type Agents struct {
	o    Options
	lend lender

	mu    sync.Mutex
	live  map[string]*link // guarded by mu; by session
	menus map[string]menu  // guarded by mu; by session

	changing sync.Mutex // held while a menu changes, before mu
}

// New returns an Agents without processes: each starts at the first prompt of its session.
func New(o Options) *Agents {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Agents{o: o, live: map[string]*link{}, menus: map[string]menu{}}
}

// Provider returns a provider whose only model is the agent.
func (x *Agents) Provider(a Agent) provider.Provider { return &Provider{agents: x, agent: a} }

// Provider implements agent.ExternalAgent.
type Provider struct {
	agents *Agents
	agent  Agent
}

var _ agent.ExternalAgent = (*Provider)(nil)

// Stream implements provider.Provider for callers that have no session to run an agent in, such as a request for a title. It always fails.
func (p *Provider) Stream(context.Context, *provider.Request, func(provider.Event) error) error {
	return failure("%s is an agent: it works in a session, and cannot answer a single request; choose another model for this", p.agent.Name)
}

// Forget implements provider.Forgetter: it ends the session's process.
func (x *Agents) Forget(session string) {
	x.mu.Lock()
	l := x.live[session]
	delete(x.live, session)
	delete(x.menus, session) // it is stored
	x.mu.Unlock()
	if l != nil {
		l.stop()
	}
}

// Close ends all processes.
func (x *Agents) Close() {
	x.mu.Lock()
	live := x.live
	x.live = map[string]*link{}
	x.mu.Unlock()
	var wait sync.WaitGroup
	for _, l := range live {
		wait.Go(l.stop)
	}
	wait.Wait()
	x.lend.close()
}

// failure makes an error for a person. Its kind ErrAgent is what agent.ExternalAgent promises for every failure.
func failure(format string, a ...any) *provider.Error {
	err := fmt.Errorf(format, a...)
	return &provider.Error{Kind: provider.ErrAgent, Message: err.Error(), Err: err}
}

// link returns the session's running agent. It starts the agent when none runs, when the running one has ended, or when the session's model
// is a different agent than before.
func (x *Agents) link(ctx context.Context, a Agent, s agent.SessionInfo) (*link, error) {
	x.mu.Lock()
	l := x.live[s.ID]
	x.mu.Unlock()
	if l != nil && l.agent.ID == a.ID && l.alive() {
		return l, nil
	}
	if l != nil {
		x.Forget(s.ID)
	}
	l, err := x.start(ctx, a, s)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.live[s.ID] = l
	x.mu.Unlock()
	return l, nil
}

// memory is what is stored of a session's conversation with an agent, so that a new process can continue it.
type memory struct {
	Agent   string `json:"agent"`
	Session string `json:"session"` // the agent's own id
	Cwd     string `json:"cwd"`     // the folder that the agent was given; most agents find a conversation only in its own folder
	// Seen is the id of the last message that the agent was given; the next prompt begins after it.
	Seen string `json:"seen"`
}

// file returns the path of what is stored under a name, a session's id; "" without Options.Dir. filepath.Base only guards against a
// separator: Pillion makes these ids and they have none.
func (x *Agents) file(name string) string {
	if x.o.Dir == "" {
		return ""
	}
	return filepath.Join(x.o.Dir, filepath.Base(name)+".json")
}

// load reads what is stored under a name into v, and leaves v as it is where there is nothing that can be read.
func (x *Agents) load(name string, v any) {
	if b, err := os.ReadFile(x.file(name)); err == nil {
		_ = json.Unmarshal(b, v)
	}
}

// remembered reads a session's memory. It returns the zero value where there is none, where it cannot be read, or where it belongs to
// another agent.
func (x *Agents) remembered(session string, a Agent) (m memory) {
	if x.load(session, &m); m.Agent != a.ID {
		return memory{}
	}
	return m
}

// store keeps v under a name. A failure is only logged: the conversation continues, and only the next process has to be told in words what
// was said, or has the agent's own choices.
func (x *Agents) store(name string, v any) {
	path := x.file(name)
	if path == "" {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = whole.Write(path, b, 0o600)
		}
	}
	if err != nil {
		x.o.Log.Warn("keeping an agent's session", "file", path, "err", err)
	}
}
