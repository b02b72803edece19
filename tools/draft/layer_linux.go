package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// whiteout is overlayfs' mark for a name that is gone: a character device 0/0 (Documentation/filesystems/overlayfs.rst).
func whiteout(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return ok && s.Rdev == 0
}

// opaque reports overlayfs' mark on a folder in which nothing of the lower layer shows. The attribute is user.overlay.*
// because the overlay is mounted with userxattr. Only "y" is that mark.
func opaque(path string) bool {
	var b [8]byte
	n, err := unix.Lgetxattr(path, "user.overlay.opaque", b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

// clearMarks takes overlayfs' own attributes off a file that leaves the layer, and rights that a program of root's would have
// (security.capability, see capabilities(7)). The marks belong to the layer and mean nothing in the project. A list
// of names longer than 4096 bytes is left as it is.
func clearMarks(path string) {
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		return
	}
	for _, name := range splitNames(buf[:n]) {
		if name == "security.capability" || len(name) > 13 && name[:13] == "user.overlay." {
			_ = unix.Lremovexattr(path, name)
		}
	}
}

// splitNames splits the list of llistxattr(2): names, each ended by a zero byte.
func splitNames(b []byte) (out []string) {
	for start, i := 0, 0; i < len(b); i++ {
		if b[i] == 0 {
			out, start = append(out, string(b[start:i])), i+1
		}
	}
	return out
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// openPlain opens a file that was a regular one a moment ago. What runs in the draft may have put a link or a named pipe
// there since: neither is followed or waited for.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid})
	}
	return f, nil
}

// cloneFile makes to share the blocks of from where the file system can (FICLONE).
func cloneFile(to, from *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// fileID tells a file from another with the same size and time: inode, and time of its last change in nanoseconds. A program can set
// the time of modification back, not that of the last change.
func fileID(fi fs.FileInfo) string {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%d.%d", s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
	}
	return ""
}
