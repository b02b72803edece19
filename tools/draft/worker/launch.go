package worker

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// Rights are what a program in the view may do, and whether it may run without a sandbox, see Client.Start.
type Rights struct {
	Network bool `json:"network,omitempty"` // opens the network in the program's sandbox
	// Confined refuses to start the program without a sandbox. If it is false and there is no sandbox, the program runs with the user's
	// rights in the view.
	Confined bool `json:"confined,omitempty"`
	// Agent keeps the program in a sandbox even if the person has switched off that of commands: an external agent runs what a model says.
	Agent bool `json:"agent,omitempty"`
	// Writable are absolute paths outside of the project that an agent may write to, such as its own state.
	Writable []string `json:"writable,omitempty"`
}

// box returns the sandbox of a program that runs in dir; nil: it runs without. env has the folders of the view and the settings.
func (r Rights) box(env builtin.Env, dir string) (*sandbox.Box, error) {
	if r.Agent {
		if sandbox.Probe().Usable() {
			return sandbox.New(sandbox.Options{Root: env.Root, Dir: dir, Extra: []string{env.Cwd}, Home: env.Home, Writable: r.Writable, Network: r.Network}), nil
		}
	} else if box, err := builtin.ProgramBox(env, dir, r.Network); err != nil || box != nil {
		return box, err
	}
	if r.Confined {
		return nil, errors.New("there is no sandbox for it")
	}
	return nil, nil
}

// start starts cmd in a process group of its own, in box (nil: without a sandbox). The caller waits for cmd and then calls Release of box with
// its process id.
func start(cmd *exec.Cmd, box *sandbox.Box) error {
	guard.OwnGroup(cmd)
	if cmd.SysProcAttr == nil { // Windows has no groups
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if box == nil {
		return guard.Start(cmd)
	}
	if helper := box.ForHelper(); helper != nil {
		defer helper.Close()
		cmd.ExtraFiles = []*os.File{helper}
	}
	name, args, err := box.Argv(cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.Env = name, append([]string{name}, args...), box.Environ(cmd.Env)
	box.Attributes(cmd.SysProcAttr)
	err = guard.Start(cmd)
	box.Supervise() // after a failed start too, since its goroutine then ends
	return err
}
