//go:build unix

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// inUse reports that another process has the database open: in WAL mode each connection of SQLite holds a shared lock on byte 128 of the
// -shm file ("Deadman switch", wal.c). F_GETLK does not see locks of this process. Closing any descriptor of a file drops the process's
// own POSIX locks on it (fcntl(2)), so the caller has closed the database before.
func inUse(path string) bool {
	// Without a -shm file nothing has the database open in WAL mode.
	f, err := os.OpenFile(path+"-shm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 128, Len: 1}
	return unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}
