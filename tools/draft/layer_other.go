//go:build !linux

package draft

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Without overlays there are no whiteouts: layers of clones are compared with their manifest.

func whiteout(fs.FileInfo) bool { return false }
func opaque(string) bool        { return false }
func clearMarks(string)         {}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// openPlain opens a file that was a regular one a moment ago.
func openPlain(path string) (*os.File, error) {
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid})
	}
	return os.Open(path)
}

// copyFile copies a regular file with mode and time of modification, and returns its size and its fileID.
func copyFile(from, to string, fi fs.FileInfo) (size int64, id string, err error) {
	in, err := openPlain(from)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	size, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(fi.Mode().Perm())
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chtimes(to, time.Time{}, fi.ModTime())
	}
	return size, "", err
}

// fileID is not known in one way on the other systems; size and time have to do.
func fileID(fs.FileInfo) string { return "" }

// onDisk is what a file takes, in bytes, as far as its size says.
func onDisk(fi fs.FileInfo) int64 { return fi.Size() }
