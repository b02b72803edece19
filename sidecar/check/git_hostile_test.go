package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// An unpacked archive may hold a .git that calls itself a partial clone: git would fetch each object that is not there,
// with the program that the same .git names. A check reads objects in such a folder without running anything.
func TestARepositoryThatWantsToFetchRunsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	root, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	mark := filepath.Join(home, "ran")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q")
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("add", "a.go")
	run("commit", "-qm", "one")
	blob := run("rev-parse", "HEAD:a.go")
	for _, kv := range [][2]string{
		{"remote.origin.url", "/nowhere"}, {"remote.origin.promisor", "true"}, {"core.repositoryformatversion", "1"}, {"extensions.partialClone", "origin"},
		{"remote.origin.uploadpack", "sh -c 'touch " + mark + "; exit 1'"},
	} {
		run("config", kv[0], kv[1])
	}
	if err := os.Remove(filepath.Join(root, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	// The repository does what it is meant to do: else this test would pass for another reason.
	plain := exec.Command("git", "cat-file", "-p", blob)
	plain.Dir = root
	_ = plain.Run()
	if _, err := os.Stat(mark); err != nil {
		t.Skip("this git does not fetch missing objects:", err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	g := git{root}
	for _, args := range [][]string{{"cat-file", "--batch"}, {"cat-file", "-p", blob}, {"diff", "HEAD"}, {"show", "HEAD"}, {"fetch", "origin"}} {
		if _, err := g.run(t.Context(), strings.NewReader(blob+"\n"), args...); err == nil && args[0] == "fetch" {
			t.Errorf("git %q went through", args)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("git %q ran the repository's program", args)
		}
	}
}
