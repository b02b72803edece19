//go:build unix && cgo

package builtin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// containedSession has a repository, and a git configuration that includes a file which itself includes one: git reads
// the last, which containment does not know of.
func containedSession(t *testing.T) *bashSession {
	t.Helper()
	if ok, why := sandbox.CanContain(); !ok {
		t.Skip(why)
	}
	s := newBashSession(t, `{}`)
	for name, text := range map[string]string{
		".gitconfig": "[include]\n\tpath = ~/one\n", "one": "[include]\n\tpath = ~/two\n", "two": "[user]\n\tname = Two\n",
	} {
		if err := os.WriteFile(filepath.Join(s.env.Home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "init", "-q", s.env.Root)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("git: %v %s", err, out)
	}
	home := s.env.Home
	s.env.Shell.Environ = func() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home} }
	return s
}

func TestContainmentAsksBeforeItIsLifted(t *testing.T) {
	s := containedSession(t)
	s.answer = permission.Reply{Kind: permission.Reject}
	r, err := s.call(map[string]any{"command": "git status --short"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 1 || !strings.Contains(s.asked[0].Title, filepath.Join(s.env.Home, "two")) {
		t.Fatalf("asked %s", s.asks())
	}
	if !strings.Contains(r.Output, "ran contained") || r.Metadata["exit"] == 0 {
		t.Errorf("%s", r.Output)
	}
	s.answer = permission.Reply{Kind: permission.Once}
	if r, err = s.call(map[string]any{"command": "git status --short"}); err != nil || r.Metadata["exit"] != 0 || !strings.Contains(r.Output, "a.txt") {
		t.Errorf("%v %s", err, r.Output)
	}
}

// What the person has said yes to runs as they were told, not contained.
func TestWhatWasAskedIsNotContained(t *testing.T) {
	s := containedSession(t)
	out := filepath.Join(s.env.Home, "kept")
	if err := os.WriteFile(out, []byte("outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.call(map[string]any{"command": "cat " + out})
	if err != nil || !strings.Contains(r.Output, "outside") || len(s.asked) == 0 {
		t.Errorf("%v %s, asked %s", err, r.Output, s.asks())
	}
}

func TestWhereNothingContainsFewerCommandsAreSilent(t *testing.T) {
	s := newBashSession(t, `{}`)
	s.answer = permission.Reply{Kind: permission.Reject}
	for _, can := range []bool{true, false} {
		s.env.Shell.Containable = func() (bool, string) { return can, "for the test" }
		for command, silentAnyway := range map[string]bool{
			"ls -la": true, "cat a.txt | wc -l": true, "echo hi": true, "cd sub && pwd": true,
			"sed -n 1p a.txt": false, "sort a.txt": false, "find . -name a.txt": false, "rg one": false,
		} {
			x := Explain(t.Context(), s.env, command, "", s.gate)
			if want := can || silentAnyway; (x.Decision == "allow") != want {
				t.Errorf("contained %v: %s: %s (%s)", can, command, x.Decision, x.Why)
			}
			if x.Contained != (can && x.Decision == "allow") {
				t.Errorf("%s: contained %v", command, x.Contained)
			}
		}
	}
}

// A program is either in the list or has a complete record; two sources would drift apart.
func TestReadOnlyProgramsHaveNoCompleteRecord(t *testing.T) {
	for name := range readOnlyPrograms {
		a := programs.Analyze(scan.Request{Command: name, Dir: "/", Root: "/"})
		for _, c := range a.Calls {
			if c.Complete {
				t.Errorf("%s has a complete record; remove it from readOnlyPrograms", name)
			}
		}
	}
	for _, name := range []string{"cat", "ls", "grep", "head", "wc", "pwd", "echo"} {
		a := programs.Analyze(scan.Request{Command: name + " x", Dir: "/", Root: "/"})
		if len(a.Calls) != 1 || !a.Calls[0].Complete {
			t.Errorf("%s has no complete record any more: without containment it would be asked about", name)
		}
	}
}
