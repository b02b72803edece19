//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// names is every file's text and every link's target below dir.
func names(dir string) map[string]string {
	out := tree(dir)
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(p)
			out[p] = "-> " + target
		}
		return nil
	})
	return out
}

// links is a commit in which links come, go, change, and change places with files.
func links(t *testing.T, dir string) (ops []Op, new map[string]string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("target"), "target\n")
	write(t, at("file"), "target") // its bytes are the path that it will lead to
	write(t, at("plain"), "plain\n")
	for link, to := range map[string]string{"gone": "target", "other": "target", "wasLink": "target", "dangling": "nowhere"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	ops = []Op{
		{Kind: Write, Path: at("plain"), Data: []byte("plain 2\n"), Base: Hash([]byte("plain\n"))},
		{Kind: Link, Path: at("file"), Data: []byte("target"), Base: Hash([]byte("target"))},
		{Kind: Remove, Path: at("gone")},
		{Kind: Link, Path: at("other"), Data: []byte("plain")},
		{Kind: Remove, Path: at("wasLink")}, {Kind: Write, Path: at("wasLink"), Data: []byte("own\n"), Mode: 0o755},
		{Kind: Remove, Path: at("dangling")}, {Kind: Write, Path: at("dangling"), Data: []byte("found\n")},
		{Kind: Link, Path: at("fresh/deep/link"), Data: []byte("../../target")},
	}
	new = map[string]string{
		at("target"): "target\n", at("plain"): "plain 2\n", at("file"): "-> target", at("other"): "-> plain", at("wasLink"): "own\n",
		at("dangling"): "found\n", at("fresh/deep/link"): "-> ../../target",
	}
	return ops, new
}

func TestLinksComeAndGoWithACommit(t *testing.T) {
	dir := t.TempDir()
	ops, new := links(t, dir)
	if err := Commit(bg, ops, nil); err != nil || !equal(names(dir), new) {
		t.Fatalf("%v\n%v", err, names(dir))
	}
	if fi, err := os.Stat(filepath.Join(dir, "wasLink")); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	// What is there must be what is known to be there.
	for _, op := range []Op{
		{Kind: Link, Path: filepath.Join(dir, "plain"), Data: []byte("target")},
		{Kind: Link, Path: filepath.Join(dir, "plain"), Data: []byte("target"), Base: Hash([]byte("another"))},
	} {
		if err := Commit(bg, []Op{op}, nil); !errors.Is(err, ErrExists) && !errors.Is(err, ErrStale) {
			t.Errorf("%+v: %v", op, err)
		}
	}
	if !equal(names(dir), new) {
		t.Error("a refused commit changed something")
	}
}

// As TestCrashAtEveryPoint: all of it or nothing, and nothing that a link leads to.
func TestCrashAtEveryPointWithLinks(t *testing.T) {
	outcomes := dieEverywhere(t, 15, names, func(dir string, _ int) ([]Op, map[string]string, map[string]string) {
		ops, new := links(t, dir)
		return ops, names(dir), new
	})
	if outcomes[Finished] == 0 || outcomes[RolledBack] == 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}
