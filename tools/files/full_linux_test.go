package files

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFullDiskTearsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("needs the right to mount a small file system:", err)
	}
	defer unix.Unmount(dir, 0)
	a, b := write(t, filepath.Join(dir, "a"), "a"), write(t, filepath.Join(dir, "b"), "b")
	big := bytes.Repeat([]byte("x"), 200<<10)
	err := Commit(bg, []Op{
		{Kind: Write, Path: a, Data: big, Base: Hash([]byte("a"))},
		{Kind: Write, Path: b, Data: big, Base: Hash([]byte("b"))},
	}, &DirJournal{filepath.Join(t.TempDir(), "j")})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("error %v", err)
	}
	if read(t, a) != "a" || read(t, b) != "b" {
		t.Error("a file was changed")
	}
	clean(t, dir)
}
