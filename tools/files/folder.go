package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// MissingDirs are the folders that must be made for a file at path, outermost first.
func MissingDirs(path string) []string { return missingDirs(nil, filepath.Dir(path)) }

// missingDirs appends to have the folders that must be made for dir, outermost first, each once. A folder that cannot be
// looked at counts as there: making it will say why it cannot be.
func missingDirs(have []string, dir string) []string {
	var miss []string
	for {
		// Lstat: a link that dangles is there, and no folder can be made in its place.
		if _, err := os.Lstat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		miss = append([]string{dir}, miss...)
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	// Two files of a commit may share a new folder, which is made and removed once.
	for _, d := range miss {
		if !slices.Contains(have, d) {
			have = append(have, d)
		}
	}
	return have
}

// writableDir refuses folders in which no entry can be made or removed; for a missing folder its nearest parent counts. It is
// called while planning, so that a commit of many files does not fail half-way. Root passes mayWrite, hence the look at the mode.
func writableDir(dir string) error {
	for {
		fi, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}
		switch {
		case err != nil:
			return err
		case !fi.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		case fi.Mode().Perm()&0o222 == 0:
			return fmt.Errorf("the folder %s %w (mode %04o); make it writable first, so that files in it can be created and deleted", dir, ErrReadOnly, fi.Mode().Perm())
		}
		switch err := mayWrite(dir); {
		case errors.Is(err, syscall.EROFS):
			return explain(dir, err)
		case err != nil:
			return fmt.Errorf("no file can be created or removed in the folder %s: it does not belong to this user: %w", dir, fs.ErrPermission)
		}
		return nil
	}
}
