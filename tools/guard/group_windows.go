package guard

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// OwnGroup does nothing: KillGroup goes by the tree of processes.
func OwnGroup(*exec.Cmd) {}

// KillGroup ends a program and what it has started. Most servers from npm are a cmd.exe that waits for Node. After the program has
// ended its tree is not known any more, and its id may be another's: what it left then ends with this program, in the job object of Start.
func KillGroup(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	kill := Command(Person, "taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid))
	kill.SysProcAttr = &syscall.SysProcAttr{HideWindow: true}
	_ = kill.Run()
	_ = cmd.Process.Kill()
}

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
