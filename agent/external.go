package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// ExternalAgent is a provider whose model is an agent of its own: a program with its own loop, tools and memory. One Prompt is a whole turn
// of that agent, and one step of Pillion's turn. While the agent works, its tool calls are run or shown through the ExternalTurn, so they
// pass the same gate, hooks, events and history as a model's calls.
type ExternalAgent interface {
	provider.Provider
	// Prompt sends the agent those messages of req that it has not seen, and returns when the agent's turn has ended. Text and usage go to
	// emit. Every failure is a *provider.Error of kind ErrAgent, or emit's own error.
	Prompt(ctx context.Context, req *provider.Request, turn *ExternalTurn, emit func(provider.Event) error) error
}

// ExternalModels is implemented by a Models that offers external agents.
type ExternalModels interface {
	// WritesItself reports whether the model is an external agent that changes files by itself. Its sessions work in a draft, whatever
	// their review style: no other style could show its changes before they are made.
	WritesItself(cwd, model string) bool
}

// isExternal reports whether a provider is an external agent.
func isExternal(via provider.Provider) bool {
	_, ok := via.(ExternalAgent)
	return ok
}

// conducted makes one turn of an external agent look like one answer of a model, so that retries, spans and cancellation deal only with
// providers.
type conducted struct {
	ExternalAgent
	turn *ExternalTurn
}

// Stream implements provider.Provider.
func (c conducted) Stream(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
	return c.Prompt(ctx, req, c.turn, emit)
}

// conduct wraps an external agent for this answer; other providers are returned unchanged.
func (a *answer) conduct(via provider.Provider) provider.Provider {
	x, ok := via.(ExternalAgent)
	if !ok {
		return via
	}
	return conducted{x, &ExternalTurn{a: a, own: map[string]*call{}}}
}

// ExternalTurn is what an external agent can do in the session while its turn runs. Its methods are safe for concurrent use. After the turn
// they do nothing or return an error.
type ExternalTurn struct {
	a *answer

	mu  sync.Mutex
	own map[string]*call // guarded by mu; the calls that the agent runs itself, by its own ids
}

// Session returns the session whose turn this is.
func (x *ExternalTurn) Session() *Session { return x.a.t.s }

// begin adds a call to the answer, marked as complete and started, so that the loop does not run it after the answer. After the turn it
// fails with errLeft.
func (x *ExternalTurn) begin(id string, input json.RawMessage, setUp func(*call)) (*call, error) {
	a := x.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errLeft
	}
	c := a.newCall(id, "")
	c.complete, c.started = true, true
	c.raw.set(input)
	if setUp(c); c.part {
		return c, nil
	}
	a.calls = append(a.calls, c)
	a.parts = append(a.parts, part{typ: provider.PartToolCall, call: c})
	return c, nil
}

// Naming returns the session's id of a call that the agent runs itself, that has not ended, and that names a file, by its absolute path; ""
// where there is none. Agents read and write a file through their client in the middle of such a call.
func (x *ExternalTurn) Naming(path string) (callID string) {
	return x.open(func(d *ToolData) bool {
		return slices.ContainsFunc(d.Locations, func(at tools.Location) bool { return filepath.Clean(at.Path) == path })
	})
}

// Called returns the session's id of a call that the agent runs itself, that has not ended, and that is one of the tool; "" where there is
// none. Agents show a call of an MCP server's tool under a name of their own that contains the tool's: mcp__pillion__lsp, pillion/lsp.
func (x *ExternalTurn) Called(tool string) (callID string) {
	return x.open(func(d *ToolData) bool { return strings.Contains(d.Tool, tool) || strings.Contains(d.Title, tool) })
}

// open returns the id of a call of the agent's own that has not ended and for which is holds; "" where there is none.
func (x *ExternalTurn) open(is func(*ToolData) bool) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.own {
		c.mu.Lock()
		found := !c.over && is(&c.data)
		c.mu.Unlock()
		if found {
			return c.id
		}
	}
	return ""
}

// Run runs a tool in the agent's name, and returns the final state of the call and the tool's error. within is the call of the agent's own
// that this is a part of: it is shown and stored instead, and questions are asked about it; "" makes a call by itself. update may be nil; it
// receives the progress of the tool. A rejection without a message ends the turn, as with a model; Rejected reports it.
func (x *ExternalTurn) Run(ctx context.Context, within string, tool tools.Tool, input json.RawMessage, update func(tools.Update)) (ToolData, error) {
	c, err := x.begin("", input, func(c *call) {
		if c.part = within != ""; c.part {
			c.id = within
		}
		c.offered = []tools.Tool{tool}
		c.resolve(tool.ID)
		c.heard = update
	})
	if err != nil {
		return ToolData{}, err
	}
	c.show(ToolPending)
	err = c.run(ctx)
	x.noteRejection(err)
	return c.snapshot(), err
}

// Show adds or updates a call that the agent runs itself, and returns the session's id of the call; "" after the turn. id is the agent's
// own id. change edits the latest state of the call; after a final status, further updates are dropped.
func (x *ExternalTurn) Show(id string, change func(*ToolData)) (callID string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.own[id]
	if c == nil {
		var err error
		if c, err = x.begin(id, nil, func(*call) {}); err != nil {
			return ""
		}
		x.own[id] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return c.id
	}
	change(&c.data)
	s := c.s
	c.data.Title, c.data.Output, c.data.Error = s.mask(c.data.Title), s.mask(c.data.Output), s.mask(c.data.Error)
	if c.data.Metadata != nil {
		c.data.Metadata = s.maskMetadata(c.data.Metadata)
	}
	c.name = c.data.Tool
	if len(c.data.Input) > 0 && c.raw.n == 0 {
		c.raw.set(c.data.Input)
	}
	switch c.data.Status {
	case ToolCompleted, ToolError:
		c.over, c.data.Ended = true, now()
	case ToolRunning:
		if c.data.Started.IsZero() {
			c.data.Started = now()
		}
	}
	s.emit(EventTool, c.data)
	return c.id
}

// Ask asks for approval of a call that the agent runs itself, by the session's rules and grants.
func (x *ExternalTurn) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	r.SessionID = x.a.t.s.ID()
	reply, err := x.a.t.s.gate.Ask(ctx, r)
	x.noteRejection(err)
	return reply, err
}

// Would returns how the rules and grants would decide a request, without asking the person.
func (x *ExternalTurn) Would(ctx context.Context, r permission.Request) permission.Action {
	r.SessionID = x.a.t.s.ID()
	return x.a.t.s.gate.Would(ctx, r)
}

// Question asks the person to choose an answer, as the question tool does. It fails with tools.ErrDismissed where no user is connected or
// the person gave no answer.
func (x *ExternalTurn) Question(ctx context.Context, callID string, q tools.Question) (string, error) {
	asker := x.a.t.s.questioner()
	if asker == nil {
		return "", tools.ErrDismissed
	}
	answers, err := asker.AskQuestions(ctx, &tools.Call{SessionID: x.a.t.s.ID(), MessageID: x.a.id, CallID: callID, Tool: "question"}, []tools.Question{q})
	if err != nil {
		return "", err
	}
	if len(answers) == 0 || len(answers[0]) == 0 {
		return "", tools.ErrDismissed
	}
	return answers[0][0], nil
}

// Plan replaces the session's todo list by the agent's plan.
func (x *ExternalTurn) Plan(ctx context.Context, todos []tools.Todo) error {
	return todoList{x.a.t.s.Head}.Set(ctx, todos)
}

// Rejected reports whether the person rejected a call of this turn without a message.
func (x *ExternalTurn) Rejected() bool { return x.a.t.rejected.Load() }

// noteRejection records a rejection without a message, which ends the turn.
func (x *ExternalTurn) noteRejection(err error) {
	if rejectedWithoutMessage(err) {
		x.a.t.rejected.Store(true)
	}
}
