package agent

import (
	"context"
	"log/slog"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Options are what a Runtime is made of. The functions are called when a session starts or changes, never at New.
type Options struct {
	Store  *store.Store
	Models Models
	// Agents and Rules are the configuration's for a directory; Rules come after the defaults, before the agent's own.
	Agents func(cwd string) []Agent
	Rules  func(cwd string) permission.Ruleset
	// Switches are the configuration's tools switched on or off, for all agents; an agent's own come first. Nil: none.
	Switches func(cwd string) map[string]bool
	// Tools makes a session's tools, all of them; the loop offers those that fit agent and model.
	Tools func(ctx context.Context, s SessionInfo) ([]tools.Tool, error)
	// More are tools that come and go, such as those of MCP servers; asked before each step, so it must be quick. They
	// never stand in for one of Tools. Nil: none.
	More func(ctx context.Context, s SessionInfo) []tools.Tool
	// Find is a tool that More leaves out for want of room, by its name: a model may know it from before, as after a
	// restart. Nil: there are none.
	Find func(s SessionInfo, name string) (tools.Tool, bool)
	// Ended is called when a session was closed, by hand, with its deletion or with the runtime; it ends what the
	// session's tools left running. Nil: nothing to end.
	Ended func(sessionID string)
	// Instructions are extra system prompt blocks (AGENTS.md and the like). Nil: what Instructions finds.
	Instructions func(cwd string) []string
	// Notes are system prompt blocks besides the instructions: what connected servers say of their tools. Nil: none.
	Notes func(cwd string) []string
	// Pack makes of a change set what the store keeps of it: its long texts are kept elsewhere. Nil: the set itself.
	Pack func(state change.State, set *change.Set) *change.Set
	// Settle says what became of a change set, as stored, that was being written when a process died. Nil: it failed.
	Settle func(ctx context.Context, s SessionInfo, set *change.Set) change.State
	// Review is the review style of a directory where a session has none of its own. Nil: ReviewPreview.
	Review func(cwd string) string
	// Sketch is the tree of a directory for the system prompt, bounded; nil: none.
	Sketch func(ctx context.Context, cwd string) string
	// DefaultAgent is the agent of a directory's new sessions; nil or one that does not exist: DefaultAgent.
	DefaultAgent func(cwd string) string
	// Compaction says how a directory's sessions deal with a full context; nil: the defaults.
	Compaction func(cwd string) CompactionOptions
	// Depth is how deep sub-agents nest in a directory; nil: DefaultDepth.
	Depth func(cwd string) int
	// Extensions are what the person's own code adds in a directory; asked often, so it must be quick. Nil: nothing.
	Extensions func(cwd string) *Extensions
	// Enter may add to a prompt, or change it, when its turn has come and before it is stored. Nil: it stays as it is.
	Enter func(ctx context.Context, e Entering) []provider.Part
	// Mask hides the person's keys in a text that is about to become an event or part of a request. Nil: nothing is hidden.
	Mask func(cwd, text string) string
	// Tracing makes spans; nil: none.
	Tracing  *Tracing
	Hooks    []tools.Hook // around every tool call, the first outermost
	StateDir string       // long outputs go to StateDir/tool-output; empty: they are cut without a copy

	Asker     permission.Asker  // the person; Request.SessionID says whose question it is
	Questions tools.Questioner  // nil: nobody answers questions
	Grants    permission.Grants // permissions remembered for a project; nil: in the store
	Log       *slog.Logger
}

// Models finds a model by "provider/model"; the empty id is the default one of the directory.
type Models interface {
	Resolve(ctx context.Context, cwd, id string) (provider.Provider, provider.Model, error)
}

// SessionOptions start a session. Empty Agent is "build", empty Model the default one.
type SessionOptions struct {
	Cwd    string // absolute
	Extra  []string
	Title  string
	Agent  string
	Model  string
	Effort string
	Parent string
	Review string // ReviewPreview or ReviewFollow; empty: as configured
}

// Prompt is the person's message.
type Prompt struct {
	MessageID string // empty: made here
	Parts     []provider.Part
	Agent     string // for this turn only; empty: the session's
	Model     string // for this turn only; empty: the agent's, then the session's
	// Answered, when set, is closed once whoever asked has been told of the turn's end. The next turn waits for that,
	// briefly, so that nothing of it comes before.
	Answered <-chan struct{}
}
