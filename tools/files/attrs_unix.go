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

// mounted is isMount but in tests.
var mounted = isMount

// inPlace says that a file must keep its inode, so that it is overwritten instead of replaced: it has other names, it
// belongs to somebody we cannot give it back to, its folder takes no new files, or something is mounted on it. A rename would part
// the hard links, change the owner, or fail.
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

// roDir reports a folder without any write bit: a wish of its owner that root respects here too.
func roDir(dir string) bool {
	fi, err := os.Stat(dir)
	return err == nil && fi.Mode().Perm()&0o222 == 0
}

// mayWrite asks the system, which knows of ACLs and read-only mounts; root may always.
func mayWrite(path string) error { return unix.Access(path, unix.W_OK) }

// copyAttrs gives f the owner, the mode and the extended attributes of another file.
func copyAttrs(from string, f *os.File) error {
	fi, err := os.Stat(from)
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		// Our own files may belong to another of our groups; where that cannot be kept the mode still is.
		if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	// Before the mode: an ACL is an extended attribute and would change it.
	copyXattrs(from, f.Name())
	return f.Chmod(fi.Mode().Perm()) // after chown, which clears bits, and after the ACL, which sets them
}

// syncDir flushes the entries of a folder to the disk.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems cannot; the renames are atomic all the same
		d.Close()
	}
}

// lockFile acquires an advisory lock (flock(2)) that the system releases when the process dies; ok is false when
// another process holds it. Where no lock file can be made it reports success: locking is a help, and the caller
// compares in any case.
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

// processStart is the start time of a process as /proc tells it, in clock ticks since boot (field 22 of stat, proc(5)); ""
// where there is none. With the process id it names a process for good.
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

// Links is how many names a file has, 0 for one that cannot be looked at. A change under one name shows under all.
func Links(real string) int {
	var st syscall.Stat_t
	if syscall.Lstat(real, &st) != nil {
		return 0
	}
	return int(st.Nlink)
}
