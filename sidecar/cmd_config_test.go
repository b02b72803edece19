package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is not a mistake but probably not what was meant is said, and does not fail the check.
func TestConfigCheckDoubtsRules(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "c", "pillion"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `{"permission": {"edir": "deny", "bash": {"rm *": "deny", "*": "allow"}}}`
	if err := os.WriteFile(filepath.Join(dir, "c", "pillion", "pillion.jsonc"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "config", "check")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/c", "XDG_STATE_HOME="+dir+"/s")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `did you mean "edit"?`) || !strings.Contains(string(out), "never applies") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A skill that cannot be offered is named, with the reason.
func TestConfigCheckNamesSkillsThatAreNotOffered(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".cursor", "skills", "x", "SKILL.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("# x\n\nRules.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, want string }{{"--json=false", "SKILL.md:1: the skill has no description"}, {"--json", `"skills":[{"path":`}} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "config", "check", c.flag)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/c", "XDG_STATE_HOME="+dir+"/s")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", c.flag, err, out)
		}
	}
}
