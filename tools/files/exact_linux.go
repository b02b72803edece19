package files

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openExact opens a path and lets the kernel refuse symbolic links in any part of it (openat2(2), RESOLVE_NO_SYMLINKS). The path
// was judged before, with its links resolved; a command that runs meanwhile could put a link into it, and have Pillion open
// a protected file.
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
	// Linux before 5.6 has no openat2 (ENOSYS), and seccomp filters of containers may deny it (EPERM). Then the path of the opened
	// file is compared.
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
