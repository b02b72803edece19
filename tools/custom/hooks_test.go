package custom

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

const guardPlugin = `import { appendFileSync } from "node:fs"
export const Guard = async ({ directory, $, client }, options) => {
  const there = await $` + "`echo ${\"it's\"} here`.text()" + `
  return {
    "tool.execute.before": async (input, output) => {
      if (input.tool === "read" && String(output.args.filePath).endsWith(".env")) throw new Error("no secrets")
      if (input.tool === "read") output.args.filePath = "other.txt"
    },
    "tool.execute.after": async (input, output) => { output.output += "|" + input.args.filePath },
    "tool.definition": async (input, output) => { if (input.toolID === "read") output.description = "Reads, carefully." },
    "permission.ask": async (input, output) => { if (input.type === "bash") output.status = "deny"; if (input.type === "list") output.status = "allow"; if (input.type === "x") throw new Error("x") },
    "shell.env": async (input, output) => { output.env.WHERE = input.cwd; output.env.ECHO = there.trim() },
    "chat.params": async (input, output) => { output.temperature = 0.25; output.options.seen = input.model.id },
    event: async ({ event }) => { appendFileSync(directory + "/events", event.type + " " + event.properties.n + "\n") },
    "chat.headers": async () => {},
    tool: { hello: { description: "d", args: {}, execute: async () => options.word ?? client.session.list() } },
  }
}
`

func TestAPlugin(t *testing.T) {
	p := newPlace(t, map[string]string{"plugin/guard.ts": guardPlugin})
	hook := func() tools.Hook { p.Has(t.Context(), hookBefore); return p.Hook() }()
	call := &tools.Call{Tool: "read", SessionID: "ses", CallID: "c"}
	in, err := hook.Before(t.Context(), call, json.RawMessage(`{"filePath":"a.txt"}`))
	if err != nil || string(in) != `{"filePath":"other.txt"}` {
		t.Errorf("%s %v; %s", in, err, p.said())
	}
	if _, err := hook.Before(t.Context(), call, json.RawMessage(`{"filePath":"x/.env"}`)); err == nil || !strings.Contains(err.Error(), "no secrets") || !strings.Contains(err.Error(), "guard.ts") {
		t.Errorf("%v", err)
	}
	if r, err := hook.After(t.Context(), call, json.RawMessage(`{"filePath":"a"}`), tools.Result{Title: "t", Output: "text", Metadata: map[string]any{"n": 1}}, nil); err != nil || r.Output != "text|a" || r.Title != "t" || r.Metadata["n"] != 1.0 {
		t.Errorf("%+v %v", r, err)
	}
	if d := p.Define(t.Context(), tools.Tool{ID: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}); d.Description != "Reads, carefully." {
		t.Errorf("%+v", d)
	}
	for name, want := range map[string]permission.Action{"bash": permission.Deny, "list": permission.Allow, "edit": permission.Ask, "x": permission.Ask} {
		if got := p.Permission(t.Context(), permission.Request{Permission: name}); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if env := p.ShellEnv(t.Context(), "/w", "s", "c"); env["WHERE"] != "/w" || env["ECHO"] != "it's here" {
		t.Errorf("%v", env)
	}
	if c := p.ChatParams(t.Context(), "s", "build", "anthropic", "claude", Params{}); c.Temperature == nil || *c.Temperature != 0.25 || c.Options["seen"] != "claude" || c.TopP != nil {
		t.Errorf("%+v", c)
	}
	p.Event("session.idle", map[string]any{"n": 7})
	p.Permission(t.Context(), permission.Request{}) // answered after the event was
	if b, _ := os.ReadFile(filepath.Join(p.dir, "events")); string(b) != "session.idle 7\n" {
		t.Errorf("%q", b)
	}
	if _, err := p.run(t.Context(), "hello", `{}`, nil); err == nil || !strings.Contains(err.Error(), "client.session.list is not available") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(p.said(), "chat.headers is not known") {
		t.Error(p.said())
	}
}

func TestConfiguredPlugins(t *testing.T) {
	p := newPlace(t, map[string]string{"elsewhere/p.mjs": `export default async (_, o) => ({ tool: { word: { description: "d", args: {}, execute: async () => o.word } } })`})
	p.o.Plugins = []Plugin{{Spec: "./none.js", Dir: p.dir}, {Spec: "./elsewhere/p.mjs", Dir: p.dir, Options: map[string]any{"word": "given"}}}
	if r, err := p.run(t.Context(), "word", `{}`, nil); err != nil || r.Output != "given" {
		t.Errorf("%v %v; %s", r, err, p.said())
	}
	if !strings.Contains(p.said(), "The plugin ./none.js is left out") {
		t.Error(p.said())
	}
}

func TestResolve(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "p.ts"), "")
	at := filepath.Join(cache, "plugins", "_me_plug@1_2_0", "node_modules", "@me", "plug") // as npm would have left it
	put(filepath.Join(at, "package.json"), `{"exports": {".": {"import": "./dist/m.js"}}, "main": "x.cjs"}`)
	put(filepath.Join(at, "dist", "m.js"), "")
	for spec, want := range map[string]string{"./p.ts": filepath.Join(dir, "p.ts"), "file://" + filepath.ToSlash(dir) + "/p.ts": filepath.Join(dir, "p.ts"), "@me/plug@1.2.0": filepath.Join(at, "dist", "m.js")} {
		if got, err := Resolve(t.Context(), spec, dir, cache); err != nil || got != want {
			t.Errorf("%s: %s %v", spec, got, err)
		}
	}
	for _, spec := range []string{"./none.ts", "UPPER", "a b", "x@--registry=evil", "x@1;rm", "git+ssh://x", "../../x", "@/x", "x@http://evil"} {
		if got, err := Resolve(t.Context(), spec, dir, cache); err == nil {
			t.Errorf("%s: %s", spec, got)
		}
	}
}
