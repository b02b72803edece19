package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// SandboxSettings say whether commands run in the sandbox. The zero value is off, and the system is not
// probed then.
type SandboxSettings struct {
	// Mode is off, ask or on. With on a command that cannot run in the sandbox does not run, and only the model's
	// wish, which is asked, leads outside. With ask the person is asked instead, also when the sandbox has stopped one.
	Mode      string
	Network   bool // commands may use the network
	AutoAllow bool // commands that stay in the project are not asked, where no rule names them
	// Reach: a command that by its record works with a server is asked about all the same, and then has the network in the sandbox.
	// Without it npm install would have to leave the sandbox for a download.
	Reach bool
	// Auto reports whether commands are asked about by their effects now: those that stay in the project and can be taken
	// back are not asked. It switches the sandbox on where there is one and Mode is not set. Nil: they are not.
	Auto      func() bool
	Writable  []string // more folders they may write to
	Processes int      // 0: enough for a build
	Support   func() sandbox.Support
}

// Modes of the sandbox.
const (
	SandboxOff = "off"
	SandboxAsk = "ask"
	SandboxOn  = "on"
)

// DraftSandbox are the settings of a draft where the person has set none: the kernel holds commands in the draft, so those that stay
// there need no question.
func DraftSandbox(s SandboxSettings) SandboxSettings {
	s.Mode, s.AutoAllow, s.Reach = SandboxOn, true, true
	return s
}

// byEffects reports what Auto reports; false where it is nil.
func (s SandboxSettings) byEffects() bool { return s.Auto != nil && s.Auto() }

// active reports whether commands go into the sandbox. With "on" and "ask" that does not depend on
// whether the system has one: a missing sandbox is then an error or a question, never a silent run
// without.
func (s SandboxSettings) active() bool {
	return s.Mode == SandboxOn || s.Mode == SandboxAsk || s.Mode == "" && s.byEffects() && s.support().Usable()
}

// bounds reports a command that is opaque only for what a sandbox bounds, on a system whose sandbox can hide keys and restrict what is read.
func (s SandboxSettings) bounds(a *scan.Analysis) bool {
	return a.Bounded && s.support().Mounts && s.support().Landlock > 0
}

// support is what the system's kernel offers.
func (s SandboxSettings) support() sandbox.Support {
	if s.Support != nil {
		return s.Support()
	}
	return sandbox.Probe()
}

// sandboxedParams are bashParams with "unsandboxed". They are a second type because the schema is made
// from the fields, and a model that is offered the parameter without a sandbox would set it.
type sandboxedParams struct {
	Command     string `json:"command"`
	Timeout     *int   `json:"timeout,omitempty"`
	Workdir     string `json:"workdir,omitempty" jsonschema:"instead of cd"`
	Description string `json:"description,omitempty"`
	Background  bool   `json:"background,omitempty"`
	PTY         bool   `json:"pty,omitempty"`
	Unsandboxed bool   `json:"unsandboxed,omitempty" jsonschema:"run it outside the sandbox, after one that the sandbox stopped; the person is always asked"`
}

// plain converts the parameters to those that both variants of the tool work with.
func (p sandboxedParams) plain() bashParams {
	return bashParams{Command: p.Command, Timeout: p.Timeout, Workdir: p.Workdir, Description: p.Description, Background: p.Background, PTY: p.PTY, unsandboxed: p.Unsandboxed}
}

// sandboxText is added to the tool's description where commands run in the sandbox.
const sandboxText = `
- Commands run in a sandbox: they can write only in the project, temporary folders and build caches, not to .git/hooks, .git/config or editor settings, and have no network unless the person opened it. When that stops a command the result says so; call again with unsandboxed then, if it is worth asking the person.`

// fitToSandbox fits the request for a command to where it will run: outside the sandbox it is always asked,
// inside the settings may drop the question where no rule names the command.
func (c commands) fitToSandbox(r permission.Request, a *scan.Analysis, unsandboxed bool) permission.Request {
	s := c.Shell.Sandbox
	if r.Permission != "bash" || !s.active() {
		return r
	}
	why := ""
	if unsandboxed {
		why = "it is to run outside the sandbox"
	} else if support := s.support(); !support.Usable() {
		why = "it cannot run in the sandbox: " + support.Why
	}
	mustAsk := r.MustAsk && !(s.bounds(a) && len(a.Protected) == 0)
	switch {
	case why != "":
		r.MustAsk, r.Always = true, nil
		r.Why = strings.TrimSuffix(why+"; "+r.Why, "; ")
	case s.byEffects() && !mustAsk:
		held, because := programs.Contained(a)
		if held {
			r.MustAsk, r.AskIf = false, permission.AskIfSpecific
			break
		}
		r.Why = because + "; " + r.Why
	case s.Reach && programs.ReachesElsewhere(a):
		r.Why = strings.TrimSuffix("it uses the network; "+r.Why, "; ")
	case s.AutoAllow && !mustAsk && len(a.External) == 0:
		r.MustAsk, r.AskIf = false, permission.AskIfSpecific
	}
	return r
}

// box is the sandbox of a command that may run; nil runs it without one. Places that were asked about
// and allowed are opened in it: a sandbox that stopped what the person had just approved would be
// turned off.
func (c commands) box(a *scan.Analysis, p bashParams, dir string, unread *sandbox.HiddenOptions) (*sandbox.Box, error) {
	s := c.Shell.Sandbox
	if !s.active() || p.unsandboxed {
		return nil, nil
	}
	if support := s.support(); !support.Usable() {
		if s.Mode == SandboxAsk {
			return nil, nil // the person was asked
		}
		return nil, &tools.Error{Kind: "no_sandbox", Message: "This command was not run: " + noSandbox(support)}
	}
	o := c.boxOptions(dir, s.Network || (s.Reach || s.byEffects()) && programs.ReachesElsewhere(a))
	o.Hidden = unread
	// No rule and no person has judged the code or the paths, so it reads what a silent command reads.
	o.ReadsLittle = a.Bounded && unread != nil
	// Places outside the project that were asked about and allowed are opened.
	var made []string
	for _, x := range a.External {
		if x.Access != scan.Write || strings.ContainsAny(x.Path, "*?") {
			continue
		}
		place := x.Path
		// git takes an empty folder for a new worktree. Where it is to be made may hold too much to open: a home folder.
		if fillsNewFolder(a) && os.Mkdir(place, 0o755) == nil {
			made = append(made, place)
		}
		if info, err := os.Stat(place); err != nil || !info.IsDir() {
			place = filepath.Dir(place) // the folder, as in the question
		}
		o.Writable = append(o.Writable, place)
	}
	for _, x := range a.Protected {
		o.Allowed = append(o.Allowed, x.Path)
	}
	box := sandbox.New(o)
	box.Made = made
	return box, nil
}

// boxOptions are those of a sandbox in this project, before anything was allowed for one command.
func (c commands) boxOptions(dir string, network bool) sandbox.Options {
	s := c.Shell.Sandbox
	o := sandbox.Options{Root: c.root(), Dir: dir, Extra: append([]string{c.Cwd}, c.Extra...), Home: c.Home, Writable: s.Writable, Network: network, Processes: s.Processes, Support: s.Support, Protected: c.protector()}
	if c.StateDir != "" {
		o.Quarantine = filepath.Join(c.StateDir, "quarantine")
	}
	return o
}

// ProgramBox is the sandbox of a program that is no command of the model but may run code that the model wrote: a language server or a tool
// in a draft. It is nil where the person has switched the sandbox off, and where the system has none.
func ProgramBox(env Env, dir string, network bool) (*sandbox.Box, error) {
	c := env.commands()
	if c.Shell.Sandbox.Mode == SandboxOff || !c.Shell.Sandbox.support().Usable() {
		return nil, nil
	}
	return sandbox.New(c.boxOptions(dir, network)), nil
}

// noSandbox says why a command cannot run in the sandbox and which setting changes that.
func noSandbox(support sandbox.Support) string {
	return "the sandbox is on, but this system has none: " + support.Why + `. The user can set "sandbox" to "ask" or "off" in the configuration.`
}

// fillsNewFolder reports a command that fills a new folder outside the project: git clone, git worktree
// add. Landlock rules name folders that exist, so the folder is made beforehand; git accepts an empty
// one.
func fillsNewFolder(a *scan.Analysis) bool {
	for _, c := range a.Calls {
		words := strings.Fields(c.Text)
		if len(words) == 0 || words[0] != "git" {
			continue
		}
		// Git's own options are before the command: git -C dir clone.
		for words = words[1:]; len(words) > 1 && strings.HasPrefix(words[0], "-"); words = words[1:] {
			if words[0] == "-c" || words[0] == "-C" {
				words = words[1:] // its value
			}
		}
		if len(words) > 1 && (words[0] == "clone" || words[0] == "worktree" && words[1] == "add") {
			return true
		}
	}
	return false
}

// boxNote tells what the sandbox did to a command. why is empty unless it may have stopped the command;
// then the last note is about that, and the caller may replace it.
func boxNote(box *sandbox.Box, out run.Outcome) (why string, notes []string) {
	notes = box.Settle()
	result := out.ForSandbox()
	if passed := box.Passed(result); passed != "" {
		notes = append(notes, passed)
	}
	if why = box.Stopped(result); why != "" {
		notes = append(notes, stoppedNote(why))
	}
	return why, notes
}

// stoppedNote tells the model what the sandbox may have stopped. It says "may": a program can fail for reasons of its own.
func stoppedNote(why string) string {
	return "The sandbox may have stopped this command, or a part of it: " + why + `. If it needs more than that, call bash again with "unsandboxed": true; the user is asked.`
}

// askUnsandboxed asks whether to run a command again outside of the sandbox that has stopped it. It offers no "always", because each run
// outside is a decision of its own.
func (c commands) askUnsandboxed(ctx context.Context, call *tools.Call, a *scan.Analysis, p bashParams, dir, why string) (bool, error) {
	r := c.callsRequest(a)
	r.MustAsk, r.Always = true, nil
	r.Title = "Run again outside the sandbox: " + visible.Text(p.Command)
	r.Why = "the sandbox may have stopped it: " + why
	if r.Metadata == nil {
		r.Metadata = map[string]any{}
	}
	r.Metadata["command"], r.Metadata["workdir"], r.Metadata["unsandboxed"] = p.Command, dir, true
	_, err := askReply(ctx, call, r)
	if errors.Is(err, permission.ErrRejected) || errors.Is(err, permission.ErrDenied) {
		return false, nil // the first run's result stands
	}
	return err == nil, err
}

// addNotes adds notes to the tag in which the model reads how the command ended.
func addNotes(r tools.Result, notes []string) tools.Result {
	const end = "\n</bash_metadata>"
	if body, ok := strings.CutSuffix(r.Output, end); ok && len(notes) > 0 {
		r.Output = body + "\n" + strings.Join(notes, "\n") + end
	}
	return r
}
