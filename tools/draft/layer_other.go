//go:build !linux

package draft

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
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

// cloneFile is not offered: the copy is plain.
func cloneFile(_, _ *os.File) error { return errors.ErrUnsupported }

// fileID is not known in one way on the other systems; size and time have to do.
func fileID(fs.FileInfo) string { return "" }
