package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// mount mounts one file on another until the test ends; false where this process may not.
func mount(t *testing.T, from, on string) bool {
	t.Helper()
	err := syscall.Mount(from, on, "", syscall.MS_BIND, "")
	if errors.Is(err, syscall.EPERM) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(on, syscall.MNT_DETACH) })
	return true
}

// kept is three files that must keep their inodes: one with a second name, one on which something is mounted, and one that shrinks.
func kept(t *testing.T, dir string) (ops []Op, old, new map[string]string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("linked"), "linked\n")
	if err := os.Link(at("linked"), at("second name")); err != nil {
		t.Fatal(err)
	}
	write(t, at("elsewhere"), "mounted, a long first text\n")
	write(t, at("mounted"), "covered\n")
	if !mount(t, at("elsewhere"), at("mounted")) {
		t.Skip("needs the right to mount")
	}
	old = tree(dir)
	ops = []Op{
		{Kind: Write, Path: at("linked"), Data: []byte("linked, and longer than before\n"), Base: Hash([]byte("linked\n"))},
		{Kind: Write, Path: at("mounted"), Data: []byte("mounted 2\n"), Base: Hash([]byte("mounted, a long first text\n"))},
		{Kind: Write, Path: at("new"), Data: []byte("new\n")},
	}
	new = map[string]string{at("new"): "new\n"}
	for _, name := range []string{"linked", "second name"} {
		new[at(name)] = string(ops[0].Data)
	}
	for _, name := range []string{"mounted", "elsewhere"} {
		new[at(name)] = string(ops[1].Data)
	}
	return ops, old, new
}

// Files that cannot be replaced are overwritten, and at no point does a crash leave a mixture of two texts behind.
func TestCrashAtEveryPointWithFilesThatKeepTheirInode(t *testing.T) {
	outcomes := dieEverywhere(t, 8, tree, func(dir string, _ int) ([]Op, map[string]string, map[string]string) { return kept(t, dir) })
	if outcomes[Finished] == 0 || outcomes[RolledBack] == 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// A mount that the plan did not see (an old kernel, or one made since) is found by the rename, and journalled before its bytes are touched.
func TestCrashAtEveryPointWithAMountFoundByTheRename(t *testing.T) {
	mounted = func(string) bool { return false }
	defer func() { mounted = isMount }()
	for _, ops := range []int{2, 1} { // the mounted file alone is a commit of one step, which has no backup
		dieEverywhere(t, 5, tree, func(dir string, _ int) ([]Op, map[string]string, map[string]string) {
			all, old, new := kept(t, dir)
			if ops == 2 {
				return all, old, new
			}
			delete(new, filepath.Join(dir, "new"))
			for _, name := range []string{"linked", "second name"} {
				new[filepath.Join(dir, name)] = "linked\n"
			}
			return all[1:2], old, new
		})
	}
}
