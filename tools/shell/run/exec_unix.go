//go:build unix

package run

import (
	"os"
	"path/filepath"
	"syscall"
)

// termSignal asks a process to end. KILL follows after Grace.
const termSignal = syscall.SIGTERM

// ForeignPaths is false: the shell and the analysis mean the same files by a path.
const ForeignPaths = false

// shells returns the shells to try: bash, since commands are written and analyzed as bash, else the person's own, else sh. A shell with a different
// grammar (fish, nu) is never taken unless it is configured.
func shells() []string {
	candidates := []string{"bash"}
	switch own := os.Getenv("SHELL"); filepath.Base(own) {
	case "bash":
		candidates = []string{own, "bash"}
	case "zsh", "sh", "dash", "ksh":
		candidates = append(candidates, own)
	}
	return append(candidates, "zsh", "/bin/sh", "sh")
}

// noShell is what to do without a shell.
const noShell = "no shell found; install bash or set shell in the configuration"

// pipe is os.Pipe, whose reading end has deadlines on Unix.
func pipe() (ours, theirs *os.File, err error) { return os.Pipe() }

// shellArgs returns the arguments with which a shell runs text. POSIX specifies -c, and every shell that Detect chooses has it.
func shellArgs(_, text string) []string { return []string{"-c", text} }

// exitOf returns the exit code, or -1 and the name of the signal that ended the process.
func exitOf(s *os.ProcessState) (code int, signal string) {
	if s == nil {
		return -1, ""
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, ws.Signal().String()
	}
	return s.ExitCode(), ""
}

// readNow reads what is in the pipe and does not block. It returns the number of bytes; 0 or less means none. It reads the descriptor,
// which is in non-blocking mode, because File.Read would wait. Only collector.read calls it, so nothing else reads the pipe meanwhile.
func readNow(f *os.File, buf []byte) int {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = conn.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), buf)
			if err != syscall.EINTR {
				return true
			}
		}
	})
	return n
}
