package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A home folder in /tmp, as in containers and test rigs, closes /tmp; there is a temporary folder all the same.
func TestAHomeInTheTemporaryFolder(t *testing.T) {
	needSandbox(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "work")
	put(t, filepath.Join(root, "a.txt"), "a\n")
	box := NewSandbox(SandboxOptions{Root: root, Dir: root, Home: home, Getenv: func(string) string { return "" }})
	out, err := (&Runner{}).Run(context.Background(), Command{
		Text: `f=$(mktemp) && echo x > "$f" && rm "$f" && echo made; echo x > ../outside; test -e ../outside || echo kept`,
		Dir:  root, Sandbox: box, Shell: needBash(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := out.Output.Head; !strings.Contains(text, "made") || !strings.Contains(text, "kept") {
		t.Errorf("%s", text)
	}
}

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
	box := &Sandbox{Processes: 100}
	ended := Outcome{Output: Output{Head: "bash: fork: retry: Resource temporarily unavailable\nend\n"}}
	if said := box.Passed(ended); !strings.Contains(said, "100 processes") {
		t.Errorf("it said %q", said)
	}
	if said := box.Passed(Outcome{Output: Output{Head: "end\n"}}); said != "" {
		t.Errorf("it said %q", said)
	}
	ended.Exit = 1
	if said := box.Passed(ended); said != "" || box.Stopped(ended) == "" {
		t.Errorf("it said %q, beside %q", said, box.Stopped(ended))
	}
}
