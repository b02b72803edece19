// Package external makes agents of other makers models of Pillion: Claude Code, Codex, Gemini, OpenCode, or any program that speaks the
// Agent Client Protocol. Pillion is the client of such a program. What it asks its client to read, write or run becomes a call of our own
// tools, so permission, review, verdicts, checkpoints and undo are those of Pillion's agent. What it does by itself happens where
// Place starts it: in a draft, whose changes are one proposal at the end of the turn.
//
// The package knows the protocol and the life of the processes. It leaves to others where a process runs, what tools do, and signing in:
// an agent signs in with its maker's own program, and its keys and tokens are neither read nor stored.
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

// ProviderID is the provider of external agents: their models are acp/claude, acp/codex …
const ProviderID = "acp"

// Agent is an external agent as it is configured.
type Agent struct {
	ID      string // as in acp/ID
	Name    string // for people
	Command []string
	Env     map[string]string // added to the environment of its process
	// Keys names variables of the environment that it may have although they hold keys, because its own sign-in reads them.
	Keys []string
	// Asks means that it changes files and runs commands only by asking its client, so that each change is reviewed before it is made. Any
	// other agent works in a draft.
	Asks    bool
	Folders []string     // where it keeps its own state, absolute; it may write there
	SignIn  string       // what a person runs to sign in
	Reason  guard.Reason // the setting that names the command
}

// Model is the agent as a model. Its window is not known here and no business of ours: it keeps its own conversation.
func (a Agent) Model() provider.Model {
	return provider.Model{Provider: ProviderID, ID: a.ID, Name: a.Name, Images: true}
}

// Process is an agent's program before it is started.
type Process struct {
	// Cwd is the session's folder as the program finds it.
	Cwd string
	// Held means that what the program writes in the project is kept apart, and reviewed later.
	Held bool
	// Start starts it. env is added to its environment; stderr gets what it writes to standard error.
	Start func(ctx context.Context, env []string, stderr io.Writer) (Program, error)
	// Worked is called when the agent may have changed files: after each call of its own, and at the end of a prompt; nil: nothing is to be
	// noted then.
	Worked func()
}

// Program is a running program: its standard input, its output and its end.
type Program interface {
	io.WriteCloser
	Output() io.ReadCloser
	Exited() <-chan struct{}
	Err() error // how it ended, once Exited is closed
	Kill()      // it does not wait
}

// Place decides where agents run.
type Place interface {
	Process(ctx context.Context, s agent.SessionInfo, a Agent) (*Process, error)
}

// Tools are the tools that carry out the requests of an agent.
type Tools struct{ Read, Write, Bash, AskCommand tools.Tool }

// Options are what Agents is made of.
type Options struct {
	Place   Place
	Tools   func(s agent.SessionInfo) Tools
	Dir     string // where the agents' session ids are kept; empty: they are forgotten at the end
	Version string
	Log     *slog.Logger // nil: nothing is logged
	// Servers are the MCP servers that an agent gets for a session, as session/new has them; nil: none.
	Servers func(s agent.SessionInfo) []any
}

// Agents are the running external agents, one process for each session that has one.
type Agents struct {
	o Options

	mu   sync.Mutex
	live map[string]*link // guarded by mu; by session
}

// New starts nothing.
func New(o Options) *Agents {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Agents{o: o, live: map[string]*link{}}
}

// Provider is an agent as a provider of one model.
func (x *Agents) Provider(a Agent) provider.Provider { return &Provider{agents: x, agent: a} }

// Provider implements agent.ExternalAgent.
type Provider struct {
	agents *Agents
	agent  Agent
}

var _ agent.ExternalAgent = (*Provider)(nil)

// Stream implements provider.Provider for callers that have no session to run an agent in, such as a request for a title.
func (p *Provider) Stream(context.Context, *provider.Request, func(provider.Event) error) error {
	return failure("%s is an agent: it works in a session, and cannot answer a single request; choose another model for this", p.agent.Name)
}

// Forget implements provider.Forgetter: it ends the session's process.
func (x *Agents) Forget(session string) {
	x.mu.Lock()
	l := x.live[session]
	delete(x.live, session)
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
}

// failure is an error of an agent, for a person.
func failure(format string, a ...any) *provider.Error {
	err := fmt.Errorf(format, a...)
	return &provider.Error{Kind: provider.ErrAgent, Message: err.Error(), Err: err}
}

// link returns the session's running agent, and starts it when there is none, or another one, or one that has ended.
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

// memory is what is kept of a session's conversation with an agent, so that a new process can go on with it.
type memory struct {
	Agent   string `json:"agent"`
	Session string `json:"session"` // the agent's own id
	Cwd     string `json:"cwd"`     // as the agent knows it; another folder is another conversation for most agents
	// Seen is the id of the last message that the agent was given.
	Seen string `json:"seen"`
}

// file is where a session's memory is kept; "" without Options.Dir. Ids of sessions are made by Pillion and have no separators.
func (x *Agents) file(session string) string {
	if x.o.Dir == "" {
		return ""
	}
	return filepath.Join(x.o.Dir, filepath.Base(session)+".json")
}

// remembered reads a session's memory; the zero value where there is none, or one of another agent.
func (x *Agents) remembered(session string, a Agent) (m memory) {
	b, err := os.ReadFile(x.file(session))
	if err != nil || json.Unmarshal(b, &m) != nil || m.Agent != a.ID {
		return memory{}
	}
	return m
}

// remember keeps m. A failure is logged only: the conversation goes on, and the next process is told of it in words.
func (x *Agents) remember(session string, m memory) {
	path := x.file(session)
	if path == "" {
		return
	}
	b, err := json.Marshal(m)
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = whole.Write(path, b, 0o600)
		}
	}
	if err != nil {
		x.o.Log.Warn("keeping an agent's session", "file", path, "err", err)
	}
}
