package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howPeers = "Other agents from npm (`scripts/setup-peers.sh`), each driven over ACP by the same client, on the same machine, in turns with ours: OpenCode as `opencode acp`, Codex as `codex-acp`, " +
	"Gemini CLI as `gemini --acp`. The model is scripted, in the wire format that the agent speaks: chat completions, responses, generateContent. Each agent reads and edits with its own tools " +
	"(Codex by `cat` and `apply_patch` in its shell) and asks before each edit. Both answer a step when the next request has arrived whole. Memory is that of the process and its children, a second after a session was opened."

// The figures that everybody's agent has; the page begins with them.
const (
	peerReady    = "ready: from the start to the first answer"
	peerMemory   = "memory with a session open"
	peerRead     = "a step: read of a small file"
	peerEdit     = "a step: edit with a permission"
	peerSessions = "20 sessions at once, each reads and edits"
)

var peerFigures = []string{peerReady, peerMemory, peerRead, peerEdit, peerSessions}

// peer is an agent that speaks ACP, with its ways to be configured and to be told to use a tool.
type peer struct {
	name    string // with its version
	command []string
	env     []string
	read    func(path string) wiretest.Step
	edit    func(path, old, text string) wiretest.Step
}

// peerProgram finds a program of an npm package that setup-peers.sh installed; version is the package's.
func peerProgram(pkg, program string) (path, version string) {
	return peerProgramIn(".cache/peers", pkg, program)
}

// peerProgramIn is peerProgram for a package in a folder of its own.
func peerProgramIn(folder, pkg, program string) (path, version string) {
	path, err := filepath.Abs(filepath.Join(folder, "node_modules/.bin", program))
	check(err)
	data, err := os.ReadFile(filepath.Join(folder, "node_modules", pkg, "package.json"))
	if err != nil {
		return "", ""
	}
	if _, err := os.Stat(path); err != nil {
		return "", ""
	}
	var manifest struct{ Version string }
	check(json.Unmarshal(data, &manifest))
	return path, manifest.Version
}

// ourselves is Pillion as one of the peers.
func (b *bench) ourselves(m *model) peer {
	config := m.config()
	config["small_model"] = "scripted/title" // the others name their sessions too
	return peer{
		name: "Pillion", command: []string{b.bin, "acp"}, env: b.home("peers", config),
		read: func(path string) wiretest.Step { return calls("read", map[string]any{"filePath": path}) },
		edit: func(path, old, text string) wiretest.Step {
			return calls("edit", map[string]any{"filePath": path, "oldString": old, "newString": text})
		},
	}
}

func (b *bench) peerOpenCode(m *model) (peer, bool) {
	path, version := peerProgram("opencode-ai", "opencode")
	p := b.ourselves(m)
	p.name, p.command = "OpenCode "+version, []string{path, "acp"}
	if path != "" {
		p.env = b.opencodeHome(m)
	}
	return p, path != ""
}

func (b *bench) peerCodex(m *model) (peer, bool) {
	path, version := peerProgram("@zed-industries/codex-acp", "codex-acp")
	if path == "" {
		return peer{}, false
	}
	return b.codex("Codex (Zed's codex-acp "+version+")", path, m, `approval_policy = "untrusted"`, "shell_command", "command"), true
}

// peerCodex2 is the package that followed Zed's: an adapter to Codex's own server.
func (b *bench) peerCodex2(m *model) (peer, bool) {
	path, version := peerProgramIn(".cache/peers/codex", "@agentclientprotocol/codex-acp", "codex-acp")
	if path == "" {
		return peer{}, false
	}
	return b.codex("Codex (codex-acp "+version+")", path, m, "", "exec_command", "cmd"), true // it has no policy that asks about each command any more
}

// codex is one of the two, with a line of its settings. Its model runs commands with a tool's member.
func (b *bench) codex(name, path string, m *model, line, tool, member string) peer {
	home := filepath.Join(b.dir, "home-codex")
	b.write(filepath.Join(home, ".codex/config.toml"), fmt.Sprintf(`model = "m"
model_provider = "scripted"
%s
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = %q
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`, line, m.url))
	shell := func(command string) wiretest.Step {
		return calls(tool, map[string]any{member: command})
	}
	return peer{
		name: name, command: []string{path},
		env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=*", "SCRIPTED_KEY=none"},
		read: func(path string) wiretest.Step { return shell("cat " + path) },
		edit: func(path, old, text string) wiretest.Step {
			return shell(fmt.Sprintf("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: %s\n@@\n-%s\n+%s\n*** End Patch\nEOF\n", path, old, text))
		},
	}
}

func (b *bench) peerGemini(m *model) (peer, bool) {
	path, version := peerProgram("@google/gemini-cli", "gemini")
	if path == "" {
		return peer{}, false
	}
	home := filepath.Join(b.dir, "home-gemini")
	b.write(filepath.Join(home, ".gemini/settings.json"), `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-flash", "skipNextSpeakerCheck": true},
 "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}`)
	return peer{
		name: "Gemini CLI " + version, command: []string{path, "--acp"},
		env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=*", "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true",
			"GOOGLE_GEMINI_BASE_URL=" + strings.TrimSuffix(m.url, "/v1"),
		},
		read: func(path string) wiretest.Step { return calls("read_file", map[string]any{"file_path": path}) },
		edit: func(path, old, text string) wiretest.Step {
			return calls("replace", map[string]any{"file_path": path, "instruction": "change it", "old_string": old, "new_string": text})
		},
	}, true
}

func (b *bench) peerClaude(m *model) (peer, bool) {
	path, version := peerProgram("@agentclientprotocol/claude-agent-acp", "claude-agent-acp")
	if path == "" {
		return peer{}, false
	}
	return peer{
		name: "Claude Code (claude-agent-acp " + version + ")", command: []string{path},
		env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(b.dir, "home-claude"), "NO_PROXY=*", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(m.url, "/v1"),
		},
		read: func(path string) wiretest.Step { return calls("Read", map[string]any{"file_path": path}) },
		edit: func(path, old, text string) wiretest.Step {
			return calls("Edit", map[string]any{"file_path": path, "old_string": old, "new_string": text})
		},
	}, true
}

// peers measures the five figures beside each agent that is installed.
func (b *bench) peers() {
	m := newModel()
	defer m.close()
	cwd := b.project("project")
	var missing []string
	for _, other := range []struct {
		name string
		make func(*model) (peer, bool)
	}{{"OpenCode", b.peerOpenCode}, {"Codex", b.peerCodex}, {"Gemini CLI", b.peerGemini}} {
		if !strings.Contains(other.name, b.chosen) {
			continue
		}
		theirs, ok := other.make(m)
		if !ok {
			missing = append(missing, other.name)
			continue
		}
		d := &duel{b: b, m: m, cwd: cwd, side: [2]peer{b.ourselves(m), theirs}}
		d.run()
	}
	if len(missing) > 0 {
		b.missing = strings.Join(missing, ", ") + ": not installed; `scripts/setup-peers.sh` gets them."
		fmt.Println("  " + b.missing)
	}
}

// duel is two agents on one scripted model, in turns.
type duel struct {
	b     *bench
	m     *model
	cwd   string
	side  [2]peer
	files int // made so far: each edit has a file of its own
}

func (d *duel) run() {
	var at [2]func() float64
	for i := range d.side {
		at[i] = func() float64 {
			c := d.spawn(i)
			defer c.close()
			return c.initialize()
		}
	}
	d.row(peerReady, "ms", inTurns(d.b.rounds(6), at[0], at[1]))
	for i := range d.side {
		at[i] = func() float64 {
			c := d.open(i)
			defer c.close()
			c.newSession(d.cwd)
			time.Sleep(time.Second)
			return familyOf(c.cmd.Process.Pid)
		}
	}
	d.row(peerMemory, "MB", inTurns(d.b.rounds(3), at[0], at[1]))
	var open [2]*client
	for i := range d.side {
		open[i] = d.open(i)
		defer open[i].close()
	}
	// Another file each time: the same call ten times is a loop to an agent, which then ends the turn.
	d.row(peerRead, "ms", d.steps(open, func(p peer, _ string, _ int) wiretest.Step { return p.read(d.file()) }))
	d.row(peerEdit, "ms", d.steps(open, func(p peer, path string, k int) wiretest.Step {
		return p.edit(path, fmt.Sprintf("line %d", k), fmt.Sprintf("line %d", k+1))
	}))
	for i := range d.side {
		at[i] = func() float64 { return d.together(open[i], d.side[i]) }
	}
	d.row(peerSessions, "ms", inTurns(d.b.rounds(4), at[0], at[1]))
}

// spawn starts one of the two.
func (d *duel) spawn(i int) *client {
	return d.b.agent(d.side[i].env, d.side[i].command[0], d.side[i].command[1:]...)
}

// open starts one of the two and waits until it is ready.
func (d *duel) open(i int) *client {
	c := d.spawn(i)
	c.initialize()
	return c
}

func (d *duel) row(what, unit string, s []Samples) {
	d.b.add(Row{What: what, Unit: unit, Ours: s[0], Beside: s[1], BesideName: d.side[1].name})
}

func (d *duel) file() string {
	d.files++
	path := filepath.Join(d.cwd, fmt.Sprintf("p%d.txt", d.files))
	d.b.write(path, "line 0\n")
	return path
}

// steps are turns of ten calls in a session of their own, the first turn left out; the file is read before, because some refuse to edit
// what they have not read. A side that is not open is started for each turn, as an agent behind Pillion is: the first steps of a process
// are slower than its later ones.
func (d *duel) steps(open [2]*client, step func(p peer, path string, k int) wiretest.Step) []Samples {
	const inTurn = 10
	out := make([]Samples, 2)
	for round := range d.b.rounds(4) + 1 {
		for i, c := range open {
			started := c == nil
			if started {
				c = d.open(i)
			}
			path := d.file()
			d.m.Add(d.side[i].read(path))
			for k := range inTurn {
				d.m.Add(step(d.side[i], path, k))
			}
			d.m.Add(says)
			d.m.take()
			_, err := c.prompt(c.newSession(d.cwd), "do it")
			check(err)
			if left := d.m.Left(); left > 0 {
				d.m.Drop()
				failf("%s left %d steps", d.side[i].name, left)
			}
			if started {
				c.close()
			}
			if round > 0 {
				out[i] = append(out[i], gaps(d.m.take())[1:]...)
			}
		}
	}
	return out
}

// together prompts 20 sessions at once; each reads a file and edits it.
func (d *duel) together(c *client, p peer) float64 {
	const many = 20
	ids, paths := make([]string, many), make([]string, many)
	for k := range ids {
		paths[k], ids[k] = d.file(), c.newSession(d.cwd)
		for _, s := range []wiretest.Step{p.read(paths[k]), p.edit(paths[k], "line 0", "line 1"), says} {
			s.When = marker(d.files, k)
			d.m.Add(s)
		}
	}
	last := d.files
	markers := make([]string, many)
	for k := range markers {
		markers[k] = marker(last-many+k+1, k)
	}
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, many)
	for k, id := range ids {
		wg.Go(func() { _, errs[k] = c.prompt(id, markers[k]) })
	}
	wg.Wait()
	took := ms(time.Since(began))
	for _, err := range errs {
		check(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		if string(text) != "line 1\n" {
			failf("%s left %s as %q", p.name, path, text)
		}
	}
	return took
}

// peersTable is the head of the page: a row a figure, a column an agent. Ours is the median over all turns.
func peersTable(r *Result) string {
	var names []string
	ours, theirs, unit := map[string]Samples{}, map[string]map[string]float64{}, map[string]string{}
	for _, row := range r.Rows {
		if theirs[row.BesideName] == nil {
			names = append(names, row.BesideName)
			theirs[row.BesideName] = map[string]float64{}
		}
		ours[row.What] = append(ours[row.What], row.Ours...)
		theirs[row.BesideName][row.What], unit[row.What] = row.Beside.Median(), row.Unit
	}
	var t strings.Builder
	fmt.Fprintf(&t, "| median, measured in turns | Pillion | %s |\n|---|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, what := range peerFigures {
		fmt.Fprintf(&t, "| %s, %s | **%s** |", what, unit[what], figure(ours[what].Median()))
		for _, name := range names {
			fmt.Fprintf(&t, " %s |", figure(theirs[name][what]))
		}
		t.WriteByte('\n')
	}
	return t.String()
}
