//go:build unix

package guard

import (
	"os/exec"
	"syscall"
)

// OwnGroup gives a program that is not started yet a process group of its own, for KillGroup. It replaces SysProcAttr.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills a program that was started after OwnGroup, and what it started in the same group. Call it before Wait
// returns: afterwards the number may belong to another group.
func KillGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
