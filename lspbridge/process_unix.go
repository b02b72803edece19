//go:build unix && !linux

package lspbridge

import (
	"os/exec"
	"syscall"
)

// processAttributes puts a server into a process group of its own. Without PDEATHSIG the server learns that this program has ended from its
// closed stdin and from processId (LSP, InitializeParams).
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a server and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
