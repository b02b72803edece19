//go:build unix && !linux

package files

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openExact refuses a link at the end, and looks at the path once more after opening: what was swapped there and back
// meanwhile is not noticed on these systems, which have no openat2.
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
