//go:build unix

package guard

import (
	"os"
	"os/exec"
	"syscall"
)

// OwnGroup gives a program that is not started yet a process group of its own, for KillGroup. It replaces SysProcAttr.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills a program that was started after OwnGroup, and what it started in the same group. Call it before Wait
// returns: afterwards the number may belong to another group.
func KillGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Detach starts this program again, to continue when this one ends: in a session of its own, so that no terminal's hang-up reaches it, and
// without this program's mark. The new process marks what it starts as its own (Enable). It has all of the environment, keys included,
// so it must be no other program.
func Detach(cmd *exec.Cmd) error {
	cmd.Env = without(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // no zombie while this program lives
	return nil
}
