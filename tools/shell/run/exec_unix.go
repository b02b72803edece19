//go:build unix

package run

import (
	"os"
	"syscall"
)

// termSignal asks a process to end. KILL follows after Grace.
const termSignal = syscall.SIGTERM

// otherShells are tried when neither bash nor the person's own shell is found.
var otherShells = []string{"zsh", "/bin/sh", "sh"}

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
