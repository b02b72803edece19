package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howOpenCode = "OpenCode from npm (`scripts/setup-peers.sh`), driven as `opencode acp` by the same client on the same scripted model with the same turns, in turns with ours; " +
	"language servers, plugins, updates and its list of models off, edits asked on both sides and allowed at once. Both answer a step when the next request has arrived whole. " +
	"Memory is that of the process and its children."

const howSent = "The first request of a new session in an empty folder, without MCP servers, as both programs send it to the same scripted model. Tokens are bytes of compact JSON divided by four: " +
	"no provider publishes an exact count for all models. Every step sends the tools again, from the provider's cache at best."

// sent compares what a first request carries beside the person's prompt.
func (b *bench) sent() {
	m := newModel()
	defer m.close()
	theirs, ok := b.peerOpenCode(m)
	if !ok {
		b.missing = "OpenCode is not installed; `scripts/setup-peers.sh` gets it."
		fmt.Println("  " + b.missing)
		return
	}
	d := &duel{b: b, m: m, cwd: b.project("project"), side: [2]peer{b.ourselves(m), theirs}}
	var tools, schemas, rest [2]Samples
	for i := range d.side {
		m.Add(says)
		before := len(m.Requests())
		c := d.spawn(i)
		c.initialize()
		_, err := c.prompt(c.newSession(d.cwd), "hello")
		c.close()
		check(err)
		// The request for a title has no tools.
		for _, r := range m.Requests()[before:] {
			var body struct {
				Tools    []json.RawMessage `json:"tools"`
				Messages json.RawMessage   `json:"messages"`
			}
			check(json.Unmarshal(r.Body, &body))
			if len(body.Tools) == 0 {
				continue
			}
			all, err := json.Marshal(body.Tools)
			check(err)
			tools[i], schemas[i], rest[i] = Samples{float64(len(body.Tools))}, Samples{float64(len(all) / 4)}, Samples{float64(len(body.Messages) / 4)}
			break
		}
		if len(tools[i]) == 0 {
			failf("%s sent no request with tools", d.side[i].name)
		}
	}
	d.row("tools that the model is offered", "", tools[:])
	d.row("their schemas", "tokens", schemas[:])
	d.row("system prompt and prompt", "tokens", rest[:])
}

// opencodeHome is a home of OpenCode's own with the scripted model in it, and language servers off.
func (b *bench) opencodeHome(m *model) []string { return b.opencodeHomeWith(m, false) }

// opencodeHomeWith is opencodeHome with OpenCode's setting lsp.
func (b *bench) opencodeHomeWith(m *model, lsp bool) []string {
	config := b.opencodeConfig(m, lsp)
	config["permission"] = map[string]any{"edit": "ask"}
	home := filepath.Join(b.dir, "home-opencode")
	check(os.MkdirAll(home, 0o755))
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=*"}, opencodeEnv(config)...)
}

// opencodeConfig names the model to OpenCode.
func (b *bench) opencodeConfig(m *model, lsp bool) map[string]any {
	limit := map[string]any{"context": 1 << 30, "output": 1 << 16}
	return map[string]any{
		"model": "scripted/m", "small_model": "scripted/title", "autoupdate": false, "share": "disabled", "lsp": lsp,
		"provider": map[string]any{"scripted": map[string]any{"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": m.url, "apiKey": "none"},
			"models": map[string]any{"m": map[string]any{"name": "m", "tool_call": true, "limit": limit}, "title": map[string]any{"name": "title", "limit": limit}}}},
	}
}

// opencodeEnv are the variables with which OpenCode has this configuration over all others, and does nothing by itself.
func opencodeEnv(config map[string]any) []string {
	data, err := json.Marshal(config)
	check(err)
	env := []string{"OPENCODE_CONFIG_CONTENT=" + string(data)}
	for _, off := range []string{"AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "AUTOCOMPACT", "PRUNE"} {
		env = append(env, "OPENCODE_DISABLE_"+off+"=1")
	}
	return env
}

// pair is Pillion and OpenCode, with the processes that the turns go to.
type pair struct {
	*duel
	ours, theirs *client
	at           int
}

func (b *bench) opencode() {
	m := newModel()
	defer m.close()
	theirs, ok := b.peerOpenCode(m)
	if !ok {
		b.missing = "OpenCode is not installed; `scripts/setup-peers.sh` gets it."
		fmt.Println("  " + b.missing)
		return
	}
	p := &pair{duel: &duel{b: b, m: m, cwd: b.project("project"), side: [2]peer{b.ourselves(m), theirs}}}
	for i := range 50 {
		b.write(p.file(i), fmt.Sprintf("file %d\n", i))
	}

	p.start()
	p.ours, p.theirs = p.open(0), p.open(1)
	defer func() { p.ours.close(); p.theirs.close() }()
	p.turns()
	p.answers()
	p.memory()
}

func (p *pair) file(i int) string { return filepath.Join(p.cwd, fmt.Sprintf("f%d.txt", i%50)) }

// start is from nothing to the first answer, and to the first request of a prompt.
func (p *pair) start() {
	first := func(i int) func() float64 {
		return func() float64 {
			c := p.spawn(i)
			defer c.close()
			return c.initialize()
		}
	}
	p.row("spawn → initialize answered", "ms", inTurns(p.b.rounds(8), first(0), first(1)))
	whole := func(i int) func() float64 {
		return func() float64 {
			c := p.spawn(i)
			defer c.close()
			c.initialize()
			p.m.Add(says)
			p.m.take()
			_, err := c.prompt(c.newSession(p.cwd), "hello")
			check(err)
			return ms(p.m.take()[0].arrived.Sub(c.began))
		}
	}
	p.row("spawn → the first prompt at the model", "ms", inTurns(p.b.rounds(5), whole(0), whole(1)))
}

// turns are steps: reads, edits that are asked, searches, an edit that only matches fuzzily.
func (p *pair) turns() {
	const inTurn = 10
	steps := func(c *client, first wiretest.Step, next func(i int) wiretest.Step) Samples {
		p.m.Add(first)
		for i := range inTurn {
			p.m.Add(next(i))
		}
		p.m.Add(says)
		p.m.take()
		_, err := c.prompt(c.newSession(p.cwd), "do it")
		check(err)
		if left := p.m.Left(); left > 0 {
			p.m.Drop()
			failf("%s left %d steps", filepath.Base(c.cmd.Path), left)
		}
		return gaps(p.m.take())[1:]
	}
	read := func(path string) wiretest.Step { return calls("read", map[string]any{"filePath": path}) }
	both := func(turn func(c *client) Samples) []Samples {
		out := make([]Samples, 2)
		for round := range p.b.rounds(5) + 1 {
			a, z := turn(p.ours), turn(p.theirs)
			if round > 0 { // the first warms
				out[0], out[1] = append(out[0], a...), append(out[1], z...)
			}
		}
		return out
	}
	p.row("a step: read of a small file", "ms", both(func(c *client) Samples {
		return steps(c, read(p.file(0)), func(i int) wiretest.Step { p.at++; return read(p.file(p.at)) })
	}))
	p.row("a step: edit with a permission round trip", "ms", both(func(c *client) Samples {
		p.at++
		path := filepath.Join(p.cwd, fmt.Sprintf("e%d.go", p.at))
		p.b.write(path, "package x\n\nvar v = 0\n")
		before := c.asked
		s := steps(c, read(path), func(i int) wiretest.Step {
			return calls("edit", map[string]any{"filePath": path, "oldString": fmt.Sprintf("var v = %d", i), "newString": fmt.Sprintf("var v = %d", i+1)})
		})
		if c.asked-before != inTurn {
			failf("%d edits asked %d times", inTurn, c.asked-before)
		}
		return s
	}))
	text := goLines(10_000)
	p.row("a step: edit of 10,000 lines by the block anchor", "ms", both(func(c *client) Samples {
		p.at++
		path := filepath.Join(p.cwd, fmt.Sprintf("big%d.go", p.at))
		p.b.write(path, text)
		return steps(c, calls("read", map[string]any{"filePath": path, "limit": 5}), func(i int) wiretest.Step {
			k := 5 * (200 + 100*i) // a function: first and last line as they are, the second slightly wrong
			old := fmt.Sprintf("func number%d(value int) int {\n\tif value >= %d { // a comment of some length\n\t\treturn value * %d\n\t}", k, k+1, k+2)
			now := fmt.Sprintf("func number%d(value int) int {\n\tif value > %d { // changed\n\t\treturn value * %d\n\t}", k, k+1, k+2)
			return calls("edit", map[string]any{"filePath": path, "oldString": old, "newString": now})
		})
	}))
	p.b.flat(filepath.Join(p.cwd, "tree"), 10_000)
	p.row("a step: grep of a rare word in 10,000 files", "ms", both(func(c *client) Samples {
		return steps(c, read(p.file(0)), func(i int) wiretest.Step { return calls("grep", map[string]any{"pattern": "rare_word"}) })
	}))
	p.row("a step: glob in them", "ms", both(func(c *client) Samples {
		return steps(c, read(p.file(0)), func(i int) wiretest.Step { return calls("glob", map[string]any{"pattern": "**/rare*"}) })
	}))
}

// answers are long ones: how many deltas a second come through to the client, and all of the text.
func (p *pair) answers() {
	const many = 5_000
	pieces := make([]string, many)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("word%d ", i)
	}
	want := strings.Join(pieces, "")
	through := func(c *client) func() float64 {
		return func() float64 {
			session := c.newSession(p.cwd)
			var kept [][]byte
			c.listen(func(line []byte, _ time.Time) { kept = append(kept, line) })
			p.m.Add(wiretest.Step{Deltas: pieces, Burst: true})
			p.m.take()
			end, err := c.prompt(session, "write")
			check(err)
			c.listen(nil)
			if got, _ := chunks(kept); got != want {
				failf("%d bytes of %d arrived through %s", len(got), len(want), filepath.Base(c.cmd.Path))
			}
			return many / end.Sub(p.m.take()[0].arrived).Seconds()
		}
	}
	p.row("5,000 deltas through to the client", "/s", inTurns(p.b.rounds(5), through(p.ours), through(p.theirs)))
}

// memory is what both hold after all that, and after a start.
func (p *pair) memory() {
	var idle, worked []Samples
	for i, c := range []*client{p.ours, p.theirs} {
		worked = append(worked, Samples{familyOf(c.cmd.Process.Pid)})
		fresh := p.open(i)
		time.Sleep(time.Second)
		idle = append(idle, Samples{familyOf(fresh.cmd.Process.Pid)})
		fresh.close()
	}
	p.row("memory a second after the start", "MB", idle)
	p.row("memory after all of these turns", "MB", worked)
}
