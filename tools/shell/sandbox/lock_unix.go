//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockFolder takes a folder for this process, until unlock is called or the process ends; nil: another one has it. It
// notes the time of use.
func lockFolder(dir string) (unlock func()) {
	// flock(2) belongs to the open file, so a crash frees it and no stale lock is left.
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
	return func() { _ = f.Close() }
}
