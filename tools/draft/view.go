package draft

import (
	"context"
	"os/exec"
)

// Arg is the first argument of the helper that enters a view and becomes a program in it: this program, started again, because a
// process with threads cannot enter a user namespace. The program's main hands over to Main.
const Arg = "__draft"

// Support is what the system offers.
type Support struct {
	View View
	PIDs bool   // processes of a draft are in a namespace of their own and end with it
	Why  string // why the view is not Overlay
}

// String says for a person which drafts there are; pillion doctor prints it.
func (s Support) String() string {
	switch s.View {
	case Overlay:
		text := "an overlay over the project, in a namespace of its own"
		if !s.PIDs {
			text += " (its processes are found by their marks, not by a namespace)"
		}
		return text
	case Bind:
		return "a clone of the project, mounted over it: " + s.Why
	}
	return "a clone of the project under another path: " + s.Why
}

// best is the view of a new draft: an overlay where one can be mounted over this very project, which is tried before anything else is
// asked of the system, as it is the common case and each question is a process. Otherwise it is what the system offers, with the reason.
// A bind mount needs nothing of the project's file system, so it is what remains where overlays work elsewhere.
func best(ctx context.Context, d *Draft) (view View, pids bool, why string) {
	why = d.unfit(ctx, true)
	if why == "" {
		return Overlay, true, ""
	}
	s := Probe()
	if s.View == Overlay && !s.PIDs {
		why = d.unfit(ctx, false)
	}
	switch {
	case s.View != Overlay:
		return s.View, s.PIDs, s.Why
	case why == "":
		return Overlay, false, ""
	}
	return Bind, s.PIDs, why
}

// Command is a program that will run in the draft's view. The caller sets Dir to a folder of the project (or of Root) and
// the streams, and starts it with guard.Start: SysProcAttr is set. The program finds the project under Root.
func (d *Draft) Command(name string, args ...string) (*exec.Cmd, error) {
	return d.command(append([]string{name}, args...))
}
