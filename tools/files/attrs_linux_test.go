package files

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel takes a program's capabilities away when somebody writes to it, so a changed program must not have them either; every other
// attribute stays.
func TestAChangedProgramLosesItsCapabilities(t *testing.T) {
	p := write(t, filepath.Join(t.TempDir(), "program"), "x")
	// vfs_cap_data of revision 2: CAP_NET_RAW, permitted and effective.
	if err := unix.Setxattr(p, "security.capability", []byte("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0); err != nil {
		t.Skipf("needs root, and a file system that keeps capabilities: %v", err)
	}
	if err := unix.Setxattr(p, "user.note", []byte("kept"), 0); err != nil {
		t.Skipf("needs root, and a file system that keeps attributes: %v", err)
	}
	if err := Commit(bg, []Op{{Kind: Write, Path: p, Data: []byte("y"), Base: Hash([]byte("x"))}}, nil); err != nil || read(t, p) != "y" {
		t.Fatal(err)
	}
	if n, err := unix.Getxattr(p, "security.capability", nil); err == nil {
		t.Errorf("it has %d bytes of capabilities", n)
	}
	b := make([]byte, 10)
	if n, err := unix.Getxattr(p, "user.note", b); err != nil || string(b[:n]) != "kept" {
		t.Errorf("%q, %v", b[:max(n, 0)], err)
	}
}

// A commit leaves no file open, whichever way it writes, nor does a recovery: a session makes thousands.
func TestACommitLeavesNothingOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would close what was forgotten
	dir := t.TempDir()
	j := &DirJournal{filepath.Join(dir, "j")}
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	write(t, filepath.Join(dir, "a"), "x")
	write(t, filepath.Join(dir, "b"), "x")
	if err := os.Link(write(t, filepath.Join(dir, "linked"), "x"), filepath.Join(dir, "other name")); err != nil {
		t.Fatal(err)
	}
	ops := func(text, old string) (out []Op) {
		for _, name := range []string{"a", "b", "linked"} {
			out = append(out, Op{Kind: Write, Path: filepath.Join(dir, name), Data: []byte(text), Base: Hash([]byte(old))})
		}
		return out
	}
	commit := func(text, old string) {
		t.Helper()
		if err := Commit(bg, ops(text, old), j); err != nil {
			t.Fatal(err)
		}
	}
	commit("y", "x") // opens what stays open for the life of the process
	commit("x", "y")
	before := open()
	for range 5 {
		commit("y", "x")
		commit("x", "y")
		// One that dies before its second step, and is recovered.
		steps := 0
		crash = func(point string) error {
			if point == "apply" {
				steps++
			}
			if steps == 2 {
				return errCrash
			}
			return nil
		}
		err := Commit(bg, ops("z", "x"), j)
		crash = nil
		pretendDead(t, j)
		if rs, e := Recover(bg, j); err == nil || e != nil || len(rs) != 1 {
			t.Fatalf("%v, %v, %v", err, rs, e)
		}
		commit("x", "z")
	}
	if after := open(); after > before {
		t.Errorf("%d files more are open", after-before)
	}
}
