package skill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func md(name, desc string) string {
	return "---\nname: " + name + "\ndescription: " + desc + "\n---\nDo " + name + "."
}

func names(list []Skill) string {
	var out []string
	for _, s := range list {
		out = append(out, s.Name+"="+s.Description)
	}
	return strings.Join(out, " ")
}

func TestSkillsAreFoundNearestFirst(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	cwd := filepath.Join(root, "a", "b")
	put(t, filepath.Join(cwd, "x"), "")
	put(t, filepath.Join(cwd, ".claude/skills/near/SKILL.md"), md("near", "nearest"))
	put(t, filepath.Join(root, ".opencode/skill/deep/er/SKILL.md"), md("er", "nested"))
	put(t, filepath.Join(root, ".agents/skills/near/SKILL.md"), md("near", "farther"))
	put(t, filepath.Join(root, ".pillion/skills/near/more/SKILL.md"), md("more", "own"))
	put(t, filepath.Join(home, ".claude/skills/mine/SKILL.md"), md("mine", "of the person"))
	put(t, filepath.Join(home, "cfg/skills/conf/SKILL.md"), md("conf", "configured"))
	put(t, filepath.Join(filepath.Dir(root), "out/.claude/skills/out/SKILL.md"), md("out", "above the root"))
	f := New(Places{Cwd: cwd, Root: root, Home: home, Config: []string{filepath.Join(home, "cfg")}})
	if got, want := names(f.Skills()), "conf=configured er=nested mine=of the person more=own near=nearest"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(f.Problems()) > 0 {
		t.Error(f.Problems())
	}
	put(t, filepath.Join(root, ".claude/skills/new/SKILL.md"), md("new", "came later"))
	if _, ok := f.Get("new"); !ok {
		t.Error("a skill that came later is not found")
	}
	put(t, filepath.Join(root, ".claude/skills/new/SKILL.md"), md("new", "changed since then"))
	if s, _ := f.Get("new"); s.Description != "changed since then" {
		t.Errorf("%+v", s)
	}
}

// Every program's folder of skills is searched, in projects and in the home folder; Claude Code's and the common one come before it.
func TestSkillsOfOtherPrograms(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	for i, dot := range []string{".cursor", ".codex", ".gemini", ".github", ".agent", ".windsurf", ".roo", ".kiro", ".factory", ".goose"} {
		put(t, filepath.Join(root, dot, "skills", fmt.Sprint("p", i), "SKILL.md"), md(fmt.Sprint("p", i), "project"))
		put(t, filepath.Join(home, dot, "skills", fmt.Sprint("h", i), "SKILL.md"), md(fmt.Sprint("h", i), "home"))
	}
	put(t, filepath.Join(root, ".agents/skills/p0/SKILL.md"), md("p0", "common"))
	f := New(Places{Cwd: root, Root: root, Home: home})
	if n := len(f.Skills()); n != 20 {
		t.Errorf("%d skills: %s", n, names(f.Skills()))
	}
	if s, _ := f.Get("p0"); s.Description != "common" {
		t.Errorf("%+v", s)
	}
}

// Names that other programs take, and that differ from the folder's, are used: people have such skills.
func TestNamesOfOtherPrograms(t *testing.T) {
	root := t.TempDir()
	for folder, name := range map[string]string{"sc-pm": "sc:pm-protocol", "confidence-check": "Confidence Check", "v1": "v1.2_b", "plain": "plain"} {
		put(t, filepath.Join(root, ".claude/skills", folder, "SKILL.md"), md(name, "x"))
	}
	f := New(Places{Cwd: root, Root: root})
	var names []string
	for _, s := range f.Skills() {
		names = append(names, s.Name)
	}
	if want := []string{"Confidence Check", "plain", "sc:pm-protocol", "v1.2_b"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q; %v", names, want, f.Problems())
	}
	if s, ok := f.Get("sc:pm-protocol"); !ok || filepath.Base(s.Dir) != "sc-pm" {
		t.Errorf("%+v %v", s, ok)
	}
}

func TestWhatCannotBeUsedIsSaid(t *testing.T) {
	root := t.TempDir()
	secret := filepath.Join(t.TempDir(), "SKILL.md")
	put(t, secret, md("link", "a secret"))
	dir := filepath.Join(root, ".claude/skills")
	put(t, filepath.Join(dir, "Bad_Name/SKILL.md"), md("every*", "x"))
	put(t, filepath.Join(dir, "other/SKILL.md"), md("a/b", "x"))
	put(t, filepath.Join(dir, "silent/SKILL.md"), "---\nname: silent\n---\nx")
	put(t, filepath.Join(dir, "long/SKILL.md"), md("long", strings.Repeat("x", 1025)))
	put(t, filepath.Join(dir, "yaml/SKILL.md"), "---\nname: [\n---\nx")
	put(t, filepath.Join(dir, "link/x"), "")
	if err := os.Symlink(secret, filepath.Join(dir, "link/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "circle")); err != nil {
		t.Fatal(err)
	}
	f := New(Places{Cwd: root, Root: root})
	if got := f.Skills(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	text := fmt.Sprint(f.Problems())
	for _, want := range []string{"Bad_Name/SKILL.md:2: the name", `other/SKILL.md:2: the name "a/b" is not`, "silent/SKILL.md:1: the skill has no description",
		"long/SKILL.md:3: the description has 1025", "yaml/SKILL.md:", "link/SKILL.md:1: leads out of the project"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

func TestFilesAndBody(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, ".claude/skills/s")
	put(t, filepath.Join(dir, "SKILL.md"), md("s", "x"))
	for i := range 12 {
		put(t, filepath.Join(dir, fmt.Sprintf("scripts/%02d.sh", i)), "")
	}
	f := New(Places{Cwd: root, Root: root})
	s, ok := f.Get("s")
	if !ok {
		t.Fatal(f.Problems())
	}
	body, err := s.Body()
	if body != "Do s." || err != nil {
		t.Errorf("%q %v", body, err)
	}
	files, more := s.Files(10)
	if len(files) != 10 || !more || files[0] != "scripts/00.sh" {
		t.Errorf("%v %v", files, more)
	}
	if real, _ := filepath.EvalSymlinks(dir); !f.Holds(filepath.Join(real, "scripts/00.sh")) || f.Holds(root) {
		t.Error("what belongs to a skill")
	}
}
