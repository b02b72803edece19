// Package builtin holds Pillion's own tools, one file each, beside the description that the model reads (x.txt).
//
// Every tool that changes a file calls changes.propose, and propose writes through Writer; nothing else writes
// project files. Every path is passed to workspace, which decides whether it is inside the project and asks for approval
// if it is outside. Every command is passed to commands, which analyses it, asks for approval and runs it. Finding text,
// editing text and parsing commands are separate packages (search, replace, patch, shell); this package connects them to
// permissions and to the editor.
//
//	all := builtin.All(env) // in a stable order
package builtin

import (
	"context"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/skill"
)

// Env is what the tools of one session share.
type Env struct {
	Cwd      string   // session directory, absolute
	Root     string   // git worktree root, or Cwd without git: what counts as inside
	Extra    []string // additional directories that count as inside
	Own      []string // Pillion's own folders besides StateDir (configuration, keys): a write there always needs approval
	StateDir string   // spill files go to StateDir/tool-output
	Home     string   // the person's home folder, for protected paths; "": unknown

	Buffers files.Buffers // the editor's open documents; nil without an editor
	Tracker *files.Tracker
	Locks   *files.Locks
	Bridge  Bridge        // nil: no language servers
	Applier Applier       // nil: write to the disk
	Journal files.Journal // nil: a crash between two files of one change is not recovered; see files.DirJournal
	Format  Formatter     // nil: edits are not formatted
	Verdict VerdictMode   // how long an edit waits for its verdict, and whether a bad verdict makes it need approval
	Repairs *Repairs      // returns changes that introduce errors to the model once; nil: never

	Search *search.Searcher // nil: one with the default options
	Shell  BashOptions
	Web    WebOptions
	// Commands is notified before and after each command that may change files; nil: no notification.
	Commands CommandWatch

	SubAgents func() []tools.SubAgent // the agents that the task tool offers; nil: no agents
	Skills    *skill.Finder           // nil: no skills
}

// workspace returns the part that resolves paths and asks about those outside the project. This part and the two below
// are created for each tool. They hold only pointers to shared state (Tracker, Locks), so the copies do not diverge.
func (env Env) workspace() workspace {
	return workspace{Cwd: env.Cwd, Root: env.Root, Extra: env.Extra, Own: env.Own, StateDir: env.StateDir, Home: env.Home, Buffers: env.Buffers, Skills: env.Skills, Hidden: env.Shell.Hidden}
}

// changes returns the part that proposes changes of files and applies them.
func (env Env) changes() changes {
	w := NewWriter(env)
	return changes{workspace: env.workspace(), Tracker: env.Tracker, Bridge: env.Bridge, writer: w, checker: checker{Bridge: env.Bridge, mode: env.Verdict, present: w.Present}, repairs: env.Repairs}
}

// commands returns the part that analyses and runs commands.
func (env Env) commands() commands {
	return commands{workspace: env.workspace(), Tracker: env.Tracker, Bridge: env.Bridge, Shell: env.Shell.ready(), Watch: env.Commands}
}

// searcher returns the session's searcher, or one with the default options.
func (env Env) searcher() *search.Searcher {
	if env.Search != nil {
		return env.Search
	}
	return search.New(search.Options{})
}

// All returns the tools in the order in which the model gets them.
func All(env Env) []tools.Tool {
	// The four tools for commands must share one Background: bash_output looks there for the command that bash started.
	env.Shell = env.Shell.ready()
	all := []tools.Tool{
		Read(env), Write(env), Edit(env), MultiEdit(env), ApplyPatch(env), List(env), Glob(env), Grep(env),
		Bash(env), BashOutput(env), BashInput(env), BashKill(env),
		LSP(env), SymbolFind(env), SymbolRead(env), SymbolReplace(env), SymbolInsertBefore(env), SymbolInsertAfter(env), SymbolReferences(env), SymbolRename(env), SymbolDelete(env),
		TodoWrite(env), TodoRead(env), Task(env), Skill(env), Question(env), PlanEnter(env), PlanExit(env), Batch(env), Invalid(),
	}
	return append(all, webTools(env)...)
}

// Named reports whether one of Pillion's own tools has this name. A custom tool with the same name replaces it, and the
// person gets a notice. It calls All with an empty Env, so creating a tool must not use the Env; only a call may.
func Named(id string) bool {
	return slices.ContainsFunc(All(Env{}), func(t tools.Tool) bool { return t.ID == id })
}

// Bridge is what the tools need of the language servers; *lspbridge.Manager implements it. With a nil Bridge edits are
// not checked, and their results say so.
type Bridge interface {
	// Check gives the servers the proposed texts, compares the problems before and after, and gives them the real texts
	// again. It returns within the context's deadline.
	Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta
	// Changed gives the servers the texts that were written and waits for the problems of those versions.
	Changed(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta
	// Diagnostics returns the problems of one file as it is now.
	Diagnostics(ctx context.Context, path string) lspbridge.FileReport
	// Warm starts the servers for a file in the background.
	Warm(path string)
}

// Applier writes an accepted change set: to the editor's buffers (WorkspaceEdit) or to the disk.
type Applier interface {
	Apply(ctx context.Context, set *change.Set) error
}

// ApplyChecker is an Applier that can report before the review whether it would refuse a change, so that the person does
// not review a change that cannot be written. Apply must check again: files may change during the review.
type ApplyChecker interface {
	CanApply(set *change.Set) error
}

// VerdictWaiter is an Applier that sets how long the approval request for a change waits for its verdict. The wait is
// longer for clients that cannot update a request after it was sent. 0 means the default wait.
type VerdictWaiter interface {
	VerdictWait() time.Duration
}

// Formatter runs the configured formatter on a text; ok is false if no formatter is configured for the path.
type Formatter interface {
	Format(ctx context.Context, path, text string) (formatted string, name string, ok bool, err error)
}
