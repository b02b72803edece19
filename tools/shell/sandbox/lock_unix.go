//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockFolder locks a folder until unlock is called or this process ends, and sets the folder's modification time for sweepCaches.
// The result is nil when another process, or another call in this one, holds the lock, or when the lock file cannot be opened.
func lockFolder(dir string) (unlock func()) {
	// flock(2) belongs to the open file, so the kernel releases it after a crash.
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
