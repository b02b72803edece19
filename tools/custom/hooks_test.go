package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
    "experimental.chat.system.transform": async (input, output) => { if (input.sessionID === "none") output.system = []; else output.system.push("for " + input.model.id) },
    event: async ({ event }) => { appendFileSync(directory + "/events", event.type + " " + event.properties.n + "\n") },
    "experimental.text.complete": async (input, output) => { if (output.text === "x") throw new Error("x"); output.text += "|" + [input.sessionID, input.messageID, input.partID] },
    "command.execute.before": async (input, output) => { if (input.command === "no") throw new Error("not that"); output.parts.push({ type: "text", text: [input.command, input.arguments, input.sessionID].join("|") }) },
    "chat.unheard": async () => {},
    "chat.headers": async (input, output) => { output.headers["x-session"] = input.sessionID + " " + input.model.id },
    "experimental.compaction.autocontinue": async (input, output) => { if (input.sessionID === "ses" && input.agent === "build" && input.model.id === "claude") output.enabled = input.overflow },
    "experimental.session.compacting": async (input, output) => { output.context.push("keep " + input.sessionID); output.prompt = "Sum up." },
    "experimental.chat.messages.transform": async (input, output) => { output.messages[0].parts[0].text = "other"; output.messages.splice(1) },
    tool: { hello: { description: "d", args: {}, execute: async () => options.word ?? client.session.share() } },
  }
}
`

// What plugins of strangers do: write an object that holds the client to a log, await nothing, export functions that are no plugins, and
// describe the arguments of many tools in a way that we cannot read. None of it ends the plugin. What failed outside of a call is one line each; all
// of the rest is one line.
func TestAPluginOfAStranger(t *testing.T) {
	p := newPlace(t, map[string]string{"plugin/odd.ts": `
export const asIs = (input) => ({ ...input })
export const Odd = async ({ client, $ }) => {
  JSON.stringify({ client, nested: [client.session] })
  client.session.share() // fails, and nobody waits for it
  for (let i = 0; i < 3; i++) void Promise.reject(new Error("forgotten"))
  setImmediate(() => { throw new Error("thrown where nobody catches") })
  await new Promise((loaded) => setImmediate(() => setImmediate(loaded))) // no call is under way when it is thrown
  const execute = async () => JSON.stringify({ client, alive: client.app.log.bind(client.app) instanceof Function })
  return { tool: Object.fromEntries(["one", "two", "three"].map((n) => [n, { description: n, args: { x: 7 }, execute }])), "chat.unheard": async () => {} }
}
`})
	p.Has(t.Context(), hookBefore)
	for range 3 { // each call comes after what failed before
		if out, err := p.run(t.Context(), "two", `{}`, nil); err != nil || out.Output != `{"alive":true}` {
			t.Fatalf("%+v %v; %s", out, err, p.said())
		}
	}
	said := p.said()
	for _, once := range []string{"odd.ts works in part", "odd.ts: a promise that it did not await failed: forgotten (", "odd.ts: it failed outside of a call: thrown where nobody catches ("} {
		if strings.Count(said, once) != 1 {
			t.Errorf("%q is not there once:\n%s", once, said)
		}
	}
	if !strings.Contains(said, "works in part: its hooks chat.unheard are never called; the arguments of one, two, three cannot be described to the model in full") {
		t.Error(said)
	}
}

// An exception that nothing catches during a call may be the end of what the call waits for: the call fails, and the next one runs.
func TestAnExceptionDuringACallEndsIt(t *testing.T) {
	p := newPlace(t, map[string]string{"plugin/throws.ts": `
export const Throws = async () => ({ tool: {
  waits: { description: "d", args: {}, execute: () => new Promise(() => setImmediate(() => { throw new Error("lost") })) },
  works: { description: "d", args: {}, execute: async () => "works" },
} })
`})
	if _, err := p.run(t.Context(), "waits", `{}`, nil); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("%v", err)
	}
	if out, err := p.run(t.Context(), "works", `{}`, nil); err != nil || out.Output != "works" {
		t.Errorf("%q %v; %s", out.Output, err, p.said())
	}
}

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
	system := []string{"a"}
	if got := p.System(t.Context(), "s", "anthropic", "claude", system); len(got) != 2 || got[1] != "for claude" || len(system) != 1 {
		t.Errorf("%q %q; %s", got, system, p.said())
	}
	if got := p.System(t.Context(), "none", "anthropic", "claude", system); len(got) != 1 || got[0] != "a" {
		t.Errorf("%q", got)
	}
	if c := p.ChatParams(t.Context(), "s", "build", "anthropic", "claude", Params{}); c.Temperature == nil || *c.Temperature != 0.25 || c.Options["seen"] != "claude" || c.TopP != nil {
		t.Errorf("%+v", c)
	}
	if got := p.Headers(t.Context(), "ses", "build", "anthropic", "claude"); got["x-session"] != "ses claude" {
		t.Errorf("%v; %s", got, p.said())
	}
	if extra, prompt := p.Compacting(t.Context(), "ses"); len(extra) != 1 || extra[0] != "keep ses" || prompt != "Sum up." {
		t.Errorf("%q %q; %s", extra, prompt, p.said())
	}
	if p.Continue(t.Context(), "ses", "build", "anthropic", "claude", false) || !p.Continue(t.Context(), "ses", "build", "anthropic", "claude", true) {
		t.Errorf("what the plugin says of a compaction counts for nothing; %s", p.said())
	}
	talk := []TransformedMessage{{Info: map[string]any{"id": "a"}, Parts: []map[string]any{{"type": "text", "text": "one"}}}, {Info: map[string]any{"id": "b"}}}
	if got, ok := p.Transform(t.Context(), talk); !ok || len(got) != 1 || got[0].Parts[0]["text"] != "other" || talk[0].Parts[0]["text"] != "one" {
		t.Errorf("%v %v; %s", got, ok, p.said())
	}
	if got := p.TextComplete(t.Context(), "ses", "msg", "prt", "text"); got != "text|ses,msg,prt" {
		t.Errorf("%q; %s", got, p.said())
	}
	if got := p.TextComplete(t.Context(), "ses", "msg", "prt", "x"); got != "x" {
		t.Errorf("after a failure: %q", got)
	}
	parts := []MessagePart{{ID: "a", Type: "text", Text: "Do it."}}
	if got, err := p.CommandBefore(t.Context(), "ses", "go", "now", parts); err != nil || len(got) != 2 || got[0].Text != "Do it." || got[1].Text != "go|now|ses" {
		t.Errorf("%+v %v; %s", got, err, p.said())
	}
	if _, err := p.CommandBefore(t.Context(), "ses", "no", "", parts); err == nil || !strings.Contains(err.Error(), "not that") {
		t.Errorf("%v", err)
	}
	p.Event("session.idle", map[string]any{"n": 7})
	p.Permission(t.Context(), permission.Request{}) // answered after the event was
	if b, _ := os.ReadFile(filepath.Join(p.dir, "events")); string(b) != "session.idle 7\n" {
		t.Errorf("%q", b)
	}
	if _, err := p.run(t.Context(), "hello", `{}`, nil); err == nil || !strings.Contains(err.Error(), "client.session.share is not available: Pillion offers plugins app.log, tui.showToast") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(p.said(), "its hooks chat.unheard are never called") {
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
	put(filepath.Join(dir, "pack", "package.json"), `{"main": "lib.js"}`)
	put(filepath.Join(dir, "surfaces", "package.json"), `{"exports": {"./tui": "./tui.js", "./server": {"types": "./s.d.ts", "import": "./server.js"}, ".": "./lib.js"}}`)
	put(filepath.Join(dir, "server-only", "package.json"), `{"exports": {"./server": "./server.js"}, "main": "./lib.js"}`)
	put(filepath.Join(dir, "root-only", "package.json"), `{"exports": {"./other": "./server.js"}, "main": "./lib.js"}`)
	for _, name := range []string{"surfaces", "server-only", "root-only"} {
		put(filepath.Join(dir, name, "lib.js"), "")
		put(filepath.Join(dir, name, "server.js"), "")
	}
	put(filepath.Join(dir, "pack", "lib.js"), "")
	put(filepath.Join(dir, "bare", "index.ts"), "")
	put(filepath.Join(dir, "empty", "x.ts"), "")
	for spec, want := range map[string]string{"./surfaces": filepath.Join(dir, "surfaces", "server.js"), "./server-only": filepath.Join(dir, "server-only", "server.js"), "./root-only": filepath.Join(dir, "root-only", "lib.js"), "./pack": filepath.Join(dir, "pack", "lib.js"), "./bare/": filepath.Join(dir, "bare", "index.ts"), "./p.ts": filepath.Join(dir, "p.ts"), "file://" + filepath.ToSlash(dir) + "/p.ts": filepath.Join(dir, "p.ts"), "@me/plug@1.2.0": filepath.Join(at, "dist", "m.js")} {
		if got, err := Resolve(t.Context(), spec, dir, cache, nil); err != nil || got != want {
			t.Errorf("%s: %s %v", spec, got, err)
		}
	}
	for _, spec := range []string{"./none.ts", "./empty", "UPPER", "a b", "x@--registry=evil", "x@1;rm", "git+ssh://x", "../../x", "@/x", "x@http://evil"} {
		if got, err := Resolve(t.Context(), spec, dir, cache, nil); err == nil {
			t.Errorf("%s: %s", spec, got)
		}
	}
}

// A client as plugins use it: what there is answers in OpenCode's shape, what there is not says so.
func TestAPluginsClient(t *testing.T) {
	var log strings.Builder
	p := newPlace(t, map[string]string{"plugin/c.js": `export const P = async ({ client }) => {
  await client.app.log({ body: { service: "mine", level: "warn", message: "up", extra: { n: 1 } } }) // at the top level already
  const call = async (f) => { try { return JSON.stringify(await f()) } catch (e) { return "threw " + e.message } }
  return { tool: { ask: { description: "d", args: {}, execute: async () => (await Promise.all([
    call(() => client.session.get({ path: { id: "s1" } })),
    call(() => client.session.get({ sessionID: "s2" })),
    call(() => client.session.get({ path: { id: "gone" } })),
    call(() => client.session.get({ path: { id: "gone" }, throwOnError: true })),
    call(() => client.session.get({ path: { id: "s3" }, responseStyle: "data" })),
    call(() => client.tui.showToast({ body: { title: "Mine", message: "Look", variant: "warning" } })),
    call(() => client.tui.showToast({ body: {} })),
    call(() => client.session.prompt({ path: { id: "s1" }, body: { parts: [] } })),
    call(async () => typeof (await client)),
  ])).join("\n") } } }
}`}, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Client = func(_ context.Context, method string, args Args) (any, error) {
			switch {
			case method != "session.get":
				return nil, fmt.Errorf("only session.get: %w", ErrNoMethod)
			case args.ID == "gone":
				return nil, fmt.Errorf("session %q: %w", args.ID, ErrNotFound)
			}
			return map[string]string{"id": args.ID}, nil
		}
	})
	r, err := p.run(t.Context(), "ask", `{}`, nil)
	want := strings.Join([]string{
		`{"data":{"id":"s1"},"request":{},"response":{"ok":true,"status":200}}`,
		`{"data":{"id":"s2"},"request":{},"response":{"ok":true,"status":200}}`,
		`{"error":{"name":"NotFoundError","data":{"message":"session \"gone\": not found"}},"request":{},"response":{"ok":false,"status":404}}`,
		`threw session "gone": not found`,
		`{"id":"s3"}`,
		`{"data":true,"request":{},"response":{"ok":true,"status":200}}`,
		`{"error":{"name":"UnknownError","data":{"message":"tui.showToast wants {body: {message, variant}}"}},"request":{},"response":{"ok":false,"status":400}}`,
		`threw client.session.prompt is not available: only session.get: no such method`,
		`"function"`,
	}, "\n")
	if err != nil || r.Output != want {
		t.Errorf("%v %s\n%s", err, p.said(), r.Output)
	}
	if !strings.Contains(p.said(), "Mine: Look") {
		t.Error(p.said())
	}
	p.Close()
	if s := log.String(); !strings.Contains(s, "level=WARN msg=up") || !strings.Contains(s, "service=mine") {
		t.Error(s)
	}
}

func TestPluginsChangeAMessage(t *testing.T) {
	p := newPlace(t, map[string]string{
		"plugin/a.js": `export const A = async () => ({ "chat.message": async (input, output) => {
  output.parts[0].text += " (" + input.agent + ", " + input.model.modelID + ", " + output.message.role + ")"
  output.parts.push({ type: "text", text: "more", synthetic: true })
} })`,
		"plugin/b.js": `export const B = async () => ({ "chat.message": async (input, output) => { output.parts = output.parts.filter((p) => p.type !== "file") } })`,
	})
	p.Has(t.Context(), hookMessage)
	parts := []MessagePart{{ID: "1", Type: "text", Text: "hello"}, {ID: "2", Type: "file", Mime: "image/png"}}
	got := p.ChatMessage(t.Context(), Message{ID: "m", SessionID: "s", Agent: "build", Provider: "a", Model: "b", Parts: parts})
	if len(got) != 2 || got[0].Text != "hello (build, b, user)" || got[1].Text != "more" || !got[1].Synthetic {
		t.Errorf("%+v", got)
	}
	p.put("plugin/b.js", `export const B = async () => ({ "chat.message": async () => { throw new Error("not today") } })`)
	p.Tools(t.Context())
	if got := p.ChatMessage(t.Context(), Message{Parts: parts}); len(got) != 2 || got[0].Text != "hello" || !strings.Contains(p.said(), "not today") || !strings.Contains(p.said(), "b.js, chat.message") {
		t.Errorf("%+v %s", got, p.said())
	}
}

// Hooks that take too long are cut off and named; the third time they are left out. One in a loop is loaded again.
func TestSlowHooks(t *testing.T) {
	p := newPlace(t, map[string]string{
		"plugin/waits.js": `export const W = async () => ({ "shell.env": () => new Promise(() => {}), "chat.params": async (i, o) => { o.temperature = 0.5 } })`,
		"plugin/loops.js": `export const L = async ({ directory }) => ({ "permission.ask": async (i, o) => { if (i.type === "loop") for (;;) {} ; o.status = "allow" } })`,
		"plugin/exits.js": `export const E = async () => ({ "tool.definition": async () => process.exit(5) })`,
	})
	// The limit is short only where a hook is to exceed it: a busy machine takes longer than that for those that answer.
	limit := func(d time.Duration) { p.o.HookLimit = d }
	p.Has(t.Context(), hookShell) // loads the plugins
	limit(100 * time.Millisecond)
	for range maxSlow {
		if !p.Has(t.Context(), hookShell) {
			t.Fatal("left out too soon")
		}
		if env := p.ShellEnv(t.Context(), "/", "s", "c"); env != nil {
			t.Error(env)
		}
	}
	if p.Has(t.Context(), hookShell) {
		t.Error("not left out")
	}
	if s := p.said(); !strings.Contains(s, "waits.js was interrupted: its hook shell.env did not answer within 100ms. This happened 3 times") {
		t.Error(s)
	}
	limit(DefaultHookLimit)
	if c := p.ChatParams(t.Context(), "s", "a", "p", "m", Params{}); c.Temperature == nil {
		t.Error("its other hook does not count any more")
	}
	p.Has(t.Context(), hookPermission)
	limit(100 * time.Millisecond)
	if a := p.Permission(t.Context(), permission.Request{Permission: "loop"}); a != permission.Ask {
		t.Error(a)
	}
	i := slices.IndexFunc(p.hooked, func(s *source) bool { return strings.HasSuffix(s.file.path, "loops.js") })
	<-p.hooked[i].gone
	limit(DefaultHookLimit)
	if p.Has(t.Context(), hookPermission); p.Permission(t.Context(), permission.Request{Permission: "x"}) != permission.Allow {
		t.Errorf("not loaded again: %s", p.said())
	}
	for range maxSlow {
		if !p.Has(t.Context(), hookDefinition) {
			t.Error("left out too soon")
		}
		p.Define(t.Context(), tools.Tool{ID: "read", Parameters: json.RawMessage(`{}`)})
	}
	if p.Has(t.Context(), hookDefinition) || !strings.Contains(p.said(), "exits.js is not started again: it ended 3 times by itself") {
		t.Error(p.said())
	}
}
