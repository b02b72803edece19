package search

import "golang.org/x/sys/unix"

// openWithoutLinks is openat2(2). Before Linux 5.6, and in a sandbox that does not know the call, only a link at the end
// of the path is refused.
func openWithoutLinks(path string, flags int) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Open(path, flags, 0)
	}
	return fd, err
}
