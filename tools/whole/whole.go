// Package whole writes small files of ours whole: whoever reads one sees the old text or the new one, never half of
// it, whatever dies meanwhile. Files of the project are not its business; package files knows their locks and journals.
//
//	err := whole.Write(filepath.Join(state, "auth.json"), text, 0o600)
package whole

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file's text, or makes the file, with this mode. Folders that are missing are made, for the owner
// alone. A link is replaced like a file: who wants to write through one resolves it first.
func Write(path string, text []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err == nil && mode != 0o600 {
		err = tmp.Chmod(mode)
	}
	if err == nil {
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
