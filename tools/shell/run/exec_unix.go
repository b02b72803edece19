//go:build unix

package run

import (
	"os"
	"syscall"
)

// termSignal asks a process to end; KILL follows after Grace.
const termSignal = syscall.SIGTERM

// otherShells are tried when neither bash nor the person's own shell is found.
var otherShells = []string{"zsh", "/bin/sh", "sh"}

// shellArgs make a shell run text; -c is in POSIX, so every shell here takes it.
func shellArgs(_, text string) []string { return []string{"-c", text} }

// exitOf tells an exit code from a signal.
func exitOf(s *os.ProcessState) (code int, signal string) {
	if s == nil {
		return -1, ""
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, ws.Signal().String()
	}
	return s.ExitCode(), ""
}

// readNow reads what is in the pipe without waiting; 0 when there is nothing.
// It reads the descriptor directly, since os.File would wait; the pipe is in non-blocking mode.
// Nothing else reads the pipe at that moment: only the collector's one goroutine calls it.
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
