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
