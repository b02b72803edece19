package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howBring = "Public projects that carry the configuration of OpenCode or of Claude Code, each given to that program and to Pillion: the same checkout (a copy each), the same prompt, and the same " +
	"calls by a scripted model, over ACP, in a home of its own. The folder is trusted. Beside OpenCode the person's settings allow `edit`, `bash` and `webfetch` as [opencode.md](opencode.md) says; beside Claude Code they are empty, " +
	"and its mode is *default*. What the project adds is what is there beyond an empty folder: the tools of the last request; agents and skills of which the first request tells; " +
	"the files whose text (four fifths of its first twenty long lines) is in the first request; slash commands and modes as the editor is told. Each of the calls " +
	"runs, is asked or is refused, by the project's rules, hooks and plugins; the person rejects what is asked. Programs that MCP servers and hooks start from elsewhere (`npx`, `uv`, `bun` …) are a stand-in: an MCP server with one tool. " +
	"Only Markdown and configuration are checked out (`bench/bring.go`). The requests compared are kept in `.cache/bring`."

const afterBring = "The differences, and why: **Pillion asks before a command prints a `.env` file**, as it asks before reading it; OpenCode and Claude Code ask about the reading tool only, or not at all. " +
	"**Commands that change nothing** (`ls`, `git log`) run without a question also where a project says `\"bash\": {\"*\": \"ask\"}`; `\"bash_readonly\": \"ask\"` ends that. " +
	"**OpenCode has a skill of its own** (`customize-opencode`), so it has the tool `skill` in a project without skills. " +
	"**Where a project is set up for several agents** Pillion reads all of it: OpenCode's plugins beside Claude Code's hooks, skills of each agent's folder."

// brought is a public project that brings the configuration of another agent.
type brought struct {
	repo, commit string // on GitHub
	claude       bool   // of Claude Code; else of OpenCode
}

var broughtProjects = []brought{
	{repo: "ClaudiuBogdan/hack-for-facts-eb-server", commit: "947e863f4031f0552f8d4aa25380e24ecc53201e"},
	{repo: "EcoPasteHub/EcoPaste", commit: "5139d30b0f4c1309356a9b308c05092f1038bc9b"},
	{repo: "BLamy/almostnode", commit: "bd500c771bf290ad8c5d364ef2b9ba1a00a7a6bf"},
	{repo: "26zl/cybersec-toolkit", commit: "e5cd187be5225bde70dd0957b163a409a0604e5f"},
	{repo: "anomalyco/models.dev", commit: "f3fc692299671838c7c65fd8126bf84d81a2e817"},
	{repo: "2digits-agency/configs", commit: "589f11208e7c3f73764fe5a5faecdcb8b3564220"},
	{repo: "8bittitan/ody", commit: "21bd4fa2e83c1e63f6002adde5d08df60eb6fc50"},
	{repo: "0xSero/open-trees", commit: "924b279b4aa153f806d6e18b0bde217499d1a24b"},
	{repo: "pydantic/pydantic-ai", commit: "4fda38988f2939fa6ea9cdefcf120693e10ef491", claude: true},
	{repo: "2anki/server", commit: "fb15d2bd99f7fbbff798a8d912aab201b6268b74", claude: true},
	{repo: "getsentry/sentry-javascript", commit: "f7a6cc0c221c324026287a7218ed07e929eb69d4", claude: true},
	{repo: "basicmachines-co/basic-memory", commit: "4d1dfdb7e2cf9bfaff83c75daa8f02ce45ccc552", claude: true},
	{repo: "bitwarden/server", commit: "ac309aa19ed351406a56032d5f26a7a9a99f4abd", claude: true},
	{repo: "EcoPasteHub/EcoPaste", commit: "5139d30b0f4c1309356a9b308c05092f1038bc9b", claude: true},
}

// broughtFiles are what is checked out of a project: configuration, instructions and scripts. Its other files are of no account here.
var broughtFiles = []string{"*.md", "*.mdc", "/*.txt", "/*.json", "/*.jsonc", "/*.toml", "/scripts/*.sh", "/justfile", "/Makefile", ".opencode/", ".claude/", ".agents/", ".cursor/", ".cursorrules"}

// bringSide is one program in its copy of a project.
type bringSide struct {
	peer
	claude bool
	dir    string
}

// broughtSight is what the model and the editor of one program got to see. Lists are sorted.
type broughtSight struct {
	tools, offered, instructions, modes, commands []string
	answers                                       map[string]string // by the name of the call
	first                                         wiretest.Request
}

func (b *bench) bring() {
	var t strings.Builder
	t.WriteString("| project | beside | instructions | agents and skills | its tools | its commands and modes | calls |\n|---|---|---|---|---|---|---|\n")
	for _, p := range broughtProjects {
		if !strings.Contains(p.repo, b.chosen) {
			continue
		}
		if err := b.guarded(func(b *bench) { b.bringProject(&t, p) }); err != nil {
			fmt.Println("  FAILED", p.repo, err)
			b.missing = strings.TrimSpace(b.missing + " " + p.repo + ": " + err.Error())
		}
	}
	b.table = t.String()
	fmt.Print(b.table)
}

// bringProject compares the two programs in a project and writes a row.
func (b *bench) bringProject(t *strings.Builder, p brought) {
	m := newModel()
	defer m.close()
	m.kept = 16 << 20 // a project with 882 skills has 300 KB of them in a request
	folder := filepath.Join(b.dir, strings.ReplaceAll(p.repo, "/", "+"))
	ours, theirs := bringSide{peer: b.bringPillion(m, p.claude)}, bringSide{claude: p.claude}
	if p.claude {
		theirs.peer = b.bringClaude(m)
		folder += "-claude"
	} else {
		theirs.peer = b.bringOpenCode(m)
	}
	if theirs.command[0] == "" {
		failf("%s is not installed; `scripts/setup-peers.sh` gets it", theirs.name)
	}
	fmt.Println(" ", p.repo, "beside", theirs.name)
	var sights [2]broughtSight
	for i, s := range []bringSide{ours, theirs} {
		s.dir = filepath.Join(folder, fmt.Sprint(i), "empty")
		check(os.MkdirAll(s.dir, 0o755))
		if s.claude { // as when a person has answered its question about the folder
			trust := map[string]any{"projects": map[string]any{filepath.Join(folder, fmt.Sprint(i), "project"): map[string]any{"hasTrustDialogAccepted": true}}}
			data, err := json.Marshal(trust)
			check(err)
			b.write(filepath.Join(b.dir, "home-brought/.claude.json"), string(data))
		}
		empty := b.watchBrought(m, s, nil)
		s.dir = filepath.Join(folder, fmt.Sprint(i), "project")
		b.checkout(p, s.dir)
		if from, err := filepath.Abs(".cache/bring/node_modules"); err == nil && i == 1 && !p.claude {
			if _, err := os.Stat(from); err == nil { // installed beforehand, OpenCode does not wait for the registry
				check(os.CopyFS(filepath.Join(s.dir, ".opencode/node_modules"), os.DirFS(from)))
			}
		}
		sights[i] = b.watchBrought(m, s, bringCalls(s.dir, p.claude))
		sights[i].tools, sights[i].commands, sights[i].modes = minus(sights[i].tools, empty.tools), minus(sights[i].commands, empty.commands), minus(sights[i].modes, empty.modes)
		b.write(fmt.Sprintf(".cache/bring/%s-%d.json", filepath.Base(folder), i), string(sights[i].first.Body))
	}
	a, z := sights[0], sights[1]
	other, _, _ := strings.Cut(theirs.name, " (")
	var different []string
	for _, c := range bringCalls("", p.claude) {
		if x, y := a.answers[c.name], z.answers[c.name]; firstWord(x) != firstWord(y) {
			different = append(different, fmt.Sprintf("`%s` %s, there %s", c.name, firstWord(x), firstWord(y)))
			fmt.Printf("    %s: %.200s\n      there %.200s\n", c.name, x, y)
		}
	}
	calls := fmt.Sprintf("%d of %d the same", len(a.answers)-len(different), len(a.answers))
	if len(different) > 0 {
		calls += "; " + strings.Join(different, "; ")
	}
	fmt.Fprintf(t, "| %s `%.7s` | %s | %s | %s | %s | %s | %s |\n", p.repo, p.commit, other, beside(a.instructions, z.instructions), beside(a.offered, z.offered), beside(a.tools, z.tools),
		beside(append(a.commands, a.modes...), append(z.commands, z.modes...)), calls)
}

// beside says what two lists have in common, and names what only one has.
func beside(ours, theirs []string) string {
	onlyOurs, onlyTheirs := minus(ours, theirs), minus(theirs, ours)
	s := fmt.Sprintf("%d the same", len(ours)-len(onlyOurs))
	if len(onlyOurs) > 0 {
		s += "; only here: " + someOf(onlyOurs)
	}
	if len(onlyTheirs) > 0 {
		s += "; only there: " + someOf(onlyTheirs)
	}
	return s
}

// someOf lists at most twelve names: a cell of the page is read.
func someOf(names []string) string {
	if more := len(names) - 12; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:12], ", "), more)
	}
	return strings.Join(names, ", ")
}

func firstWord(s string) string { w, _, _ := strings.Cut(s, " "); return w }

// minus are the elements of a that are not in b.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}

// bringCall is one call of the scripted model, in the words of the program.
type bringCall struct {
	name string
	step wiretest.Step
}

// bringCalls are the calls in a project: reads, changes, commands of several kinds, a page, and the first skill and agent that it has.
func bringCalls(dir string, claude bool) (all []bringCall) {
	// add takes the call in OpenCode's words, which are Pillion's too, and what Claude Code calls the tool and its members.
	add := func(name, tool string, input map[string]any, theirs string, members map[string]string) {
		// Both get the call in their own words; Pillion is always called in OpenCode's, so claude is of the project only.
		all = append(all, bringCall{name, wiretest.Step{}})
		step := &all[len(all)-1].step
		*step = calls(tool, input)
		renamed := map[string]any{}
		for k, v := range input {
			if to, ok := members[k]; ok {
				renamed[to] = v
			}
		}
		step.Calls = append(step.Calls, calls(theirs, renamed).Calls...)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	path := map[string]string{"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "content": "content"}
	for _, name := range []string{"README.md", "../outside.txt", ".env"} {
		add("read "+name, "read", map[string]any{"filePath": file(name)}, "Read", path)
	}
	add("edit README.md", "edit", map[string]any{"filePath": file("README.md"), "oldString": "bring one", "newString": "bring two"}, "Edit", path)
	add("write src/new.test.ts", "write", map[string]any{"filePath": file("src/new.test.ts"), "content": "// new\n"}, "Write", path)
	for _, command := range []string{"ls", "git status", "git log -1", "cat .env", "echo x > out.txt", "rm -rf no-such-folder", "git push origin main", "git commit -m x",
		"npm run no-such-script", "make no-such-target", "uv run no-such-program", "curl -s http://127.0.0.1:9/", "sudo -n true"} {
		add(command, "bash", map[string]any{"command": command, "description": "Run it"}, "Bash", map[string]string{"command": "command", "description": "description"})
	}
	add("webfetch github.com", "webfetch", map[string]any{"url": "https://github.com/x", "format": "text", "prompt": "what"}, "WebFetch", map[string]string{"url": "url", "prompt": "prompt"})
	add("skill", "skill", map[string]any{"name": firstOf(dir, claude, "skill")}, "Skill", map[string]string{"name": "skill"})
	add("task", "task", map[string]any{"description": "look", "prompt": "look", "subagent_type": firstOf(dir, claude, "agent")}, "Agent",
		map[string]string{"description": "description", "prompt": "prompt", "subagent_type": "subagent_type"})
	return all
}

// firstOf is the first skill or agent of a project.
func firstOf(dir string, claude bool, kind string) string {
	top := ".opencode"
	if claude {
		top = ".claude"
	}
	for _, at := range []string{top, ".agents"} {
		for _, f := range broughtNames(filepath.Join(dir, at)) {
			if f.kind == kind && (claude || kind == "skill" || f.sub) {
				return f.name
			}
		}
	}
	if kind == "agent" {
		return map[bool]string{true: "general-purpose", false: "general"}[claude]
	}
	return "no-such-skill"
}

// broughtName is a skill or an agent that a project has.
type broughtName struct {
	kind, name string
	sub        bool // an agent that other agents start
}

var (
	headName = regexp.MustCompile(`(?m)^name:\s*["']?([\w:-]+)`)
	headSub  = regexp.MustCompile(`(?m)^mode:\s*["']?(subagent|all)`)
)

// broughtNames are the skills and agents in a folder of configuration, in the order of their paths.
func broughtNames(top string) (all []broughtName) {
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a folder that is not there
		}
		rel, err := filepath.Rel(top, path)
		check(err)
		in, rest, _ := strings.Cut(filepath.ToSlash(rel), "/")
		data, err := os.ReadFile(path) // of a link the file; of a folder nothing
		if err != nil {
			if d.Type()&fs.ModeSymlink == 0 || in != "skills" {
				return nil
			}
			path = filepath.Join(path, "SKILL.md")
			if data, err = os.ReadFile(path); err != nil {
				return nil
			}
		}
		name := strings.TrimSuffix(rest, ".md")
		given := headName.FindSubmatch(data)
		switch {
		case strings.HasPrefix(in, "skill") && filepath.Base(path) == "SKILL.md":
			name = filepath.Base(filepath.Dir(path))
			if given != nil {
				name = string(given[1])
			}
			all = append(all, broughtName{kind: "skill", name: name})
		case strings.HasPrefix(in, "agent") && name != rest:
			if filepath.Base(top) == ".claude" && given != nil {
				name = string(given[1])
			}
			all = append(all, broughtName{kind: "agent", name: name, sub: headSub.Match(data)})
		}
		return nil
	})
	return all
}

// bringStandIns are programs that configuration starts and that come from elsewhere, or have effects elsewhere.
var bringStandIns = []string{"npx", "uv", "uvx", "bun", "bunx", "docker", "pnpm", "yarn", "make", "just", "gh", "curl", "sudo", "prettier", "claude"}

// bringStandIn ends with its input, so that it serves as a command too.
const bringStandIn = `#!/usr/bin/env node
const out = (id, result) => process.stdout.write(JSON.stringify({jsonrpc: "2.0", id, result}) + "\n")
require("readline").createInterface({input: process.stdin}).on("line", line => {
	let m
	try { m = JSON.parse(line) } catch { return }
	if (m.method === "initialize") out(m.id, {protocolVersion: m.params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: "stand-in", version: "1"}})
	else if (m.method === "tools/list") out(m.id, {tools: [{name: "probe", description: "Answer.", inputSchema: {type: "object", properties: {}}}]})
	else if (m.method === "tools/call") out(m.id, {content: [{type: "text", text: "here"}]})
	else if (m.id !== undefined) out(m.id, {})
})
`

// bringEnv is the environment of a program in a home of its own, with the stand-ins before the programs of the machine.
func (b *bench) bringEnv(home string) []string {
	home = filepath.Join(b.dir, home)
	check(os.RemoveAll(home))
	check(os.MkdirAll(home, 0o755))
	stand := filepath.Join(b.dir, "stand-ins")
	for _, name := range bringStandIns {
		b.write(filepath.Join(stand, name), bringStandIn)
		check(os.Chmod(filepath.Join(stand, name), 0o755))
	}
	env := []string{"PATH=" + stand + ":" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=*"}
	for _, name := range []string{"config", "state", "cache", "data"} {
		env = append(env, "XDG_"+strings.ToUpper(name)+"_HOME="+filepath.Join(home, "."+name))
	}
	for _, name := range []string{"HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"} { // OpenCode installs what custom tools import
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// bringPillion is Pillion. The model is set over the project's, as in the other programs.
func (b *bench) bringPillion(m *model, claude bool) peer {
	p := b.ourselves(m)
	p.env = b.bringEnv("home-pillion")
	if !claude {
		b.write(filepath.Join(b.dir, "home-pillion/.config/pillion/pillion.jsonc"), `{"permission": {"edit": "allow", "bash": "allow", "webfetch": "allow"}}`)
	}
	config := m.config()
	config["small_model"], config["agent"] = "scripted/title", map[string]any{"build": map[string]any{"model": "scripted/m"}}
	data, err := json.Marshal(config)
	check(err)
	p.env = append(p.env, "PILLION_CONFIG_CONTENT="+string(data), "PILLION_TRUST=1")
	return p
}

func (b *bench) bringOpenCode(m *model) peer {
	p, _ := b.peerOpenCode(m)
	config := b.opencodeConfig(m, false)
	config["agent"] = map[string]any{"build": map[string]any{"model": "scripted/m"}}
	p.env = append(b.bringEnv("home-brought"), opencodeEnv(config)...)
	return p
}

func (b *bench) bringClaude(m *model) peer {
	p, _ := b.peerClaude(m)
	p.env = append(b.bringEnv("home-brought"), "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "ANTHROPIC_BASE_URL="+strings.TrimSuffix(m.url, "/v1"))
	b.write(filepath.Join(b.dir, "home-brought/.claude/settings.json"), `{"enableAllProjectMcpServers": true}`)
	return p
}

// checkout makes a project's folder. What a command pushes goes nowhere.
func (b *bench) checkout(p brought, dir string) {
	check(os.MkdirAll(dir, 0o755))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"remote", "add", "origin", "https://github.com/" + p.repo},
		{"fetch", "-q", "--filter=blob:none", "--depth", "1", "origin", p.commit},
		append([]string{"sparse-checkout", "set", "--no-cone"}, broughtFiles...),
		{"checkout", "-q", "-B", "work", "FETCH_HEAD"},
		{"remote", "remove", "origin"},
	} {
		cmd := exec.CommandContext(b.ctx, "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			failf("git %s: %v %s", strings.Join(args, " "), err, out)
		}
	}
	b.write(filepath.Join(dir, ".env"), "SECRET=1\n")
	b.write(filepath.Join(dir, "../outside.txt"), "outside\n")
	readme := filepath.Join(dir, "README.md")
	text, _ := os.ReadFile(readme) // some have none
	b.write(readme, "bring one\n"+string(text))
}

// watchBrought leads a program through the prompts and returns what its model and its editor got to see.
func (b *bench) watchBrought(m *model, s bringSide, all []bringCall) broughtSight {
	sight := broughtSight{answers: map[string]string{}}
	c := b.agent(s.env, s.command[0], s.command[1:]...)
	defer c.close()
	c.refuse()
	var mu sync.Mutex
	var asked []string // guarded by mu, as is sight.commands
	c.beforeAnswering(func(params json.RawMessage) {
		var q struct{ ToolCall struct{ Title string } }
		_ = json.Unmarshal(params, &q)
		mu.Lock()
		asked = append(asked, q.ToolCall.Title)
		mu.Unlock()
	})
	c.listen(func(line []byte, _ time.Time) {
		var u struct {
			Params struct {
				Update struct {
					SessionUpdate     string
					AvailableCommands []struct{ Name string }
				}
			}
		}
		if json.Unmarshal(line, &u) != nil || u.Params.Update.SessionUpdate != "available_commands_update" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		sight.commands = nil
		for _, a := range u.Params.Update.AvailableCommands {
			sight.commands = append(sight.commands, "/"+a.Name)
		}
	})
	c.initialize()
	raw, _, err := c.call("session/new", map[string]any{"cwd": s.dir, "mcpServers": []any{}})
	check(err)
	var opened struct {
		SessionID     string
		Modes         struct{ AvailableModes []struct{ ID string } }
		ConfigOptions []struct {
			ID      string
			Options []struct{ Value string }
		}
	}
	check(json.Unmarshal(raw, &opened))
	for _, o := range opened.Modes.AvailableModes {
		sight.modes = append(sight.modes, o.ID)
	}
	for _, o := range opened.ConfigOptions {
		for _, v := range o.Options {
			if o.ID == "mode" {
				sight.modes = append(sight.modes, v.Value)
			}
		}
	}
	if s.claude { // it may begin in a mode in which a model decides about calls
		_, _, err := c.call("session/set_mode", map[string]any{"sessionId": opened.SessionID, "modeId": "default"})
		check(err)
	}
	prompt := func(text string, steps ...wiretest.Step) (requests []wiretest.Request) {
		m.Add(steps...)
		before := len(m.Requests())
		_, _, err := c.call("session/prompt", map[string]any{"sessionId": opened.SessionID, "prompt": []any{map[string]any{"type": "text", "text": text}}})
		check(err)
		m.Drop()
		return slices.DeleteFunc(slices.Clone(m.Requests()[before:]), func(r wiretest.Request) bool { return len(r.ToolNames()) == 0 })
	}
	requests := prompt("hello", says)
	if len(requests) == 0 {
		failf("%s sent no request with tools", s.name)
	}
	sight.first = requests[0]
	last := requests[0]
	for _, call := range all {
		mu.Lock()
		asked = nil
		mu.Unlock()
		step := call.step
		step.Calls = step.Calls[:1]
		if s.claude {
			step.Calls = call.step.Calls[1:]
		}
		// A sub-agent asks the model too.
		requests = prompt(call.name, step, says, says, says)
		if len(requests) > 0 {
			last = requests[0]
		}
		mu.Lock()
		sight.answers[call.name] = broughtAnswer(asked, requests)
		mu.Unlock()
	}
	sight.tools = last.ToolNames()
	// Claude Code defers tools: it names them, and the model asks for those that it needs.
	sight.tools = append(sight.tools, mcpNames.FindAllString(string(last.Body), -1)...)
	for i, t := range sight.tools {
		sight.tools[i] = strings.ReplaceAll(strings.TrimPrefix(t, "mcp__"), "__", "_")
	}
	sight.instructions, sight.offered = broughtTexts(s.dir, sight.first), broughtOffers(s.dir, sight.first)
	for _, list := range []*[]string{&sight.tools, &sight.offered, &sight.instructions, &sight.modes, &sight.commands} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return sight
}

var (
	mcpNames    = regexp.MustCompile(`mcp__[\w-]+?__[\w-]+`)
	refusedText = regexp.MustCompile(`(?i)denied|prevents you from using|permission to use|stopped this call|blocked|hook error`)
)

// broughtAnswer is what became of a call: asks with the question, refused or runs with its result.
func broughtAnswer(asked []string, requests []wiretest.Request) string {
	if len(asked) > 0 {
		return "asks " + strings.Join(asked, " | ")
	}
	for _, r := range requests {
		all := r.Messages()
		for _, res := range all[len(all)-1].Results {
			if text := strings.Join(strings.Fields(res.Text), " "); refusedText.MatchString(text[:min(len(text), 300)]) {
				return "refused " + text
			} else {
				return "runs " + text
			}
		}
	}
	return "runs"
}

// broughtTexts are the text files of a folder whose lines are in a request.
func broughtTexts(dir string, r wiretest.Request) (found []string) {
	var said strings.Builder
	for _, m := range r.Messages() {
		said.WriteString(m.Text + "\n")
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == ".git" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".md" && ext != ".mdc" && ext != ".txt" || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		lines, have := 0, 0
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); len(line) < 30 || strings.HasPrefix(line, "<!--") { // Claude Code leaves comments out
				continue
			}
			if strings.Contains(said.String(), line) {
				have++
			}
			if lines++; lines == 20 {
				break
			}
		}
		if lines > 2 && have*5 >= lines*4 {
			rel, err := filepath.Rel(dir, path)
			check(err)
			found = append(found, rel)
		}
		return nil
	})
	return found
}

// broughtOffers are the agents and skills of a project that a request tells the model of, each in a line of a list or as a <name>.
func broughtOffers(dir string, r wiretest.Request) (found []string) {
	var said strings.Builder
	for _, m := range r.Messages() {
		said.WriteString(m.Text + "\n")
	}
	var body struct {
		Tools []struct {
			Description string
			Function    struct{ Description string }
		}
	}
	check(r.JSON(&body))
	for _, t := range body.Tools {
		said.WriteString(t.Description + "\n" + t.Function.Description + "\n")
	}
	for _, top := range []string{".opencode", ".claude", ".agents"} {
		for _, f := range broughtNames(filepath.Join(dir, top)) {
			if regexp.MustCompile(`(?m)(<name>|^\s*- )` + regexp.QuoteMeta(f.name) + `(</name>|:|\s|$)`).MatchString(said.String()) {
				found = append(found, f.kind+" "+f.name)
			}
		}
	}
	return found
}
