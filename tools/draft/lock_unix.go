//go:build unix

package draft

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks an open file without waiting (flock(2)). The kernel releases the lock when the file is closed or the process ends, even
// by kill -9, so no stale lock remains. ok is false while another descriptor holds it, of this process or of another.
func lockFile(f *os.File) (ok bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
