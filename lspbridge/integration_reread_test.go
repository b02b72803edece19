package lspbridge

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// gopls may read a new file after it has listed the package, and before it is told of the file. The go command of this test creates the file at
// the end of the listing.
func TestAFileThatIsReadBeforeItIsAnnounced(t *testing.T) {
	const (
		use    = "package main\n\nfunc size(s string) int { return len(s) }\n\nfunc main() {}\n"
		shadow = "package main\n\nfunc len(s string) string { return s }\n"
		wrong  = "cannot use len(s)"
	)
	real, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not installed")
	}
	// armed is moved to its place when "go list" has listed the packages on disk.
	armed, bin := filepath.Join(t.TempDir(), "shadow.go"), t.TempDir()
	write(t, filepath.Join(bin, "go"), "#!/bin/sh\n'"+real+"' \"$@\"; code=$?\ncase \"$*\" in *-overlay*) ;; list*-json=*) [ ! -e '"+armed+"' ] || mv '"+armed+"' \"$(cat '"+armed+".to')\" ;; esac\nexit $code\n")
	if err := os.Chmod(filepath.Join(bin, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	// told tells gopls of a change on disk, as the watcher does, and waits for the diagnosis.
	told := func(t *testing.T, m *Manager, root, name string, kind int) FileReport {
		c := m.running()[0].current()
		c.disk.add([]fileEvent{{filepath.Join(root, name), kind}})
		if err := c.await(longer(t), c.disk.isIdle); err != nil {
			t.Fatal(err)
		}
		return m.Diagnostics(longer(t), filepath.Join(root, "use.go"))
	}
	arm := func(t *testing.T, root string) {
		write(t, armed+".to", filepath.Join(root, "shadow.go"))
		write(t, armed, shadow)
	}
	start := func(t *testing.T, files map[string]string) (*Manager, string) {
		m, root := projectIn(t, "gopls", "", files)
		m.fleet.o.NoWatch = true // it would tell gopls at once
		return m, root
	}
	t.Run("by Pillion", func(t *testing.T) {
		m, root := start(t, map[string]string{"go.mod": "module x\n\ngo 1.22\n", "use.go": use})
		m.Diagnostics(longer(t), filepath.Join(root, "use.go"))
		arm(t, root)
		p := []Proposal{{Path: filepath.Join(root, "shadow.go"), Text: shadow}}
		if d := m.Check(longer(t), p); !strings.Contains(messages(d.Introduced), wrong) {
			t.Fatalf("proposed: %s %q", d.Certainty, messages(d.Introduced))
		}
		if m.Diagnostics(longer(t), filepath.Join(root, "use.go")); exists(armed) {
			t.Fatal("gopls did not list the package when the proposal was taken back")
		}
		if d := m.Changed(longer(t), p); d.Certainty != change.Fresh || !strings.Contains(messages(d.Introduced), wrong) {
			t.Errorf("written: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
		}
	})
	t.Run("listed and taken for absent", func(t *testing.T) {
		m, root := start(t, map[string]string{"go.mod": "module x\n\ngo 1.22\n", "use.go": use})
		m.Check(longer(t), []Proposal{{Path: filepath.Join(root, "shadow.go"), Text: shadow}})
		m.Diagnostics(longer(t), filepath.Join(root, "use.go")) // gopls has read that there is none
		write(t, filepath.Join(root, "shadow.go"), shadow)
		write(t, filepath.Join(root, "other.go"), "package main\n")
		if r := told(t, m, root, "other.go", 1); r.Certainty == change.Fresh || !strings.Contains(r.Reason, "shadow.go: no such file") {
			t.Errorf("before gopls is told of it: %s %q, %q", r.Certainty, r.Reason, messages(r.Items))
		}
		if r := told(t, m, root, "shadow.go", 1); r.Certainty != change.Fresh || !strings.Contains(messages(r.Items), wrong) {
			t.Errorf("afterwards: %s %q, %q", r.Certainty, r.Reason, messages(r.Items))
		}
	})
	t.Run("by another program", func(t *testing.T) {
		m, root := start(t, map[string]string{"go.mod": "module x\n\ngo 1.22\n", "use.go": use, "shadow.go": shadow})
		if r := m.Diagnostics(longer(t), filepath.Join(root, "use.go")); !strings.Contains(messages(r.Items), wrong) {
			t.Fatalf("at first: %s %q", r.Certainty, messages(r.Items))
		}
		if err := os.Remove(filepath.Join(root, "shadow.go")); err != nil {
			t.Fatal(err)
		}
		arm(t, root)
		if r := told(t, m, root, "shadow.go", 3); strings.Contains(messages(r.Items), wrong) || exists(armed) {
			t.Fatalf("without it: %s %q", r.Certainty, messages(r.Items))
		}
		if r := told(t, m, root, "shadow.go", 1); r.Certainty != change.Fresh || !strings.Contains(messages(r.Items), wrong) {
			t.Errorf("back: %s %q, %q", r.Certainty, r.Reason, messages(r.Items))
		}
	})
}
