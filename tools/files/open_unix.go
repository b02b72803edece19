//go:build unix

package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenRaw opens a regular file for reading and never waits: neither for a writer of a FIFO nor for the next event of a file under
// /proc or /sys. A read that waits could not be canceled and would hold up the turn.
func OpenRaw(path string) (*Raw, error) {
	return openRaw(path, func(path string, flags int) (int, error) { return unix.Open(path, flags, 0) })
}

// OpenExact opens the regular file at a path without symbolic links, as Real returns it: should a part of the path have
// become a link since it was judged, it fails with ErrSwapped instead of opening what the link leads to.
func OpenExact(real string) (*Raw, error) { return openRaw(real, openExact) }

// noFollow makes opening a symbolic link fail (open(2)).
const noFollow = unix.O_NOFOLLOW

// openName opens the file that has a name in a folder, and no link of that name.
func openName(path string) (*Raw, error) {
	return openRaw(path, func(path string, flags int) (int, error) { return unix.Open(path, flags|unix.O_NOFOLLOW, 0) })
}

// readName reads the file that has a name in a folder, and no link of that name.
func readName(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// chmod sets the mode of the file that has a name in a folder, and of no link of that name.
func chmod(path string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|noFollow|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(mode)
}

// openRaw opens a regular file for reading and nothing else: devices and FIFOs can block or
// act when they are opened.
func openRaw(path string, open func(path string, flags int) (int, error)) (*Raw, error) {
	fi, err := os.Stat(path) // before opening: opening a device can already do something
	if err != nil {
		return nil, err
	}
	if err := kind(path, fi); err != nil {
		return nil, err
	}
	// O_NONBLOCK: the file may have become a FIFO since the look above, and opening one waits for a writer.
	fd, err := open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if fi, err = f.Stat(); err == nil {
		err = kind(path, fi)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Raw{Size: fi.Size(), Mode: fi.Mode(), Info: fi, file: f, read: func(p []byte) (int, error) {
		for {
			// The system call itself, because os.File would wait until the descriptor becomes readable.
			n, err := unix.Read(fd, p)
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return 0, fmt.Errorf("%s %w", path, ErrBlocks)
			case err != nil:
				return 0, &os.PathError{Op: "read", Path: path, Err: err}
			case n == 0 && len(p) > 0:
				return 0, io.EOF
			default:
				return n, nil
			}
		}
	}}, nil
}
