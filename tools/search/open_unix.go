//go:build unix

package search

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// folder is an open folder: its entries are opened relative to it, without resolving the whole path again. It is a file descriptor
// and must be closed.
type folder int

// openFolder opens a folder by a path without symbolic links. Its entries are then opened relative to it, even if its name is
// replaced. O_DIRECTORY makes it an error if a file has replaced the folder.
func openFolder(dir string) (folder, error) {
	fd, err := openExact(dir, unix.O_DIRECTORY)
	return folder(fd), err
}

// openDir is openFolder for listing.
func openDir(dir string) (*os.File, error) {
	fd, err := openExact(dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// open opens a file of the folder. With a path that contains the folder's name, every link would be resolved again.
func (d folder) open(name string) (file, error) {
	fd, err := openat(int(d), name, unix.O_NOFOLLOW) // a link that replaced the file may lead anywhere
	return file(fd), err
}

// modTime calls lstat but converts only the time: a glob calls it for every name that it finds.
func (d folder) modTime(name string) (time.Time, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return time.Time{}, err
	}
	return time.Unix(int64(st.Mtim.Sec), int64(st.Mtim.Nsec)), nil
}

func (d folder) Close() error { return unix.Close(int(d)) }

// file is an open file. It is not an os.File, because the os package would register each file with the poller, which takes a
// quarter of the time of a search through many small files. It must be closed; there is no finalizer.
type file int

// open opens a file by a path without symbolic links.
func open(path string) (file, error) {
	fd, err := openExact(path, 0)
	return file(fd), err
}

// openExact opens a path that was free of symbolic links when the permission rules were checked. A program that may write to the
// project could put a link there afterwards, so that a file outside the project is shown. On Linux the kernel refuses a link
// anywhere in the path; elsewhere only at its end.
func openExact(path string, flags int) (int, error) {
	for {
		fd, err := openWithoutLinks(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW|flags)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// openat is openat(2). It is repeated when a signal interrupts it; Go's preemption sends signals.
func openat(dir int, path string, flags int) (int, error) {
	for {
		// O_NONBLOCK: a FIFO that replaced a file must not block the search.
		fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|flags, 0)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Read is read(2). The files are not registered with Go's poller: that would cost two calls for each of 50,000 files.
func (f file) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Close must be called once; a second call could close another file that got the same number.
func (f file) Close() error { return unix.Close(int(f)) }

// modTime is when a path was last changed; for a symbolic link, the time of the link itself. Results are sorted by it.
func modTime(path string) (time.Time, error) {
	return folder(unix.AT_FDCWD).modTime(filepath.Clean(path))
}
