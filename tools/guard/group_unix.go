//go:build unix

package guard

import (
	"os/exec"
	"syscall"
)

// OwnGroup gives a program that is not started yet a process group of its own.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup ends a program that has its own group, and what it started.
func KillGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
