package lspbridge

import (
	"os/exec"
	"syscall"

	"github.com/pillion-dev/pillion/tools/guard"
)

// processAttributes puts a server into a process group of its own, without a console window.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// killGroup kills a server and its children.
func killGroup(cmd *exec.Cmd) { guard.KillGroup(cmd) }
