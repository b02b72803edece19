//go:build unix

package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWriteKeepsModeOwnerAndAttributes(t *testing.T) {
	dir := t.TempDir()
	p := write(t, filepath.Join(dir, "a.sh"), "old")
	os.Chmod(p, 0o751)
	xattr := unix.Setxattr(p, "user.pillion", []byte("v"), 0) == nil
	root := os.Geteuid() == 0
	if root {
		os.Chown(p, 1234, 4321)
	}
	if err := Commit(bg, []Op{{Kind: Write, Path: p, Data: []byte("new"), Base: Hash([]byte("old"))}}, nil); err != nil {
		t.Fatal(err)
	}
	fi, _ := os.Stat(p)
	st := fi.Sys().(*syscall.Stat_t)
	if read(t, p) != "new" || fi.Mode().Perm() != 0o751 || root && (st.Uid != 1234 || st.Gid != 4321) {
		t.Errorf("%q %v %d:%d", read(t, p), fi.Mode(), st.Uid, st.Gid)
	}
	v := make([]byte, 8)
	if n, err := unix.Getxattr(p, "user.pillion", v); xattr && (err != nil || string(v[:n]) != "v") {
		t.Errorf("attribute: %q %v", v[:max(n, 0)], err)
	}
	clean(t, dir)
}

func TestWriteThroughSymlinkKeepsTheLink(t *testing.T) {
	dir := t.TempDir()
	target := write(t, filepath.Join(dir, "real", "a"), "old")
	link := filepath.Join(dir, "link")
	os.Symlink("real/a", link)
	if err := Commit(bg, []Op{{Kind: Write, Path: link, Data: []byte("new"), Base: Hash([]byte("old"))}}, nil); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Lstat(link); fi.Mode()&os.ModeSymlink == 0 || read(t, target) != "new" {
		t.Error("the link was replaced")
	}
	// Removing the link leaves its target.
	if err := Commit(bg, []Op{{Kind: Remove, Path: link}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(link); err == nil || read(t, target) != "new" {
		t.Error("the link is still there or its target gone")
	}
	clean(t, dir)
}

func TestHardLinksStayOneFile(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "old text")
	b := filepath.Join(dir, "b")
	os.Link(a, b)
	j := &DirJournal{filepath.Join(dir, "j")}
	if err := Commit(bg, []Op{{Kind: Write, Path: a, Data: []byte("new"), Base: Hash([]byte("old text"))}}, j); err != nil {
		t.Fatal(err)
	}
	if read(t, b) != "new" {
		t.Errorf("the other name has %q", read(t, b))
	}
	if p, _ := j.Pending(bg); len(p) != 0 {
		t.Error("the journal was not closed")
	}
}

func TestCommitRefuses(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "a")
	ro := write(t, filepath.Join(dir, "ro"), "ro")
	os.Chmod(ro, 0o444)
	rodir := filepath.Join(dir, "rodir")
	inro := write(t, filepath.Join(rodir, "x"), "x")
	os.Chmod(rodir, 0o555)
	defer os.Chmod(rodir, 0o755)
	h := func(s string) string { return Hash([]byte(s)) }
	for _, c := range []struct {
		name string
		ops  []Op
		want error
	}{
		{"another base", []Op{{Kind: Write, Path: a, Data: []byte("n"), Base: h("b")}}, ErrStale},
		{"vanished", []Op{{Kind: Write, Path: a + "1", Data: []byte("n"), Base: h("b")}}, ErrStale},
		{"new over old", []Op{{Kind: Write, Path: a, Data: []byte("n")}}, ErrExists},
		{"move over old", []Op{{Kind: Move, Path: a, NewPath: inro, Base: h("a")}}, ErrExists},
		{"read-only file", []Op{{Kind: Write, Path: ro, Data: []byte("n"), Base: h("ro")}}, ErrReadOnly},
		{"new in read-only folder", []Op{{Kind: Write, Path: filepath.Join(rodir, "y"), Data: []byte("n")}}, ErrReadOnly},
		{"remove in read-only folder", []Op{{Kind: Remove, Path: inro, Base: h("x")}}, ErrReadOnly},
		{"second of two", []Op{{Kind: Write, Path: a, Data: []byte("n"), Base: h("a")}, {Kind: Write, Path: ro, Data: []byte("n"), Base: h("ro")}}, ErrReadOnly},
		{"folder", []Op{{Kind: Write, Path: dir, Data: []byte("n")}}, ErrIsDir},
	} {
		if err := Commit(bg, c.ops, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if read(t, a) != "a" || read(t, ro) != "ro" {
		t.Error("something was written")
	}
	clean(t, dir)
	// The text of a file in a read-only folder can still change.
	if err := Commit(bg, []Op{{Kind: Write, Path: inro, Data: []byte("new"), Base: h("x")}}, nil); err != nil || read(t, inro) != "new" {
		t.Errorf("in place: %v", err)
	}
}

func TestSwapOfTwoNames(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "A"), write(t, filepath.Join(dir, "b"), "B")
	tmp := filepath.Join(dir, "c")
	err := Commit(bg, []Op{
		{Kind: Move, Path: a, NewPath: tmp, Base: Hash([]byte("A"))},
		{Kind: Move, Path: b, NewPath: a, Base: Hash([]byte("B"))},
	}, nil)
	if err != nil || read(t, a) != "B" || read(t, tmp) != "A" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(b); err == nil {
		t.Error("b is still there")
	}
	clean(t, dir)
}

func TestRemoveAndCreateOfOnePath(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "A")
	err := Commit(bg, []Op{{Kind: Remove, Path: a, Base: Hash([]byte("A"))}, {Kind: Write, Path: a, Data: []byte("N")}}, nil)
	if err != nil || read(t, a) != "N" {
		t.Errorf("%v %q", err, read(t, a))
	}
}

func TestCancelledCommitLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	err := Commit(ctx, []Op{{Kind: Write, Path: filepath.Join(dir, "new", "deep", "a"), Data: []byte("x")}}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if des, _ := os.ReadDir(dir); len(des) != 0 {
		t.Errorf("left %v", des)
	}
}
