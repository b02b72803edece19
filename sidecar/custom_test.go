package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/permission"
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

// A plugin changes the prompt of a slash command and the text of an answer, or stops the command. Both are as in OpenCode: the next request
// has the changed answer.
func TestAPluginChangesCommandsAndAnswers(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	home := atHome(t)
	dir := scratch(t)
	srv := wiretest.New(t, wiretest.Step{Text: "Hello."}, wiretest.Step{Text: "Again."})
	put(t, filepath.Join(home, "config", "pillion", "plugin", "p.js"), `export const P = async () => ({
  "command.execute.before": async (input, output) => {
    if (input.arguments === "wrong") throw new Error("not like that")
    output.parts[0].text += " (" + [input.command, input.arguments, Boolean(input.sessionID)] + ")"
    output.parts.push({ type: "text", text: "Added by a plugin." })
  },
  "experimental.text.complete": async (input, output) => { output.text += " (" + [Boolean(input.sessionID), Boolean(input.messageID), Boolean(input.partID)] + ")" },
})`)
	put(t, filepath.Join(home, "config", "pillion", "command", "go.md"), "---\ndescription: Goes.\n---\nGo $ARGUMENTS.\n")
	put(t, filepath.Join(home, "config", "pillion", "pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "mine/m", "small_model": "mine/m", "provider": {"mine": {"baseURL": %q, "models": ["m"]}}}`, srv.OpenAIURL()))
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: allowAll{}, NoLSP: true})
	t.Cleanup(a.Close)
	s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: dir, Title: "t"})
	if err != nil {
		t.Fatal(err)
	}
	command := slash.Template("go", a.ConfigOf(dir).Command["go"])
	h := slash.Host{Session: s, Runtime: a.Runtime}
	if _, _, err := command.Run(t.Context(), h, "wrong"); err == nil || !strings.Contains(err.Error(), "/go: ") || !strings.Contains(err.Error(), "not like that") {
		t.Errorf("%v", err)
	}
	_, prompt, err := command.Run(t.Context(), h, "far")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []agent.Prompt{*prompt, {Parts: []provider.Part{{Type: provider.PartText, Text: "more"}}}} {
		if _, err := s.Prompt(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	all := srv.Requests()
	var said []string
	for _, m := range all[len(all)-1].Messages() {
		if m.Role != "system" {
			said = append(said, m.Role+": "+m.Text)
		}
	}
	got := strings.Join(said, "\n")
	for _, want := range []string{"Go far. (go,far,true)", "Added by a plugin.", "assistant: Hello. (true,true,true)", "user: more"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// What a plugin's config hook changes is in force when its session opens, and follows the plugin's file: an agent that can be chosen, a
// command, a rule. The hook sees the settings without what it has changed before.
func TestAPluginConfigures(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	home := atHome(t)
	dir := scratch(t)
	srv := wiretest.New(t, wiretest.Step{Text: "Hello."}, wiretest.Step{Text: "Again."})
	plugin := func(agent string) {
		put(t, filepath.Join(home, "config", "pillion", "plugin", "p.js"), `export const P = async () => ({
  config: async (c) => {
    c.agent["`+agent+`"] = { mode: "primary", prompt: "I am `+agent+`; there were [" + Object.keys(c.agent) + "]", permission: { edit: "deny" } }
    c.command.go = { template: "Go $ARGUMENTS." }
    c.permission.webfetch = "deny"
  },
})
export const Broken = async () => ({ config: async () => { throw new Error("no") } })
`)
	}
	plugin("first")
	put(t, filepath.Join(home, "config", "pillion", "pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "mine/m", "small_model": "mine/m", "provider": {"mine": {"baseURL": %q, "models": ["m"]}}}`, srv.OpenAIURL()))
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: allowAll{}, NoLSP: true})
	t.Cleanup(a.Close)
	changed := make(chan string, 10)
	a.Plugins.Changed = func(cwd string) { changed <- cwd }
	var notices string // of the last session
	system := func(agentName string) string {
		t.Helper()
		s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: dir, Title: "t", Agent: agentName})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: "hi"}}}); err != nil {
			t.Fatal(err)
		}
		notices = ""
		err = a.Runtime.Stored(t.Context(), s.ID(), 0, func(e agent.Event) error {
			if d, ok := agent.Value[agent.NoticeData](e); ok && e.Type == agent.EventNotice {
				notices += d.Text + "\n"
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all := srv.Requests()
		return all[len(all)-1].Messages()[0].Text
	}
	if got := system("first"); !strings.Contains(got, "I am first; there were []\n") {
		t.Errorf("%s", got)
	}
	for _, want := range []string{"p.js sets agent first; command go; permission", "its config hook failed: no"} {
		if strings.Count(notices, want) != 1 {
			t.Errorf("no %q in %s", want, notices)
		}
	}
	if at := <-changed; at != dir || a.ConfigOf(dir).Command["go"].Template != "Go $ARGUMENTS." {
		t.Errorf("%s: %+v", at, a.ConfigOf(dir).Command)
	}
	if got, _ := a.Place.Rules(dir).Evaluate("webfetch", "https://x"); got != permission.Deny {
		t.Errorf("webfetch is %s", got)
	}
	plugin("second")
	a.Plugins.Extensions(dir).Over(t.Context()) // a step of a turn looks at the files
	<-changed
	if got := system("second"); !strings.Contains(got, "I am second; there were []\n") {
		t.Errorf("%s", got)
	}
	if _, ok := a.ConfigOf(dir).Agent["first"]; ok {
		t.Error("the agent of the former version is still there")
	}
}
