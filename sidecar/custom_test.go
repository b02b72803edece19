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
	put(t, filepath.Join(dir, ".pillion", "tools", "broken.ts"), "export default {\n  execute( { }\n")
	if out := call("broken"); !strings.Contains(out, "broken.ts was not loaded") || !strings.Contains(out, "broken.ts:3:") {
		t.Errorf("a tool with a mistake: %s", out)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "tool", "call", "mine", "--input", `{"n":1}`, "--approve", "none")
	cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "no user can answer") {
		t.Errorf("without approval: %s", out)
	}
}

// A plugin from start to end: it hears what happens, gives commands their environment, is shown the configuration and
// cleans up when the program ends.
func TestAPluginInTheProgram(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	home := atHome(t)
	dir := scratch(t)
	put(t, filepath.Join(home, "config", "pillion", "plugin", "p.js"), `import { appendFileSync } from "node:fs"
export const P = async ({ directory }) => {
  const say = (text) => appendFileSync(directory + "/heard", text + "\n")
  return {
    config: async (c) => { say("config " + c.steps); c.steps = 1 },
    "shell.env": async (input, output) => { output.env.FROM_PLUGIN = input.cwd + " " + Boolean(input.sessionID && input.callID) },
    event: async ({ event: { type, properties: p } }) => {
      await new Promise((ok) => setImmediate(ok))
      say(type + " " + Boolean(p.sessionID) + " " + (p.part ? p.part.tool + " " + p.part.state.status : p.file ?? p.permission ?? p.reply ?? ""))
    },
    dispose: async () => say("dispose"),
  }
}`)
	put(t, filepath.Join(home, "config", "pillion", "pillion.jsonc"), `{"steps": 7}`)
	run := func(name, input string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "tool", "call", name, "--input", input, "--approve", "all", "--no-lsp")
		cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run("bash", `{"command":"echo it is $FROM_PLUGIN","description":"d"}`); !strings.Contains(out, "it is "+dir+" true\n") {
		t.Errorf("%s", out)
	}
	if out := run("write", `{"filePath":"new.txt","content":"x"}`); !strings.Contains(out, "new.txt") {
		t.Errorf("%s", out)
	}
	heard, err := os.ReadFile(filepath.Join(dir, "heard"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"config 7\n", "session.created true \n", "permission.asked true edit\n", "permission.replied true once\n", "message.part.updated true bash completed\n",
		"file.edited true " + filepath.Join(dir, "new.txt") + "\n", "message.part.updated true write completed\n"} {
		if !strings.Contains(string(heard), want) {
			t.Errorf("no %q in %s", want, heard)
		}
	}
	if strings.Count(string(heard), "dispose\n") != 2 || !strings.HasSuffix(string(heard), "dispose\n") {
		t.Errorf("%s", heard)
	}
}
