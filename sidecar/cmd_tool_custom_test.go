package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The person's own tools are in the list and have their schema, one that takes the place of ours is there once,
// and one that cannot be loaded is said.
func TestOwnToolsAreListed(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node on PATH")
	}
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "opencode", "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	body := `import { tool } from "@opencode-ai/plugin"
export default tool({ description: "Says hello.", args: { who: tool.schema.string() }, async execute(a) { return "hello " + a.who } })`
	for name, text := range map[string]string{"hello.ts": body, "list.ts": strings.Replace(body, "Says hello.", "Lists otherwise.", 1), "broken.ts": "import 'no-such-package-here'\n" + body} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_STATE_HOME="+home+"/s")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v %s", args, err, &errs)
		}
		return string(out), errs.String()
	}
	out, said := run("tool", "list")
	if !strings.Contains(out, "Says hello.") || !strings.Contains(out, "Lists otherwise.") || strings.Count("\n"+out, "\nlist ") != 1 || !strings.Contains(said, "no-such-package-here") {
		t.Errorf("%s\n%s", out, said)
	}
	if out, _ := run("tool", "schema", "hello"); !strings.Contains(out, `"who"`) {
		t.Error(out)
	}
}
