package skill

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A skill is found at once wherever it comes into being, also in a project that nothing was changed in for long, and step by step: first the
// folder of the agent, then that of its skills, then the skill.
func TestASkillThatAppears(t *testing.T) {
	for _, place := range []string{".claude/skills/new", ".cursor/skills/new", "sub/.agents/skill/new"} {
		root := t.TempDir()
		cwd := filepath.Join(root, "sub")
		if err := os.Mkdir(cwd, 0o755); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		age := func(dirs ...string) {
			for _, dir := range dirs {
				if err := os.Chtimes(dir, old, old); err != nil {
					t.Fatal(err)
				}
			}
		}
		age(root, cwd)
		f := New(Places{Cwd: cwd, Root: root})
		for range 2 {
			if len(f.Skills()) != 0 {
				t.Fatal("skills")
			}
		}
		if runtime.GOOS != "windows" && len(f.missing.in) == 0 {
			t.Error("nothing is remembered as missing")
		}
		at := root
		for part := range strings.SplitSeq(place, "/") {
			if at = filepath.Join(at, part); at == cwd {
				continue
			}
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
			if len(f.Skills()) != 0 {
				t.Fatal("skills")
			}
		}
		if err := os.WriteFile(filepath.Join(at, "SKILL.md"), []byte("---\nname: new\ndescription: Helps.\n---\ntext\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := f.Skills(); len(got) != 1 || got[0].Name != "new" {
			t.Errorf("%s: %v", place, got)
		}
		// What is removed and made again counts as well.
		if err := os.RemoveAll(filepath.Dir(filepath.Dir(at))); err != nil {
			t.Fatal(err)
		}
		if got := f.Skills(); len(got) != 0 {
			t.Errorf("%s: removed, but %v", place, got)
		}
	}
}

// Folders that are remembered as missing give the same stamp as looking for everything.
func TestStampWithoutLooking(t *testing.T) {
	root := t.TempDir()
	old := time.Now().Add(-time.Hour)
	put := func(name string) {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(".claude/skills")
	var paths []string
	for _, r := range (Places{Cwd: root, Root: root}).roots() {
		paths = append(paths, r.dir)
	}
	var m missing
	for i, change := range []string{"", ".x", ".cursor", ".cursor/skills", ".gemini/skills/a", ".kiro/skills"} {
		if change != "" {
			put(change)
		}
		for _, aged := range []bool{false, true} {
			if !aged && i%2 == 0 {
				continue // nobody looks while the change is fresh
			}
			if aged {
				if err := os.Chtimes(root, old, old); err != nil {
					t.Fatal(err)
				}
				old = old.Add(time.Minute) // another time than before
			}
			for range 3 {
				var fresh missing
				if got, want := m.stampOf(paths), fresh.stampOf(paths); got != want {
					t.Fatalf("after %q: %s, want %s", change, got, want)
				}
			}
		}
	}
	if !slices.Contains(paths, filepath.Join(root, ".gemini/skills")) {
		t.Error("paths")
	}
}

// Two changes within one tick of a file system's clock leave the same time: a folder that has just been changed is not relied on.
func TestAFolderMadeWithinATick(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	tick := func() {
		if err := os.Chtimes(root, now, now); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	var m, fresh missing
	paths := []string{filepath.Join(root, ".cursor/skills")}
	m.stampOf(paths)
	if err := os.MkdirAll(paths[0], 0o755); err != nil {
		t.Fatal(err)
	}
	tick()
	if got, want := m.stampOf(paths), fresh.stampOf(paths); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
