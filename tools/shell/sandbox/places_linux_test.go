package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a tool makes in the home folder on first use has to be there before: the sandbox does not let it.
func TestCachesOfTheMachinesToolsAreThere(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"npm", "go"} {
		put(t, filepath.Join(bin, name), "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	places := cachePlaces(home, func(name string) string { return map[string]string{"GOCACHE": "/elsewhere"}[name] })
	for name, want := range map[string]bool{".npm": true, "go/pkg": true, ".cache/go-build": false, ".cargo/registry": false, ".cache/pip": false} {
		if _, err := os.Stat(filepath.Join(home, name)); err == nil != want {
			t.Errorf("%s: %v, want %v", name, err == nil, want)
		}
	}
	if len(existing(places)) < 2 {
		t.Errorf("writable are %q", existing(places))
	}
}

func TestACommandThatWentAgainstTheProcessLimitIsTold(t *testing.T) {
	box := &Box{Processes: 100}
	ended := Result{Output: "bash: fork: retry: Resource temporarily unavailable\nend\n"}
	if said := box.Passed(ended); !strings.Contains(said, "100 processes") {
		t.Errorf("it said %q", said)
	}
	if said := box.Passed(Result{Output: "end\n"}); said != "" {
		t.Errorf("it said %q", said)
	}
	ended.Exit = 1
	if said := box.Passed(ended); said != "" || box.Stopped(ended) == "" {
		t.Errorf("it said %q, beside %q", said, box.Stopped(ended))
	}
}

func TestAForgedGitFileOpensNothing(t *testing.T) {
	base := t.TempDir()
	victim, root := filepath.Join(base, "victim"), filepath.Join(base, "project")
	put(t, filepath.Join(victim, "config"), "")
	put(t, filepath.Join(victim, "commondir"), ".")
	put(t, filepath.Join(root, ".git"), "gitdir: "+victim+"\n")
	if g := gitPlaces(root); len(g.writable) != 0 {
		t.Errorf("writable %q", g.writable)
	}
	os.Remove(filepath.Join(root, ".git"))
	put(t, filepath.Join(root, ".git", "worktrees", "w", "gitdir"), filepath.Join(victim, ".git")+"\n")
	put(t, filepath.Join(victim, ".git"), "gitdir: /elsewhere\n")
	if g := gitPlaces(root); len(g.writable) != 0 {
		t.Errorf("writable %q", g.writable)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
