package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// termSignal is what Run passes to signal, which ignores it here: Windows has no TERM.
const termSignal = syscall.SIGTERM

// ForeignPaths is true: Git Bash gives folders other names (/c/Users, /tmp, /usr) than Windows, and expands them while it runs a command. The
// analysis reads paths as Windows does, so what it says of a command is not relied on.
const ForeignPaths = true

// shells returns where bash may be: the one of the Git for Windows that is found first in PATH, then one in PATH, then the usual folders. The bash.exe of
// the system's folder and of WindowsApps is that of a Linux in WSL, in which the project has another path; it is never taken. Nor is cmd.exe or
// PowerShell: models write bash, whose quotes and operators mean something else there. A person can choose them in the configuration.
func shells() []string {
	var list []string
	if git, err := exec.LookPath("git.exe"); err == nil {
		// git.exe is in cmd, bin or mingw64\bin of Git's folder.
		for at := filepath.Dir(filepath.Dir(git)); at != filepath.Dir(at); at = filepath.Dir(at) {
			if b := filepath.Join(at, "bin", "bash.exe"); isFile(b) {
				list = append(list, b)
				break
			}
		}
	}
	if p, err := exec.LookPath("bash.exe"); err == nil && !linuxBash(p) {
		list = append(list, p)
	}
	for _, v := range []string{"ProgramFiles", "ProgramW6432", "ProgramFiles(x86)", "LocalAppData"} {
		if dir := os.Getenv(v); dir != "" {
			list = append(list, filepath.Join(dir, "Git", "bin", "bash.exe"), filepath.Join(dir, "Programs", "Git", "bin", "bash.exe"))
		}
	}
	return list
}

// noShell is what to do without a shell.
const noShell = "no bash was found, and commands are written in bash; install Git for Windows (winget install Git.Git), whose bash is used, or set shell in the configuration to the path of a bash"

// linuxBash reports whether path is the bash.exe that starts WSL.
func linuxBash(path string) bool {
	p := strings.ToLower(filepath.ToSlash(path))
	return strings.Contains(p, "/windows/system32/") || strings.Contains(p, "/windows/sysnative/") || strings.Contains(p, "/microsoft/windowsapps/")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

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

// pipes numbers the pipes of this program.
var pipes atomic.Uint64

// pipe is os.Pipe with a reading end that has deadlines, as collector.read needs. The pipes of os.Pipe have none on Windows: a process that a
// command left in the background would keep the reader, and the call, waiting.
func pipe() (ours, theirs *os.File, err error) {
	name, err := windows.UTF16PtrFromString(fmt.Sprintf(`\\.\pipe\pillion-%d-%d`, os.Getpid(), pipes.Add(1)))
	if err != nil {
		return nil, nil, err
	}
	// FIRST_PIPE_INSTANCE and one instance: no other program can have made the pipe before or open it after us.
	in, err := windows.CreateNamedPipe(name, windows.PIPE_ACCESS_INBOUND|windows.FILE_FLAG_OVERLAPPED|windows.FILE_FLAG_FIRST_PIPE_INSTANCE,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, 0, 64<<10, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	out, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		_ = windows.CloseHandle(in)
		return nil, nil, err
	}
	return os.NewFile(uintptr(in), "|0"), os.NewFile(uintptr(out), "|1"), nil
}

// peekNamedPipe says how much is in a pipe.
var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// readNow reads what is in the pipe and does not block. It returns the number of bytes; 0 or less means none. Only collector.read calls it,
// so nothing else reads the pipe meanwhile.
func readNow(f *os.File, buf []byte) int {
	var there uint32
	if ok, _, _ := peekNamedPipe.Call(f.Fd(), 0, 0, 0, uintptr(unsafe.Pointer(&there)), 0); ok == 0 || there == 0 {
		return 0
	}
	n, _ := f.Read(buf[:min(len(buf), int(there))])
	return n
}

// spawn starts the shell in a process group of its own, so that a Ctrl+C for this program does not reach it.
func spawn(j *job) error {
	j.cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	if err := j.family.Start(j.cmd); err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	return nil
}

// signal kills the job, whatever the signal.
func (j *job) signal(syscall.Signal) { j.kill() }

// kill ends the shell and all that it started. Windows has nothing that asks a process without a window to end.
func (j *job) kill() { j.family.Kill() }

// left is the number of processes that the command left running.
func (j *job) left() int { return j.family.Left() }

// watchTasks is never called, because commands cannot be contained here.
func (j *job) watchTasks(int, func() bool) {}
