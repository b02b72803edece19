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

// copyFile copies a regular file with mode and time of modification, and returns its size and its fileID. It works on plain descriptors:
// os.File asks for each whether it can be waited for, and a clone has tens of thousands.
func copyFile(from, to string, fi fs.FileInfo) (size int64, id string, err error) {
	fail := func(op, path string, err error) (int64, string, error) {
		return 0, "", &fs.PathError{Op: op, Path: path, Err: err}
	}
	in, err := again(func() (int, error) {
		return unix.Open(from, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return fail("open", from, err)
	}
	defer unix.Close(in)
	var st unix.Stat_t
	if err := unix.Fstat(in, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fail("open", from, errors.Join(err, fs.ErrInvalid)) // a link or a pipe was put there since
	}
	out, err := again(func() (int, error) {
		return unix.Open(to, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return fail("open", to, err)
	}
	defer unix.Close(out)
	// FICLONE shares blocks on Btrfs and XFS; where that is not supported the bytes are copied.
	if st.Size > 0 {
		if unix.IoctlFileClone(out, in) == nil {
			size = st.Size
		} else if size, err = copyBytes(out, in); err != nil {
			return fail("copy", to, err)
		}
	}
	if err := unix.Fchmod(out, uint32(fi.Mode().Perm())); err != nil {
		return fail("chmod", to, err)
	}
	at := unix.NsecToTimespec(fi.ModTime().UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fail("utimensat", to, err)
	}
	// Taken last, as each of the steps above changes the time of the last change.
	if err := unix.Fstat(out, &st); err != nil {
		return fail("stat", to, err)
	}
	return size, idOf(st.Ino, st.Ctim.Sec, st.Ctim.Nsec), nil
}

// copyBytes copies what is left of a file within the kernel (copy_file_range(2)), or by hand where a file system cannot.
func copyBytes(out, in int) (n int64, err error) {
	for {
		k, err := again(func() (int, error) { return unix.CopyFileRange(in, nil, out, nil, 1<<30, 0) })
		if err != nil || k == 0 {
			// Some file systems of the kernel's own say 0 of a file that has bytes (before Linux 5.19), so the end is believed to a read only.
			break
		}
		n += int64(k)
	}
	buf := make([]byte, 32<<10)
	for {
		k, err := again(func() (int, error) { return unix.Read(in, buf) })
		if err != nil || k == 0 {
			return n, err
		}
		for rest := buf[:k]; len(rest) > 0; {
			w, err := again(func() (int, error) { return unix.Write(out, rest) })
			if err != nil {
				return n, err
			}
			rest, n = rest[w:], n+int64(w)
		}
	}
}

// again repeats a call that a signal has interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// fileID tells a file from another with the same size and time: inode, and time of its last change in nanoseconds. A program can set
// the time of modification back, not that of the last change.
func fileID(fi fs.FileInfo) string {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return idOf(s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
	}
	return ""
}

func idOf(inode uint64, sec, nsec int64) string { return fmt.Sprintf("%d.%d.%d", inode, sec, nsec) }

// onDisk is what a file takes, in bytes. Its size says too much where it has holes; st_blocks counts units of 512 (inode(7)).
func onDisk(fi fs.FileInfo) int64 {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return fi.Size()
}
