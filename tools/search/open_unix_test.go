//go:build unix

package search

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that was replaced by a FIFO since the walk saw it is opened without waiting for a writer.
func TestOpeningAFIFODoesNotWait(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (int, error){
		"by its path":   func() (int, error) { return openExact(pipe, 0) },
		"in its folder": func() (int, error) { return openat(unix.AT_FDCWD, pipe, 0) },
	} {
		done := make(chan error, 1)
		go func() {
			fd, err := open()
			if err == nil {
				err = unix.Close(fd)
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(2 * time.Minute): // reached only where it waits for ever
			t.Errorf("%s: it waits for a writer", name)
		}
	}
}
