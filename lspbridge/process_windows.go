package lspbridge

import (
	"os/exec"
	"strconv"
	"syscall"
)

// processAttributes puts a server into a process group of its own, without a console window.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// killGroup kills a server and its children. Windows has no signal for a group, so taskkill walks the process tree.
func killGroup(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}
