package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

//go:embed bash.txt
var bashText string

// bashParams has the names of OpenCode's tool, plus Background and PTY. Timeout is in milliseconds, and a pointer, because 0 is refused
// and a missing one is not.
type bashParams struct {
	Command     string `json:"command"`
	Timeout     *int   `json:"timeout,omitempty"`
	Workdir     string `json:"workdir,omitempty" jsonschema:"instead of cd"`
	Description string `json:"description,omitempty"`
	Background  bool   `json:"background,omitempty"`
	PTY         bool   `json:"pty,omitempty"`

	// Not a parameter: only the sandboxed variant of the tool offers it (bash_sandbox.go).
	unsandboxed bool
}

// defaultTimeout is OpenCode's figure.
const defaultTimeout = 2 * time.Minute

// BashOptions are the bash tool's settings. The zero value is ready.
type BashOptions struct {
	Shell   string        // path or name of the shell; empty: found by run.Detect
	Reason  guard.Reason  // of the setting that names Shell; the zero value: the person's own
	Runner  *run.Runner   // ends what commands leave running; nil: one for the tool's life, never closed
	Timeout time.Duration // when the call gives none; 0: two minutes
	// Background holds the session's commands in the background; nil: one for the tools' life, never closed.
	Background *run.Background
	// UntilTurn means that what commands leave running ends with the turn, as in a draft, and not with the session.
	UntilTurn bool
	// Terminals is where a person can watch the session's commands and run their own; nil: nobody watches.
	Terminals *run.Terminals
	// Hidden finds what commands may not read that nobody was asked about; nil: one for the tools' life.
	Hidden *sandbox.HiddenFiles
	// Lent: Terminals belong to another session, whose end closes them.
	Lent bool
	// Environ is the environment of commands; nil: this program's, cleaned by run.Environ.
	Environ func() []string
	// More adds variables to the environment of one call, over those of Environ; nil: none. Plugins set them.
	More    func(ctx context.Context, dir string, call *tools.Call) map[string]string
	Sandbox SandboxSettings
	// Programs is what is known of programs; nil: what comes with Pillion.
	Programs *programs.Set
	// Containable says whether commands that only read can be contained, and why not; nil: sandbox.CanContain.
	Containable func() (ok bool, why string)
}

// life names what ends the commands that still run.
func (o BashOptions) life() string {
	if o.UntilTurn {
		return "turn, as the draft does"
	}
	return "session"
}

// commands judges what a command may do, asks about it, runs it, and notices what it changed.
type commands struct {
	workspace
	Tracker *files.Tracker
	Bridge  Bridge // nil: no language servers
	Shell   BashOptions
	Watch   CommandWatch // told before and after each command; nil: none
}

// Bash runs a command, after the analysis in package shell has said what must be asked.
func Bash(env Env) tools.Tool {
	e := env.commands()
	o := e.Shell
	run := func(ctx context.Context, p bashParams, call *tools.Call) (tools.Result, error) {
		limit := o.Timeout
		if p.Timeout != nil {
			if *p.Timeout <= 0 {
				return tools.Result{}, &tools.Error{Kind: "bad_timeout", Message: fmt.Sprintf("Invalid timeout value: %d. Timeout must be a positive number.", *p.Timeout)}
			}
			limit = time.Duration(*p.Timeout) * time.Millisecond
		}
		dir := e.workdir(p.Workdir)
		sh, err := run.Detect(o.Shell)
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: "no_shell", Message: err.Error(), Err: err}
		}
		environ := o.Environ()
		// This comes before the analysis, which looks up programs in the command's own PATH: a plugin that prepends a folder
		// decides which `git` runs.
		if o.More != nil {
			// Sorted and clipped: the slice that Environ returned may be shared, and a later entry wins
			// in exec.
			more := o.More(ctx, dir, call)
			for _, k := range slices.Sorted(maps.Keys(more)) {
				environ = append(environ[:len(environ):len(environ)], k+"="+more[k])
			}
		}
		a := e.analyzed(p.Command, dir, sh, environ, e.hidden(ctx, call.Host.Gate, call.SessionID))
		title := p.Description
		if title == "" {
			title = visible.Text(p.Command)
		}
		call.Report(tools.Update{Title: title, Metadata: map[string]any{"description": p.Description, "output": ""}})
		asked, err := e.askCommand(ctx, call, a, p, dir)
		if err != nil {
			return tools.Result{}, err
		}
		// A `git status` that runs without a question must not start what the repository configures:
		// monitors, hooks, pagers.
		if a.ReadOnly {
			environ = append(environ[:len(environ):len(environ)], programs.QuietGit()...)
		}
		contained := e.contained(ctx, call, a, p, dir, asked)
		// Containment is stricter than the sandbox; a command gets one of them.
		var box *sandbox.Box
		if contained == nil {
			if box, err = e.box(a, p, dir, e.unread(ctx, call, asked)); err != nil {
				return tools.Result{}, err
			}
		}
		c := run.Command{
			Text: p.Command, Shell: sh, Reason: o.Reason, Dir: dir, Env: environ, Timeout: limit, SpillDir: e.spillDir(), Sandbox: box, Contained: contained,
			OnOutput: func(tail string) {
				call.Report(tools.Update{Metadata: map[string]any{"output": tail, "description": p.Description}})
			},
		}
		x := commandRun{commands: e, command: c, title: title, params: p, call: call}
		if p.Background {
			if p.Timeout == nil {
				x.command.Timeout = 0
			}
			return x.background(ctx, a)
		}
		if p.PTY {
			return tools.Result{}, &tools.Error{Kind: "bad_pty", Message: "pty requires background: a command in the foreground gets no input. Set background to true, or leave pty out."}
		}
		after := e.beforeCommand(ctx, call, a, c, false)
		out, err := x.runOnce(ctx)
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: "not_started", Message: err.Error(), Err: err}
		}
		// The analysis took the command for one that only reads, and containment stopped it at something else. The person decides;
		// running it again is safe, because the first run could change nothing.
		if out.Kept != "" {
			again, err := e.askUncontained(ctx, call, a, p, dir, out.Kept)
			switch {
			case err != nil:
				return tools.Result{}, err
			case !again:
				return x.result(out, limit, append([]string{keptNote(out.Kept)}, after(ctx)...))
			}
			x.command.Contained = nil
			if out, err = x.runOnce(ctx); err != nil {
				return tools.Result{}, &tools.Error{Kind: "not_started", Message: err.Error(), Err: err}
			}
		}
		if box == nil {
			return x.result(out, limit, after(ctx))
		}
		why, notes := boxNote(box, out)
		// Unlike a contained command this one may have changed files before the sandbox stopped it; the
		// question says so.
		if why != "" && o.Sandbox.Mode == SandboxAsk {
			again, err := e.askUnsandboxed(ctx, call, a, p, dir, why)
			if err != nil {
				return tools.Result{}, err
			}
			// The metadata below reads x.command.Sandbox: nil says that the last run was outside.
			if x.command.Sandbox = nil; again {
				if out, err = x.runOnce(ctx); err != nil {
					return tools.Result{}, &tools.Error{Kind: "not_started", Message: err.Error(), Err: err}
				}
				notes[len(notes)-1] = "The sandbox had stopped it first; the user let it run again outside, and this is how that ended."
				why = ""
			}
		}
		r, err := x.result(out, limit, append(notes, after(ctx)...))
		r.Metadata["sandbox"] = x.command.Sandbox != nil || why != ""
		if why != "" {
			r.Metadata["sandboxStopped"] = why
		}
		return r, err
	}
	kind, keep := tools.WithKind(tools.KindExecute), tools.WithKeep(tools.HeadTail)
	if !o.Sandbox.active() {
		return tools.New("bash", bashText, run, kind, keep, bashNames)
	}
	return tools.New("bash", strings.TrimRight(bashText, "\n")+sandboxText, func(ctx context.Context, p sandboxedParams, call *tools.Call) (tools.Result, error) {
		return run(ctx, p.plain(), call)
	}, kind, keep, bashNames)
}

// ready fills in what the session did not bring, so that the tools can be used without one (Explain,
// tests, `pillion tool call`).
func (o BashOptions) ready() BashOptions {
	if o.Runner == nil {
		o.Runner = &run.Runner{}
	}
	if o.Background == nil {
		o.Background = &run.Background{}
	}
	if o.Hidden == nil {
		o.Hidden = &sandbox.HiddenFiles{}
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Environ == nil {
		o.Environ = func() []string { return run.Environ(os.Environ()) }
	}
	return o
}

// Environment is what commands start with, without what a call adds.
func (o BashOptions) Environment() []string { return o.ready().Environ() }

// Close ends what the session's commands left running, and those in the background; it waits until they
// are gone. Commands that are started later end with the program.
func (o BashOptions) Close() {
	var all sync.WaitGroup
	if o.Runner != nil {
		all.Go(o.Runner.Close)
	}
	if o.Background != nil {
		all.Go(o.Background.Close)
	}
	all.Wait() // the commands' views end with them
	if o.Terminals != nil && !o.Lent {
		o.Terminals.Close()
	}
}

// bashResult is what the model reads: the beginning of the output, its end where the middle was cut out, then notes, the exit code
// first. The notes are in a tag of their own because a command could print "exit code: 0" itself.
func (c commands) bashResult(title, description string, out run.Outcome, limit time.Duration) tools.Result {
	o := out.Output
	var b strings.Builder
	b.WriteString(o.Head)
	if o.Truncated {
		fmt.Fprintf(&b, "\n\n... %d bytes cut out here ...\n\n%s", o.Cut, o.Tail)
	}
	text := strings.TrimRight(b.String(), "\n")
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	notes := c.bashNotes(out, limit)
	// exit is null, not missing, for a command that did not exit: OpenCode's clients read the key.
	meta := map[string]any{"description": description, "truncated": o.Truncated, "output": lastRunes(text, run.LiveOutput), "exit": nil}
	if out.Exit >= 0 {
		meta["exit"] = out.Exit
	}
	if out.Signal != "" {
		meta["signal"] = out.Signal
	}
	if out.Canceled {
		meta["aborted"] = true
	}
	if out.TimedOut {
		meta["timedOut"] = true
	}
	if o.Path != "" {
		meta["outputPath"] = o.Path
	}
	return tools.Result{
		Title:    title,
		Output:   text + "\n\n<bash_metadata>\n" + strings.Join(notes, "\n") + "\n</bash_metadata>",
		Metadata: meta,
	}
}

// bashNotes is how the command ended and what of its output is missing, in the words of OpenCode's tool where it has any.
func (c commands) bashNotes(out run.Outcome, limit time.Duration) []string {
	var notes []string
	switch {
	case out.TimedOut:
		notes = append(notes, fmt.Sprintf("bash tool terminated command after exceeding timeout %d ms. If it is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.", limit.Milliseconds()))
	case out.Canceled:
		notes = append(notes, "User aborted the command")
	case out.Signal != "":
		notes = append(notes, "ended by signal: "+out.Signal)
	default:
		notes = append(notes, fmt.Sprintf("exit code: %d", out.Exit))
	}
	o := out.Output
	switch {
	case o.Truncated && o.Path != "":
		notes = append(notes, fmt.Sprintf("%d of %d bytes are shown. The whole output is in %s; use grep on it, or read with offset and limit.", o.Bytes-o.Cut, o.Bytes, o.Path))
		if o.SpillErr != "" {
			notes = append(notes, "That file is not complete: "+o.SpillErr)
		}
	case o.Truncated:
		notes = append(notes, fmt.Sprintf("%d of %d bytes are shown; the rest was not saved: %s.", o.Bytes-o.Cut, o.Bytes, o.SpillErr))
	}
	if out.Left > 0 {
		notes = append(notes, fmt.Sprintf("%d process(es) it started still run in the background; they end with the %s.", out.Left, c.Shell.life()))
	}
	return notes
}

// lastRunes keeps the end of a text, at most n characters including the mark in front. A text of at most n bytes has at most n
// characters, so short ones are returned without being decoded.
func lastRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "...\n\n" + string(r[len(r)-n+5:])
}
