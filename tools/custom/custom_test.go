package custom

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a folder of custom tools with a host.
type place struct {
	*Host
	t       *testing.T
	dir     string
	mu      sync.Mutex
	notices []string // guarded by mu
	asked   []string // guarded by mu
	no      map[string]error
}

func newPlace(t *testing.T, files map[string]string, change ...func(*Options)) *place {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	p := &place{t: t, dir: t.TempDir(), no: map[string]error{}}
	for name, text := range files {
		p.put(name, text)
	}
	o := Options{Dirs: []string{p.dir}, Directory: p.dir, Worktree: p.dir, CacheDir: t.TempDir(), Memory: 48, Notice: func(_, text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notices = append(p.notices, text)
	}}
	for _, f := range change {
		f(&o)
	}
	p.Host = New(o)
	t.Cleanup(p.Close)
	return p
}

func (p *place) put(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.notices, "\n")
}

func (p *place) Ask(_ context.Context, r permission.Request) (permission.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Permission+" "+strings.Join(r.Patterns, ","))
	return permission.Reply{Kind: permission.Once}, p.no[r.Permission]
}

func (p *place) run(ctx context.Context, id, input string, show func(tools.Update)) (tools.Result, error) {
	p.t.Helper()
	all := p.Tools(ctx)
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.ID == id })
	if i < 0 {
		p.t.Fatalf("no tool %s; %s", id, p.said())
	}
	return tools.Invoke(ctx, all[i], json.RawMessage(input), &tools.Call{SessionID: "ses", MessageID: "msg", CallID: "call", Agent: "build", Host: tools.Host{Gate: p}, OnMetadata: show}, tools.CapOptions{})
}

const greet = `import { tool } from "@opencode-ai/plugin"
import { readFileSync } from "node:fs"
import { shout } from "./lib/shout"

export default tool({
  description: "Greets somebody.",
  args: {
    name: tool.schema.string().min(2).describe("who"),
    times: tool.schema.number().int().default(1),
    mood: tool.schema.enum(["kind", "loud"]).optional(),
  },
  async execute(args, context) {
    console.log("this must not get into the protocol")
    context.metadata({ title: "Greeting " + args.name, metadata: { n: args.times } })
    const self = readFileSync(new URL(import.meta.url), "utf8").length > 0
    const words = ("Hello " + args.name + "! ").repeat(args.times)
    return { title: "Greeted", output: args.mood === "loud" ? shout(words) : words, metadata: { self, agent: context.agent, dir: context.directory } }
  },
})
export const other = tool({ description: "Another.", args: {}, execute: async () => "other" })
`

func TestATypeScriptTool(t *testing.T) {
	p := newPlace(t, map[string]string{"tools/greet.ts": greet, "tools/lib/shout.ts": "export const shout = (s: string): string => s.toUpperCase()"})
	all := p.Tools(t.Context())
	if len(all) != 2 || all[0].ID != "greet" || all[1].ID != "greet_other" {
		t.Fatalf("%v %s", all, p.said())
	}
	var schema struct {
		Properties map[string]map[string]any
		Required   []string
	}
	if err := json.Unmarshal(all[0].Parameters, &schema); err != nil || schema.Properties["name"]["description"] != "who" || schema.Properties["times"]["default"] != 1.0 || !slices.Equal(schema.Required, []string{"name"}) {
		t.Errorf("%s", all[0].Parameters)
	}
	var title string
	r, err := p.run(t.Context(), "greet", `{"name":"Ann","times":2,"mood":"loud"}`, func(u tools.Update) { title = u.Title })
	if err != nil || r.Output != "HELLO ANN! HELLO ANN! " || r.Title != "Greeted" || r.Metadata["self"] != true || r.Metadata["agent"] != "build" || r.Metadata["dir"] != p.dir || title != "Greeting Ann" {
		t.Errorf("%+v %v %q", r, err, title)
	}
	if r, err := p.run(t.Context(), "greet", `{"name":"Bob"}`, nil); err != nil || r.Output != "Hello Bob! " {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := p.run(t.Context(), "greet", `{"name":"B"}`, nil); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("%v", err)
	}
	if !slices.Contains(p.asked, "greet *") {
		t.Errorf("%v", p.asked)
	}
	p.no["greet"] = permission.ErrDenied
	if _, err := p.run(t.Context(), "greet", `{"name":"Bob"}`, nil); !errors.Is(err, permission.ErrDenied) {
		t.Errorf("%v", err)
	}
}

func TestAChangedToolIsLoadedAnew(t *testing.T) {
	p := newPlace(t, map[string]string{"tool/x.js": `export default { description: "one", args: {}, execute: () => "one" }`})
	if r, err := p.run(t.Context(), "x", `{}`, nil); err != nil || r.Output != "one" {
		t.Fatalf("%v %v", r, err)
	}
	p.put("tool/x.js", `export default { description: "changed", args: {}, execute: async () => "changed" }`)
	if r, err := p.run(t.Context(), "x", `{}`, nil); err != nil || r.Output != "changed" {
		t.Errorf("%v %v", r, err)
	}
	p.put("tool/x.js", "export default {\n  description: 'broken',\n  execute( { }\n")
	if all := p.Tools(t.Context()); len(all) != 0 || !strings.Contains(p.said(), filepath.Join(p.dir, "tool/x.js")+":4:1: ") {
		t.Errorf("%v %s", all, p.said())
	}
	if err := os.Remove(filepath.Join(p.dir, "tool/x.js")); err != nil {
		t.Fatal(err)
	}
	if all := p.Tools(t.Context()); len(all) != 0 {
		t.Error(all)
	}
}

func TestToolsThatMisbehave(t *testing.T) {
	p := newPlace(t, map[string]string{
		"tool/bad.ts": `import { tool } from "@opencode-ai/plugin"
const args = {}
export const fails = tool({ description: "d", args, async execute() { throw new Error("no paper") } })
export const exits = tool({ description: "d", args, async execute(): Promise<string> { process.exit(3) } })
export const loops = tool({ description: "d", args, async execute(): Promise<string> { for (;;) {} } })
export const waits = tool({ description: "d", args, execute: (_, c) => new Promise<string>((_, no) => c.abort.addEventListener("abort", () => no(new Error("stopped")))) })
export const cycle = tool({ description: "d", args, async execute(): Promise<any> { const a: any = { n: 1n }; a.self = a; return a } })
export const flood = tool({ description: "d", args, async execute() { console.log("x".repeat(1 << 20)); return "y".repeat(9 << 20) } })
export const hoard = tool({ description: "d", args, async execute(): Promise<string> { const all = []; for (;;) all.push(new Array(1 << 20).fill({})) } })
`,
		"tool/good.js":  `export default { description: "good", args: {}, execute: () => "fine" }`,
		"tool/empty.js": `export const x = 1`,
		"tool/dies.js":  `throw new Error("at the top")`,
		"tool/needs.js": `import x from "no-such-package"; export default x`,
	})
	fine := func() {
		t.Helper()
		if r, err := p.run(t.Context(), "good", `{}`, nil); err != nil || r.Output != "fine" {
			t.Errorf("%v %v", r, err)
		}
	}
	fine()
	for _, want := range []string{"empty.js exports no tool", "at the top", `Could not resolve "no-such-package"`, "needs.js:1:15"} {
		if !strings.Contains(p.said(), want) {
			t.Errorf("no %q in %s", want, p.said())
		}
	}
	kindOf := func(id string) (string, string) {
		_, err := p.run(t.Context(), id, `{}`, nil)
		var e *tools.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", id, err)
		}
		return e.Kind, e.Message
	}
	if kind, text := kindOf("bad_fails"); kind != "custom" || !strings.Contains(text, "no paper") || !strings.Contains(text, "bad.ts:3:") {
		t.Errorf("%s %s", kind, text)
	}
	if kind, text := kindOf("bad_exits"); kind != "crashed" || !strings.Contains(text, "exit code 3") {
		t.Errorf("%s %s", kind, text)
	}
	fine()
	if kind, text := kindOf("bad_hoard"); kind != "crashed" || !strings.Contains(text, "memory") {
		t.Errorf("%s %s", kind, text)
	}
	fine()
	for _, id := range []string{"bad_loops", "bad_waits"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := p.run(ctx, id, `{}`, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", id, err)
		}
		cancel()
		fine()
	}
	if r, err := p.run(t.Context(), "bad_cycle", `{}`, nil); err != nil || !strings.Contains(r.Output, `"self": "[circular]"`) {
		t.Errorf("%v %v", r, err)
	}
	if r, err := p.run(t.Context(), "bad_flood", `{}`, nil); err != nil || len(r.Output) > 60<<10 {
		t.Errorf("%d %v", len(r.Output), err)
	}
}

func TestAToolAsks(t *testing.T) {
	p := newPlace(t, map[string]string{"tool/net.js": `export default { description: "d", args: {}, async execute(_, c) {
  await c.ask({ permission: "webfetch", patterns: ["https://x.example"], always: ["https://x.example/*"], metadata: {} })
  return "asked"
} }`})
	if r, err := p.run(t.Context(), "net", `{}`, nil); err != nil || r.Output != "asked" || !slices.Contains(p.asked, "webfetch https://x.example") {
		t.Errorf("%v %v %v", r, err, p.asked)
	}
	// The call itself is asked as well: the defaults allow Pillion's own tools, not this one, and a written rule may.
	for rule, asks := range map[permission.Action]bool{"": true, permission.Allow: false} {
		rules, asked := permission.Default(), []string{}
		if rule != "" {
			rules = append(rules, permission.Rule{Permission: "net", Pattern: "*", Action: rule, Origin: "a file"})
		}
		gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }, Asker: askerFunc(func(r permission.Request) { asked = append(asked, r.Permission) })})
		all := p.Tools(t.Context())
		i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.ID == "net" })
		_, err := tools.Invoke(t.Context(), all[i], json.RawMessage(`{}`), &tools.Call{SessionID: "ses", CallID: "call", Host: tools.Host{Gate: gate}}, tools.CapOptions{})
		if err != nil || slices.Contains(asked, "net") != asks {
			t.Errorf("rule %q: asked %v, %v", rule, asked, err)
		}
	}
	p.no["webfetch"] = &permission.RejectedError{Message: "not there"}
	if _, err := p.run(t.Context(), "net", `{}`, nil); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("%v", err)
	}
}

// askerFunc is a person who allows everything once.
type askerFunc func(permission.Request)

func (f askerFunc) AskPermission(_ context.Context, r permission.Request) (permission.Reply, error) {
	f(r)
	return permission.Reply{Kind: permission.Once}, nil
}

func TestCallsRunBesideEachOther(t *testing.T) {
	p := newPlace(t, map[string]string{"tool/meet.js": `let release; const both = new Promise((r) => (release = r)); let n = 0
export default { description: "d", args: {}, async execute() { if (++n === 2) release(); await both; return String(n) } }`})
	p.Tools(t.Context())
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			if r, err := p.run(t.Context(), "meet", `{}`, nil); err != nil || r.Output != "2" {
				t.Errorf("%v %v", r, err)
			}
		})
	}
	wait.Wait()
}

func TestAManifest(t *testing.T) {
	p := newPlace(t, map[string]string{
		"tools/count.json": `{"description": "Counts.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, "command": ["./count.sh"]}`,
		"tools/count.sh":   "#!/bin/sh\nread line; printf '{\"output\": \"%s\", \"title\": \"Counted\"}' \"${#line}\"\n",
		"tools/says.json":  `{"name": "plain words", "description": "d", "command": ["sh", "-c", "cat >/dev/null; echo hello"]}`,
		"tools/fails.json": `{"description": "d", "command": ["sh", "-c", "echo broken pipe dream >&2; exit 4"]}`,
		"tools/slow.json":  `{"description": "d", "timeout": 1, "command": ["sh", "-c", "sleep 100 & sleep 100"]}`,
		"tools/flood.json": `{"description": "d", "command": ["sh", "-c", "yes | head -c 100000000"]}`,
		"tools/bad.json":   "{\n\"description\": \"d\",\n oops}",
		"tools/none.json":  `{"description": "d"}`,
	})
	if r, err := p.run(t.Context(), "count", `{"text":"abc"}`, nil); err != nil || r.Title != "Counted" || len(r.Output) < 2 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := p.run(t.Context(), "count", `{}`, nil); err == nil {
		t.Error("a missing argument")
	}
	if r, err := p.run(t.Context(), "plain_words", `{}`, nil); err != nil || r.Output != "hello\n" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := p.run(t.Context(), "fails", `{}`, nil); err == nil || err.Error() != "exit status 4: broken pipe dream" {
		t.Errorf("%v", err)
	}
	if _, err := p.run(t.Context(), "slow", `{}`, nil); err == nil || !strings.Contains(err.Error(), "within 1s") {
		t.Errorf("%v", err)
	}
	if r, err := p.run(t.Context(), "flood", `{}`, nil); err != nil || r.Metadata["truncated"] != true {
		t.Errorf("%v %v", r.Metadata, err)
	}
	if s := p.said(); !strings.Contains(s, "bad.json was not loaded: line 3") || !strings.Contains(s, `no "command"`) {
		t.Error(s)
	}
	if p.child != nil {
		t.Error("manifests alone started the JavaScript host")
	}
}

func TestToolsWrittenForBunAndEveryWayToImportZod(t *testing.T) {
	p := newPlace(t, map[string]string{
		"tools/bun.ts": `import { tool } from "@opencode-ai/plugin"
import { $ } from "bun"
export default tool({ description: "b", args: { a: tool.schema.number() }, async execute(args, context) {
  await Bun.write(context.worktree + "/made/x.txt", "made " + args.a)
  const failed = await Bun.$` + "`cat made/x.txt; exit ${args.a}`" + `.nothrow().quiet()
  const started = Bun.spawn(["echo", "started"])
  const said = (await new Response(started.stdout).text()).trim()
  let missing = ""
  try { Bun.serve({}) } catch (e) { missing = e.message }
  return [(await $` + "`echo ${\"a b\"}`" + `.text()).trim(), await Bun.file("made/x.txt").text(), failed.exitCode, failed.stdout.toString(), said, await started.exited, missing].join("|")
} })`,
		"tools/star.ts":   `import * as z from "zod"; export default { description: "s", args: { a: z.string().min(2) }, execute: async (a) => "star " + a.a }`,
		"tools/four.ts":   `import * as z from "zod/v4"; export default { description: "s", args: { a: z.string() }, execute: async (a) => "four " + a.a }`,
		"tools/named.ts":  `import { string } from "zod"; export default { description: "s", args: { a: string() }, execute: async (a) => "named " + a.a + typeof globalThis.Bun }`,
		"tools/plain.mjs": `import z from "zod"; export default { description: "s", args: { a: z.string() }, async execute() { throw { message: "in words", code: 3 } } }`,
	})
	got, err := p.run(t.Context(), "bun", `{"a":5}`, nil)
	if err != nil || !strings.HasPrefix(got.Output, "a b|made 5|5|made 5|started|0|Bun.serve is not here") {
		t.Errorf("%q %v %s", got.Output, err, p.said())
	}
	for id, want := range map[string]string{"star": "star xy", "four": "four xy", "named": "named xyundefined"} {
		if got, err := p.run(t.Context(), id, `{"a":"xy"}`, nil); err != nil || got.Output != want {
			t.Errorf("%s: %q %v", id, got.Output, err)
		}
	}
	if _, err := p.run(t.Context(), "star", `{"a":"x"}`, nil); err == nil {
		t.Error("zod does not check")
	}
	if _, err := p.run(t.Context(), "plain", `{"a":"x"}`, nil); err == nil || err.Error() != "in words" {
		t.Errorf("%v", err)
	}
}
