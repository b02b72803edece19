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

// Only overlays have whiteouts and marks. Without Linux every draft is a clone, which is compared with its manifest.

func whiteout(fs.FileInfo) bool { return false }
func opaque(string) bool        { return false }
func clearMarks(string)         {}

// isNotDir reports whether err means that a parent of the path is a file.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// openPlain opens a regular file and refuses links and pipes. One could still take the file's place between the check and the open, as
// O_NOFOLLOW does not exist on every system.
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

// fileID is empty: there is no portable inode number, so size and time of modification must tell files apart.
func fileID(fs.FileInfo) string { return "" }

// onDisk is a file's size in bytes, which exceeds its use of the disk where it has holes.
func onDisk(fi fs.FileInfo) int64 { return fi.Size() }

// changedAt is the time of modification: the standard library has no other on every system.
func changedAt(fi fs.FileInfo) time.Time { return fi.ModTime() }

// bootID is empty: there is no portable way to notice a crash of the machine.
func bootID() string { return "" }

// syncAll does nothing: there is no portable way to write a file system to the disk.
func syncAll(string) error { return nil }

// swap puts from into the place of to; no system call exchanges both on every system.
func swap(from, to string) error { return replaceBy(from, to) }

// renameNew renames and fails with fs.ErrExist if the new name is taken.
func renameNew(from, to string) error { return renameIfFree(from, to) }
