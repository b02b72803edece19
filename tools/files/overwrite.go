package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// overwrite changes a file's bytes and puts the old ones back when that fails.
func overwrite(path string, old, new []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	put := func(b []byte) error {
		if _, err := f.WriteAt(b, 0); err != nil {
			return err
		}
		if err := f.Truncate(int64(len(b))); err != nil {
			return err
		}
		return f.Sync()
	}
	if err := put(new); err != nil {
		if e := put(old); e != nil {
			return fmt.Errorf("%w; and the old text could not be put back: %v", err, e)
		}
		return err
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := copyAttrs(from, f); err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}

// explain words a system error for the one who must act; every failed commit leaves the files as they were.
func explain(path string, err error) error {
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCrash) || errors.Is(err, ErrStale):
		return err
	case errors.Is(err, syscall.ENOSPC):
		hint = "the disk is full; free some space and try again"
	case errors.Is(err, syscall.EDQUOT):
		hint = "the disk quota is used up; free some space and try again"
	case errors.Is(err, syscall.EROFS):
		hint = "the file system is mounted read-only"
	case errors.Is(err, fs.ErrPermission):
		hint = "check the permissions of the file and its folder"
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %w", path, ErrExists)
	}
	if hint == "" {
		return fmt.Errorf("cannot write %s, nothing was changed: %w", path, err)
	}
	return fmt.Errorf("cannot write %s, nothing was changed (%s): %w", path, hint, err)
}
