package guard

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// OwnGroup: what a program starts is not followed here; the job object that Start gives it ends all.
func OwnGroup(*exec.Cmd) {}

// KillGroup ends a program.
func KillGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// Detach starts this program again, to continue when this one ends and without its console. It has all of the environment, keys included, so it
// must be no other program.
func Detach(cmd *exec.Cmd) error {
	cmd.Env = without(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
