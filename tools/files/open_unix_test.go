//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that a program replaces by a FIFO just before it is opened is refused, and opening it does not wait for a writer.
func TestAFileThatBecomesAFIFOIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := openRaw(path, func(path string, flags int) (int, error) {
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644)); err != nil {
			t.Fatal(err)
		}
		if flags&unix.O_NONBLOCK == 0 {
			t.Error("opening the FIFO would wait for a writer")
			flags |= unix.O_NONBLOCK
		}
		return unix.Open(path, flags, 0)
	})
	if !errors.Is(err, ErrNotRegular) {
		t.Errorf("%v", err)
	}
}
