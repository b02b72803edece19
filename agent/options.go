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

// Options are the parts of a Runtime. New calls none of them; a session calls them when it needs them. A part that is nil is absent: it has
// no settings, tools or texts, and hides nothing.
type Options struct {
	Store         *store.Store // nil: a store in memory
	Models        Models
	Configuration Configuration
	Toolbox       Toolbox
	Project       ProjectContext // nil: the instruction files that Instructions finds, and nothing else
	Plugins       Plugins
	Changes       ChangeKeeper // nil: sets are stored whole, and after a crash an unfinished write counts as failed
	Drafts        Drafts       // nil: there are none
	Secrets       Secrets

	Asker     permission.Asker  // asks the person; Request.SessionID names the session
	Questions tools.Questioner  // nil: the question tool is not offered
	Grants    permission.Grants // permissions remembered for a project; nil: in Store
	Tracing   *Tracing          // nil: no spans
	Hooks     []tools.Hook      // around every tool call, the first outermost
	StateDir  string            // long outputs are saved in StateDir/tool-output; empty: the rest of a cut output is lost
	Log       *slog.Logger
}

// Configuration returns the settings of a directory. The loop calls it for each step and each permission request, so that a changed file
// takes effect at once; it must return quickly.
type Configuration interface {
	// Agents are configured agents, which change or add to DefaultAgents.
	Agents(cwd string) []Agent
	// Rules are ordered after permission.Default and before the agent's own.
	Rules(cwd string) permission.Ruleset
	// Switches say which tools all agents are offered; an agent's own switches win. The caller does not change the map.
	Switches(cwd string) map[string]bool
	Preferences(cwd string) Preferences
}

// Preferences are the settings of a directory that have one value each.
type Preferences struct {
	DefaultAgent string // of new sessions; the constant DefaultAgent when empty, unknown or not for people
	Review       string // the style of sessions without their own, one of ReviewStyles; empty: ReviewPreview
	ReviewFixed  string // place (file:line:column) where the machine's settings fix Review for every session; empty: not fixed
	Auto         bool   // "permission": "auto" is configured: sessions without a choice of their own have PermissionAuto
	NoAuto       bool   // the machine's settings forbid PermissionAuto, which then has no effect
	Compaction   CompactionOptions
	Depth        int // how deep sub-agents may nest; 0: none may run
}

// Toolbox makes the tools of a session.
type Toolbox interface {
	// Tools is called once for each session; the loop then offers those that fit the agent and the model.
	Tools(ctx context.Context, s SessionInfo) ([]tools.Tool, error)
	// More returns tools that come and go, such as those of MCP servers. It is called before each step. They never replace one of Tools.
	More(ctx context.Context, s SessionInfo) []tools.Tool
	// Find returns a tool that More left out because there are too many. A model may know its name from an earlier step.
	Find(s SessionInfo, name string) (tools.Tool, bool)
	// Release ends the processes that tools of a closed session have left running.
	Release(sessionID string)
}

// ProjectContext is what a model reads about a project besides the conversation.
type ProjectContext interface {
	// Instructions returns system prompt blocks: AGENTS.md and similar files.
	Instructions(cwd string) []string
	// Notes returns the system prompt blocks after the instructions: what connected servers say about their tools.
	Notes(cwd string) []string
	// Tree returns a bounded listing of the directory for the system prompt.
	Tree(ctx context.Context, cwd string) string
	// Mentioned returns the prompt's parts with the content of its mentions (@server:uri) added. The prompt is not stored yet.
	Mentioned(ctx context.Context, e Entering) []provider.Part
}

// Plugins returns the person's hooks and plugins.
type Plugins interface {
	// Extensions returns those of a directory; nil: there are none. It is called often, so the answer must be quick.
	Extensions(cwd string) *Extensions
	// Configure waits until what plugins change of a directory's settings is in force, or for some seconds at most.
	Configure(ctx context.Context, cwd string)
}

// ChangeKeeper keeps the texts of change sets beside the event log, which would otherwise grow with every changed file.
type ChangeKeeper interface {
	// Pack returns the set as the event log stores it: long texts are stored elsewhere and replaced by references.
	Pack(state change.State, set *change.Set) *change.Set
	// Recover compares the files with a stored set whose write was interrupted by a crash. It returns Applied or Failed.
	Recover(ctx context.Context, s SessionInfo, set *change.Set) change.State
}

// Secrets are the keys that the user has configured.
type Secrets interface {
	// Hide replaces the keys by HiddenKey in a text that becomes an event or a part of a request.
	Hide(cwd, text string) string
}

// absent implements each part that Options leave out, so that no code has to test a part for nil.
type absent struct{}

func (absent) Agents(string) []Agent                                    { return nil }
func (absent) Rules(string) permission.Ruleset                          { return nil }
func (absent) Switches(string) map[string]bool                          { return nil }
func (absent) Preferences(string) Preferences                           { return Preferences{Depth: DefaultDepth} }
func (absent) Tools(context.Context, SessionInfo) ([]tools.Tool, error) { return nil, nil }
func (absent) More(context.Context, SessionInfo) []tools.Tool           { return nil }
func (absent) Find(SessionInfo, string) (tools.Tool, bool)              { return tools.Tool{}, false }
func (absent) Release(string)                                           {}
func (absent) Instructions(cwd string) []string                         { return Instructions(cwd, Imports{}) }
func (absent) Notes(string) []string                                    { return nil }
func (absent) Tree(context.Context, string) string                      { return "" }
func (absent) Extensions(string) *Extensions                            { return nil }
func (absent) Configure(context.Context, string)                        {}
func (absent) Hide(_, text string) string                               { return text }

func (absent) Mentioned(_ context.Context, e Entering) []provider.Part { return e.Parts }

func (absent) Pack(_ change.State, set *change.Set) *change.Set { return set }

func (absent) Recover(context.Context, SessionInfo, *change.Set) change.State { return change.Failed }

// complete fills in absent parts.
func (o *Options) complete() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Store == nil {
		o.Store = store.New("")
	}
	if o.Configuration == nil {
		o.Configuration = absent{}
	}
	if o.Toolbox == nil {
		o.Toolbox = absent{}
	}
	if o.Project == nil {
		o.Project = absent{}
	}
	if o.Plugins == nil {
		o.Plugins = absent{}
	}
	if o.Changes == nil {
		o.Changes = absent{}
	}
	if o.Secrets == nil {
		o.Secrets = absent{}
	}
}

// Models finds a model by "provider/model"; the empty id is the default of the directory. The error tells a person what is missing: an
// unknown model, a provider without a key.
type Models interface {
	Resolve(ctx context.Context, cwd, id string) (provider.Provider, provider.Model, error)
}

// SessionOptions describe a session to start. An empty Agent is the default agent, an empty Model the agent's or the default one.
type SessionOptions struct {
	Cwd    string   // absolute; NewSession fails when it is not a directory
	Extra  []string // additional directories, absolute
	Title  string
	Agent  string
	Model  string
	Effort string
	Parent string
	Review string // one of ReviewStyles; empty: as configured
}

// Prompt is the person's message.
type Prompt struct {
	MessageID string // empty: the runner makes one
	Parts     []provider.Part
	Agent     string // for this turn only; empty: the session's
	Model     string // for this turn only; empty: the agent's, then the session's
	// Answered is closed once the caller has been told of the turn's end. The next turn waits for that, at most heardLimit, so that its
	// updates come after that answer. nil: it does not wait.
	Answered <-chan struct{}
	Limits   Limits
}

// Limits end a turn early; 0 means that this prompt sets no limit.
type Limits struct {
	Steps int     // model steps, where the agent allows more
	Cost  float64 // USD, sub-agents' included; checked after each step
}
