//go:build unix

package run

import (
	"os"
	"syscall"
)

const termSignal = syscall.SIGTERM

var otherShells = []string{"zsh", "/bin/sh", "sh"}

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
