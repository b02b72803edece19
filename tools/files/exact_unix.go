//go:build unix && !linux

package files

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openExact refuses a link at the end of the path, and resolves the path once more after opening. Without openat2, a folder that
// is swapped for a link and back in between is not noticed.
func openExact(real string, flags int) (int, error) {
	fd, err := unix.Open(real, flags|unix.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return -1, ErrSwapped
		}
		return -1, err
	}
	if now, err := filepath.EvalSymlinks(real); err != nil || now != real {
		_ = unix.Close(fd)
		return -1, ErrSwapped
	}
	return fd, nil
}
