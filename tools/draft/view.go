package draft

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// Arg is the first argument of the helper, which enters a view and executes another program in it. The helper is a new process because
// one with several threads cannot enter a user namespace. The program's main must call Main when its first argument is Arg.
const Arg = "__draft"

// Support says which view the system offers.
type Support struct {
	View View
	PIDs bool   // a draft's processes run in a PID namespace, so all of them end with its first process
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

// Fits reports whether the project's files allow an overlay, for a draft that was made with Options.Untried. It walks the project.
func (d *Draft) Fits(ctx context.Context) error {
	if why := d.foreign(ctx); why != "" {
		return errors.New(why)
	}
	return nil
}

// SupportOf returns how a draft of a project would show it, as Create would choose. It fails where no draft can be created. Nothing of
// what it tries stays.
func SupportOf(ctx context.Context, o Options) (Support, error) {
	project, err := o.place()
	if err != nil {
		return Support{}, err
	}
	// Beside the drafts and not among them: it is none.
	above := filepath.Dir(o.Dir)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return Support{}, err
	}
	dir, err := os.MkdirTemp(above, "draft-try-")
	if err != nil {
		return Support{}, err
	}
	defer removeAll(dir)
	var s Support
	s.View, s.PIDs, s.Why = best(ctx, &Draft{Dir: dir, head: Head{Project: project, GitDir: outsideGit(project)}})
	return s, nil
}

// best chooses the view of a new draft, with the reason if it is not an overlay. It tries an overlay over this project first, which mostly
// works, as each try starts a process. If that fails, the view is what Probe reports. If overlays work on this system but not for this
// project, it is a bind mount, which does not depend on the project's file system.
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

// Command returns a command that runs a program in the draft's view. The caller sets Dir to a folder of the project (or of Root), sets
// the streams, keeps SysProcAttr as it is and starts it with guard.Start. The program finds the project under Root.
func (d *Draft) Command(name string, args ...string) (*exec.Cmd, error) {
	if boot := bootID(); d.Head().Boot != boot {
		if err := d.Set(func(h *Head) { h.Boot = boot }); err != nil {
			return nil, err
		}
	}
	return d.command(append([]string{name}, args...))
}
