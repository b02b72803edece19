package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The import goes the way of every edit: without an approval nothing is written, with one the file is what was printed.
func TestImportIsReviewed(t *testing.T) {
	atHome(t)
	dir := scratch(t)
	put(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers": {"db": {"command": "nothing-of-that-name"}}}`)
	run := func(args ...string) (stdout, stderr string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"import"}, args...)...)
		cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
		var errs strings.Builder
		cmd.Stderr = &errs
		out, _ := cmd.Output()
		return string(out), errs.String()
	}
	file := filepath.Join(dir, "pillion.jsonc")
	printed, _ := run("claude", "--print")
	if _, stderr := run("claude", "--approve", "none"); exists(file) || !strings.Contains(stderr, "nothing-of-that-name") {
		t.Errorf("written without approval, or not shown: %s", stderr)
	}
	_, stderr := run("claude", "--approve", "all")
	if got, err := os.ReadFile(file); err != nil || string(got) != printed || !strings.Contains(printed, "nothing-of-that-name") {
		t.Errorf("%v %s\n%s\n%s", err, got, printed, stderr)
	}
	if _, stderr := run("claude"); !strings.Contains(stderr, "says all of it already") {
		t.Error(stderr)
	}
	if _, stderr := run("emacs"); !strings.Contains(stderr, "claude, opencode, cursor") {
		t.Error(stderr)
	}
}

// What needs no translation is named: a person with agents and skills only must not read that nothing was found.
func TestImportSaysWhatIsUsedAlready(t *testing.T) {
	atHome(t)
	for program, files := range map[string][]string{
		"claude": {"CLAUDE.md", ".claude/agents/a.md", ".claude/commands/c.md", ".claude/skills/s/SKILL.md"}, "opencode": {".opencode/agent/a.md", ".opencode/skills/s/SKILL.md"},
		"cursor": {".cursor/rules/r.mdc", ".cursorrules"}, "codex": {"AGENTS.md"}, "gemini": {"GEMINI.md"},
	} {
		dir := scratch(t)
		run := func() (string, error) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "import", program)
			cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := run(); err == nil || !strings.Contains(out, "no settings of "+program) || !strings.Contains(out, "--global") {
			t.Errorf("%s in an empty project: %v %s", program, err, out)
		}
		for _, f := range files {
			put(t, filepath.Join(dir, f), "---\nname: s\ndescription: d\n---\nx")
		}
		out, err := run()
		if err != nil || !strings.Contains(out, "used where they are") || !strings.Contains(out, "no settings of "+program+" to translate") {
			t.Errorf("%s: %v %s", program, err, out)
		}
		for _, f := range files {
			if f = strings.Join(strings.Split(f, "/")[:min(2, strings.Count(f, "/")+1)], "/"); !strings.Contains(out, f) {
				t.Errorf("%s: %s is not named: %s", program, f, out)
			}
		}
	}
}

// In a trusted folder an import starts none of the servers that the folder's settings name: those are what is reviewed.
func TestAnImportStartsNoServer(t *testing.T) {
	atHome(t)
	dir := scratch(t)
	mark := filepath.Join(t.TempDir(), "started")
	put(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers": {"db": {"command": "sh", "args": ["-c", "echo >`+mark+`"]}}}`)
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1", "PILLION_TRUST=1"), dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run("import", "claude", "--approve", "all"); exists(mark) || !exists(filepath.Join(dir, "pillion.jsonc")) {
		t.Errorf("a server was started, or nothing was written:\n%s", out)
	}
	// The same settings start it where a tool of a server may be wanted: the mark shows that it can be started.
	if out := run("tool", "call", "db_nothing", "--input", "{}", "--approve", "none"); !exists(mark) {
		t.Errorf("the server of this test never starts:\n%s", out)
	}
}
