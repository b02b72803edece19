package lspbridge

import (
	"os/exec"
	"syscall"
)

// processAttributes puts a server into a process group of its own, and makes the kernel kill it when the thread that started it ends, even
// after a crash of this program.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a server and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
