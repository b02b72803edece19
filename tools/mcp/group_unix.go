//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// startGroup starts a program in a process group of its own.
func startGroup(cmd *exec.Cmd) (kill func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }, nil
}
