package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// whiteout reports whether a character device is overlayfs' mark for a deleted name: device 0/0 (the kernel's
// Documentation/filesystems/overlayfs.rst). Callers must have checked that it is a character device.
func whiteout(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return ok && s.Rdev == 0
}

// opaque reports whether a folder of the upper layer hides everything in the lower layer's folder. The mark is an attribute with the value
// "y". Its name begins with user.overlay because the overlay is mounted with userxattr.
func opaque(path string) bool {
	var b [8]byte
	n, err := unix.Lgetxattr(path, "user.overlay.opaque", b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

// clearMarks removes overlayfs' own attributes from a file that leaves the layer, as they have no meaning in the project, and file
// capabilities (security.capability, see capabilities(7)), with which a landed program would gain rights. It is best effort: a file
// whose list of attribute names exceeds 4096 bytes keeps them.
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

// isNotDir reports whether err means that a parent of the path is a file.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// openPlain opens a regular file. A program in the draft may have replaced it since the caller checked: by a link, which must not be
// followed, or by a named pipe, on which open would wait for a writer.
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

// copyFile copies a regular file with its mode and time of modification, and returns size and fileID of the copy. to must not exist. It
// uses raw descriptors, as os.File tries to register each file with the poller and a clone has tens of thousands of files.
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
		return fail("open", from, errors.Join(err, fs.ErrInvalid)) // a pipe was put there since the walk; a link fails to open
	}
	out, err := again(func() (int, error) {
		return unix.Open(to, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return fail("open", to, err)
	}
	defer unix.Close(out)
	// FICLONE (ioctl_ficlone(2)) shares blocks on Btrfs and XFS; elsewhere the bytes are copied.
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
	// Read last, as each of the steps above changes the inode's ctime, which is part of the id.
	if err := unix.Fstat(out, &st); err != nil {
		return fail("stat", to, err)
	}
	return size, idOf(st.Ino, st.Ctim.Sec, st.Ctim.Nsec), nil
}

// copyBytes copies the rest of a file inside the kernel (copy_file_range(2)), or with read and write where the file system cannot. It
// returns the number of bytes copied.
func copyBytes(out, in int) (n int64, err error) {
	for {
		k, err := again(func() (int, error) { return unix.CopyFileRange(in, nil, out, nil, 1<<30, 0) })
		if err != nil || k == 0 {
			// For files of procfs and the like the call returns 0 although they have bytes (before Linux 5.19), so only a read proves the end.
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

// again repeats a call that a signal interrupted (EINTR), as os.File would do; the Go runtime preempts goroutines with signals.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// fileID distinguishes files of the same size and time of modification: it is the inode number and its ctime in nanoseconds. A program
// can set the time of modification back, but not the ctime.
func fileID(fi fs.FileInfo) string {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return idOf(s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
	}
	return ""
}

// changedAt is the ctime of a file: when it was last written, renamed or given another mode. Programs can set the time of modification to
// any value, but not the ctime.
func changedAt(fi fs.FileInfo) time.Time {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return fi.ModTime()
}

// swap exchanges two paths of a file system in one step (renameat2(2)). Where the file system cannot, from takes the place of to and is gone.
func swap(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return replaceBy(from, to)
	}
	return err
}

// renameNew renames and fails with fs.ErrExist if the new name is taken. See renameIfFree for file systems that cannot do this in one step.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return renameIfFree(from, to)
	}
	return err
}

// bootID identifies this run of the operating system (random(4)); empty if the system does not tell.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// syncAll waits until the whole file system of a folder is on the disk: of an overlay's layer no list of written files exists.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}

// idOf formats a fileID. It is stored in manifests, so both ways to get one must agree.
func idOf(inode uint64, sec, nsec int64) string { return fmt.Sprintf("%d.%d.%d", inode, sec, nsec) }

// onDisk is the disk space that a file uses, in bytes. st_blocks counts units of 512 (inode(7)) and leaves out holes, unlike the size.
func onDisk(fi fs.FileInfo) int64 {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return fi.Size()
}
