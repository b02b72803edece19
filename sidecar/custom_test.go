package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The whole program with custom tools of its user's and of a project that is trusted, or not.
func TestCustomToolsOfUserAndProject(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	home := atHome(t)
	dir := scratch(t)
	tool := func(text string) string {
		return `import { tool } from "@opencode-ai/plugin"; export default tool({ description: "d", args: { n: tool.schema.number() }, async execute(a) { return "` + text + ` " + a.n } })`
	}
	put(t, filepath.Join(home, "config", "pillion", "tools", "mine.ts"), tool("mine"))
	put(t, filepath.Join(dir, ".opencode", "tool", "theirs.ts"), tool("theirs"))
	put(t, filepath.Join(dir, ".pillion", "tools", "glob.ts"), tool("instead"))
	put(t, filepath.Join(dir, ".pillion", "plugin", "p.js"), `export const P = async () => ({ "tool.execute.after": async (i, o) => { o.output += " (seen)" } })`)
	call := func(name string, flags ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"tool", "call", name, "--input", `{"n":"4"}`, "--approve", "all", "--no-lsp"}, flags...)...)
		cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := call("mine"); !strings.Contains(out, "mine 4\n") || strings.Contains(out, "seen") {
		t.Errorf("the user's: %s", out)
	}
	if out := call("theirs"); strings.Contains(out, "theirs 4") {
		t.Errorf("an untrusted project's: %s", out)
	}
	t.Setenv("PILLION_TRUST", "1")
	for name, want := range map[string]string{"mine": "mine 4 (seen)", "theirs": "theirs 4 (seen)", "glob": "instead 4 (seen)"} {
		if out := call(name); !strings.Contains(out, want) {
			t.Errorf("%s: %s", name, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "tool", "call", "mine", "--input", `{"n":1}`, "--approve", "none")
	cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "nobody can be asked") {
		t.Errorf("without approval: %s", out)
	}
}
