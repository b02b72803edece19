//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mounted is isMount. Tests replace it, because making a mount needs rights that they rarely have.
var mounted = isMount

// inPlace reports whether a file must keep its inode and so is overwritten instead of replaced: it has other names, it belongs to
// another user, its folder takes no new files, or something is mounted on it. A rename would separate the hard links, change the
// owner, or fail.
func inPlace(path string, fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	euid := os.Geteuid()
	return st.Nlink > 1 || mounted(path) || euid != 0 && int(st.Uid) != euid || mayWrite(dirOf(path)) != nil || roDir(dirOf(path))
}

// dirOf is filepath.Dir without cleaning: the path has been resolved.
func dirOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// roDir reports a folder without any write bit. The system lets root write there all the same; the owner does not want it.
func roDir(dir string) bool {
	fi, err := os.Stat(dir)
	return err == nil && fi.Mode().Perm()&0o222 == 0
}

// mayWrite asks the system (access(2)), which knows of ACLs and read-only mounts; for root it fails on the latter only.
func mayWrite(path string) error { return unix.Access(path, unix.W_OK) }

// copyAttrs gives f the owner, the mode and the extended attributes of another file.
func copyAttrs(from string, f *os.File) error {
	fi, err := os.Stat(from)
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		// The file may belong to a group that this user is not in; EINVAL is the answer for ids that a user namespace does not
		// map. The mode is kept all the same.
		if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	// Before the mode: an ACL is an extended attribute and would change it.
	copyXattrs(from, f.Name())
	return f.Chmod(fi.Mode().Perm()) // after chown, which clears bits, and after the ACL, which sets them
}

// syncDir flushes the entries of a folder to the disk: fsync of a file does not, so a rename could be lost at a power failure
// (fsync(2)).
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems cannot; the renames are atomic all the same
		d.Close()
	}
}

// lockFile acquires an advisory lock (flock(2)) that the system releases when the process dies; ok is false when another process
// holds it. It does not wait. Where no lock file can be made it reports success: the lock only keeps processes out of each
// other's way, and callers compare hashes in any case.
func lockFile(path string) (unlock func(), ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}, true
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, false
	}
	return func() { f.Close() }, true
}

// ProcessRuns reports whether a process with this id exists on this machine, whoever it belongs to: kill(2) with signal
// 0 only asks, and EPERM is the answer for another user's.
func ProcessRuns(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// processStart is the start time of a process from /proc, in clock ticks since boot (field 22 of stat, proc(5)); "" where there is
// no /proc. Process ids are reused; id and start time together are not.
func processStart(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// Field 2 is the program's name in brackets and may hold blanks and brackets itself, so the fields are counted from
	// the last one.
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return ""
	}
	return f[19]
}

// Links is how many names (hard links) a file has, 0 where that cannot be found out. A change under one name shows under all, so
// approval requests mention it.
func Links(real string) int {
	var st syscall.Stat_t
	if syscall.Lstat(real, &st) != nil {
		return 0
	}
	return int(st.Nlink)
}
