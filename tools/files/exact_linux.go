package files

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openExact lets the kernel refuse links on the way, so that judging a path and opening it are one step (openat2(2)).
// Otherwise a command could put a link into the path in between and have a protected file opened.
func openExact(real string, flags int) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, real, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ELOOP):
		return -1, ErrSwapped
	case !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM):
		return -1, err
	}
	// Linux before 5.6, or a sandbox around us that does not know the call: look at what was opened.
	if fd, err = unix.Open(real, flags|unix.O_NOFOLLOW, 0); err != nil {
		if errors.Is(err, unix.ELOOP) {
			return -1, ErrSwapped
		}
		return -1, err
	}
	if now, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil || now != real {
		_ = unix.Close(fd)
		return -1, ErrSwapped
	}
	return fd, nil
}
