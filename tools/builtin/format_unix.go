//go:build unix

package builtin

import (
	"os/exec"
	"syscall"
)

// ownGroup starts the command in its own process group and kills the whole group when the command is cancelled, so that
// programs that it started end too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
