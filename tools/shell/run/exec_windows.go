package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Windows has no TERM; signal ignores which one it is given.
const termSignal = syscall.SIGTERM

// Git for Windows brings a bash; cmd is the last resort, and its commands are always asked since they are not bash.
var otherShells = []string{`C:\Program Files\Git\bin\bash.exe`, "cmd.exe"}

// /d runs no AutoRun command of the registry, /s takes the outer quotes away and nothing else.
func shellArgs(shell, text string) []string {
	if strings.EqualFold(filepath.Base(shell), "cmd.exe") {
		return []string{"/d", "/s", "/c", text}
	}
	return []string{"-c", text}
}

// exitOf never names a signal: Windows has none.
func exitOf(s *os.ProcessState) (code int, signal string) {
	if s == nil {
		return -1, ""
	}
	return s.ExitCode(), ""
}

// readNow cannot look into a pipe without waiting here; what is unread when the shell ends is lost.
func readNow(*os.File, []byte) int { return 0 }

// spawn starts the shell in a process group of its own, so that a Ctrl+C for this program does not reach it.
func spawn(j *job) error {
	j.cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	if err := j.family.Start(j.cmd); err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	return nil
}

// signal ends the job whatever the signal is.
func (j *job) signal(syscall.Signal) { j.kill() }

// taskkill /T ends the process and its children; what has left that tree is not found.
func (j *job) kill() {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(j.pid)).Run()
}

// left cannot be known here.
func (j *job) left() int { return 0 }

// watchTasks is never called: no command is contained here.
func (j *job) watchTasks(int, func() bool) {}
