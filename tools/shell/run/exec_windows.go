package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// termSignal is what Run passes to signal, which ignores it here: Windows has no TERM.
const termSignal = syscall.SIGTERM

// otherShells are tried when Detect finds neither bash nor the user's own shell: the bash that comes with Git for Windows, then cmd, for
// which each command needs approval (see Bash).
var otherShells = []string{`C:\Program Files\Git\bin\bash.exe`, "cmd.exe"}

// shellArgs returns the arguments with which a shell runs text. For cmd, /d turns off AutoRun commands of the registry, and /s makes it
// remove only the outer quotes of text.
func shellArgs(shell, text string) []string {
	if strings.EqualFold(filepath.Base(shell), "cmd.exe") {
		return []string{"/d", "/s", "/c", text}
	}
	return []string{"-c", text}
}

// exitOf returns the exit code. Windows has no signals, so signal is always empty.
func exitOf(s *os.ProcessState) (code int, signal string) {
	if s == nil {
		return -1, ""
	}
	return s.ExitCode(), ""
}

// readNow always returns 0, because it could not read a pipe without blocking here. What is unread when the shell ends is lost.
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

// signal kills the job, whatever the signal.
func (j *job) signal(syscall.Signal) { j.kill() }

// kill ends the shell and its descendants by taskkill /T. It does not find processes that are no longer in that tree.
func (j *job) kill() {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(j.pid)).Run()
}

// left is always 0: processes that a command left running cannot be found here.
func (j *job) left() int { return 0 }

// watchTasks is never called, because commands cannot be contained here.
func (j *job) watchTasks(int, func() bool) {}
