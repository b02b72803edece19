// Package whole writes Pillion's own small files (settings, keys, caches) atomically: a reader sees the old text or the new one, never a
// part, even after a crash. It takes no lock: of two writers the last one wins. Files of the project are written by package files, which
// locks and journals them.
//
//	err := whole.Write(filepath.Join(state, "auth.json"), text, 0o600)
package whole

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces or creates a file with this text and mode. Missing folders are created with mode 0700, because what lies
// in them may be secret. A symbolic link is replaced, not followed; a caller who wants its target resolves it first. After
// an error the old file is as it was and the temporary one is removed.
func Write(path string, text []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// In the same folder, because a rename works only within one file system. CreateTemp uses mode 0600, so a secret is
	// at no moment readable by others.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err == nil && mode != 0o600 {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		// Without it a file system may store the rename before the text, and a power cut leaves an empty file.
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
