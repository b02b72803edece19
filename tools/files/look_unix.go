//go:build unix

package files

import "syscall"

// Look reports whether something has this name, a broken link too, and whether it is a symbolic link. It is for callers that ask for many
// names that mostly do not exist: os.Lstat makes an error or a FileInfo for each.
func Look(path string) (there, link bool) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	for err == syscall.EINTR {
		err = syscall.Lstat(path, &st)
	}
	return err == nil, err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK
}
