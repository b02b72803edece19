//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Anchors hold nothing open here: without names for open folders, a folder that is swapped for a link between the look and the
// write is not noticed.
type Anchors struct{}

// At is the path itself, after a look that its folder is no symbolic link by now.
func (a *Anchors) At(path string) (string, error) {
	dir := filepath.Dir(path)
	now, err := filepath.EvalSymlinks(dir)
	if err == nil && now != dir {
		// Other spellings (Windows' short names, letter case) are the same folder.
		x, err1 := os.Lstat(dir)
		y, err2 := os.Lstat(now)
		if err1 != nil || err2 != nil || !os.SameFile(x, y) {
			return "", &os.PathError{Op: "open", Path: dir, Err: ErrSwapped}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return path, nil
}

// Close does nothing.
func (a *Anchors) Close() {}
