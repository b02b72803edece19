// Package builtin holds Pillion's own tools, one file each, beside the description that the model reads (x.txt).
//
// Every tool that changes a file goes through changes.propose, and propose writes through Writer; nothing else writes
// project files. Every path goes through workspace, which decides what is inside the project and asks for the rest, and
// every command through commands, which analyses it, asks, and runs it. Finding text, editing text and parsing commands
// are packages of their own (search, replace, patch, shell); this one joins them to permission and to the editor.
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
	Own      []string // folders of Pillion itself besides StateDir, wherever the person keeps them: writes there are always asked
	StateDir string   // spill files go to StateDir/tool-output
	Home     string   // the person's home folder, for protected paths; empty: not known

	Buffers files.Buffers // the editor's open documents; nil without an editor
	Tracker *files.Tracker
	Locks   *files.Locks
	Bridge  Bridge        // nil: no language servers
	Applier Applier       // nil: straight to the disk
	Journal files.Journal // nil: no repair after a crash between two files; see files.DirJournal
	Format  Formatter     // nil: none
	Verdict VerdictMode   // how long an edit waits for its verdict, and whether it is asked for its sake
	Repairs *Repairs      // changes that introduce errors go back to the model once; nil: none does

	Search *search.Searcher // nil: one with the default options
	Shell  BashOptions
	Web    WebOptions
	// Commands hears of commands that may change files, before and after; nil: nobody does.
	Commands CommandWatch

	SubAgents func() []tools.SubAgent // who can be given a task; nil: nobody
	Skills    *skill.Finder           // nil: none
}

// workspace is the part that knows paths and asks about them. Parts are values made anew for each tool:
// they hold pointers to what is shared (Tracker, Locks), and nothing of their own.
func (env Env) workspace() workspace {
	return workspace{Cwd: env.Cwd, Root: env.Root, Extra: env.Extra, Own: env.Own, StateDir: env.StateDir, Home: env.Home, Buffers: env.Buffers, Skills: env.Skills}
}

// changes is the part that proposes changes of files and carries them out.
func (env Env) changes() changes {
	return changes{workspace: env.workspace(), Tracker: env.Tracker, Bridge: env.Bridge, writer: NewWriter(env), checker: checker{Bridge: env.Bridge, mode: env.Verdict}, repairs: env.Repairs}
}

// commands is the part that judges and runs commands.
func (env Env) commands() commands {
	return commands{workspace: env.workspace(), Tracker: env.Tracker, Bridge: env.Bridge, Shell: env.Shell.ready(), Watch: env.Commands}
}

// searcher is the session's, or one with the default options.
func (env Env) searcher() *search.Searcher {
	if env.Search != nil {
		return env.Search
	}
	return search.New(search.Options{})
}

// All lists the tools, in the order they are offered.
func All(env Env) []tools.Tool {
	// The four tools for commands must share one Background, or bash_output would not find what bash
	// started.
	env.Shell = env.Shell.ready()
	all := []tools.Tool{
		Read(env), Write(env), Edit(env), MultiEdit(env), ApplyPatch(env), List(env), Glob(env), Grep(env),
		Bash(env), BashOutput(env), BashInput(env), BashKill(env),
		LSP(env), SymbolFind(env), SymbolRead(env), SymbolReplace(env), SymbolInsertBefore(env), SymbolInsertAfter(env), SymbolReferences(env), SymbolRename(env), SymbolDelete(env),
		TodoWrite(env), TodoRead(env), Task(env), Skill(env), Question(env), PlanEnter(env), PlanExit(env), Batch(env), Invalid(),
	}
	return append(all, webTools(env)...)
}

// Named reports whether one of Pillion's own tools has this name; a custom tool of the same name
// replaces it, and is said to.
// Built on an empty Env: no tool may need anything of it before it is called.
func Named(id string) bool {
	return slices.ContainsFunc(All(Env{}), func(t tools.Tool) bool { return t.ID == id })
}

// Bridge is what the tools need of the language servers; *lspbridge.Manager implements it. A nil Bridge means that there are
// none: edits are then not checked and say so.
type Bridge interface {
	// Check overlays the proposal, diffs the problems and rolls back. It returns within the context's deadline.
	Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta
	// Changed tells the servers what is now on disk (or in the editor) and waits for the problems of those versions.
	Changed(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta
	// Diagnostics of one file as it is now.
	Diagnostics(ctx context.Context, path string) lspbridge.FileReport
	// Warm starts the servers for a file in the background.
	Warm(path string)
}

// Applier writes an accepted set where the person sees it: an editor's WorkspaceEdit, or the disk.
type Applier interface {
	Apply(ctx context.Context, set *change.Set) error
}

// ApplyChecker is an Applier that can say beforehand what it would refuse, so that no person reviews a
// change that cannot be written. It does not replace the refusal of Apply: files change while a
// question is open.
type ApplyChecker interface {
	CanApply(set *change.Set) error
}

// VerdictWaiter is an Applier that says how long the approval request for a change may wait for its verdict: longer
// where the person sees the request as it was sent and nothing that comes later. 0 is the usual wait.
type VerdictWaiter interface {
	VerdictWait() time.Duration
}

// Formatter runs the configured formatter on a text; ok is false where none is configured for the path.
type Formatter interface {
	Format(ctx context.Context, path, text string) (formatted string, name string, ok bool, err error)
}
