package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames only when the new name is free, in one step (renameat2(2), RENAME_NOREPLACE), so that a file that another
// program creates at that moment is not lost. The error matches fs.ErrExist when the name is taken.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // file systems that cannot
		return renameFree(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
