package files

import (
	"io/fs"
	"os"
)

// renameFree looks first: the best there is where the system has no exclusive rename.
func renameFree(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
