package draft

import (
	"context"
	"os/exec"
)

// Arg is the first argument that makes this program the helper, which enters a view and becomes another program in it. A new process is
// needed because one with several threads cannot enter a user namespace. The program's main calls Main for it.
const Arg = "__draft"

// Support is what the system offers.
type Support struct {
	View View
	PIDs bool   // processes of a draft are in a PID namespace and end with its first process
	Why  string // why the view is not Overlay
}

// String describes for a person how drafts work on this system; pillion doctor prints it.
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

// best is the view of a new draft, and the reason if it is not an overlay. An overlay over this very project is tried first: that is the
// common case, and each try starts a process. If it fails, the view is what the system offers in general. Where overlays work elsewhere
// but not on this project, a bind mount remains, as that needs nothing of the project's file system.
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
