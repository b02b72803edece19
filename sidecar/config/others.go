package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// otherFile is a settings file of another agent.
type otherFile struct {
	program string // as `pillion import` calls it
	path    string // below a project's folder, or below the home folder
	home    bool   // it is read in the home folder as well
	layer   func(l *loader, n *node) *node
	denies  func(n *node) permission.Ruleset
}

// otherFiles are read in addition to those of Claude Code and OpenCode, as layers of their folder: their servers and what they
// loosen are used only in a trusted folder; what they deny is always used.
var otherFiles = []otherFile{
	{program: "codex", path: filepath.Join(".codex", "config.toml"), home: true, layer: (*loader).codexLayer},
	{program: "cursor", path: filepath.Join(".cursor", "mcp.json"), home: true, layer: (*loader).serversLayer},
	{program: "cursor", path: filepath.Join(".cursor", "cli.json"), layer: (*loader).cursorLayer, denies: cursorDenies},
	{program: "cursor", path: filepath.Join(".cursor", "cli-config.json"), home: true, layer: (*loader).cursorLayer, denies: cursorDenies},
	{program: "cursor", path: filepath.Join(".cursor", "permissions.json"), home: true, layer: (*loader).cursorLayer, denies: cursorDenies},
	{program: "vscode", path: filepath.Join(".vscode", "mcp.json"), layer: (*loader).serversLayer},
	{program: "gemini", path: filepath.Join(".gemini", "settings.json"), home: true, layer: (*loader).geminiLayer, denies: geminiDenies},
}

// ignoreFiles name, in .gitignore's syntax, what an agent must not read.
var ignoreFiles = []string{".cursorignore", ".aiexclude", ".geminiignore", ".clineignore", ".rooignore"}

// unusedFiles are files and folders of other agents that Pillion does not read, with the reason. A person who has one gets a
// notice.
var unusedFiles = []struct{ path, why string }{
	{filepath.Join(".claude", "output-styles"), "write instructions instead"},
	{filepath.Join(".claude", "plugins"), "plugins of Claude Code are not loaded; their skills, agents, commands and hooks are when they lie in .claude"},
	{filepath.Join(".cursor", "hooks.json"), "write the hooks in the format of Claude Code's, under hooks"},
	{filepath.Join(".cursor", "environment.json"), "nothing runs in the cloud"},
	{filepath.Join(".codex", "prompts"), "move the files to .pillion/command"}, {filepath.Join(".codex", "agents"), codexElsewhere["agents"]},
	{filepath.Join(".gemini", "commands"), "move the prompts to .pillion/command, as Markdown"},
	{filepath.Join(".gemini", "extensions"), "extensions of Gemini are not loaded; their MCP servers can be written under mcp"},
	{filepath.Join(".github", "chatmodes"), "move the files to .pillion/agent"}, {filepath.Join(".github", "agents"), "move the files to .pillion/agent"},
	{filepath.Join(".github", "prompts"), "move the files to .pillion/command"}, {filepath.Join(".cursor", "modes.json"), "write agents instead"},
	{".windsurfrules", "move its text to AGENTS.md"}, {".clinerules", "move its text to AGENTS.md"}, {".roo", "move its rules to AGENTS.md"}, {".aider.conf.yml", "write its settings in pillion.jsonc"},
	{".continue", "move its rules to AGENTS.md"}, {".goosehints", "move its text to AGENTS.md"}, {".junie", "move its text to AGENTS.md"},
}

// otherLayers are the layers of a folder's files of other agents; for the home folder only those that exist there.
func (l *loader) otherLayers(dir string, home bool) (out []*node) {
	for _, f := range otherFiles {
		if home && !f.home {
			continue
		}
		path := filepath.Join(dir, f.path)
		src, ok := l.read(path, false)
		if !ok {
			continue
		}
		n, bad := parseOther(path, src)
		if bad != nil {
			l.problems = append(l.problems, *bad)
			continue
		}
		out = append(out, f.layer(l, n))
	}
	if layer := l.policyLayer(dir); layer != nil {
		out = append(out, layer)
	}
	for _, u := range unusedFiles {
		path := filepath.Join(dir, u.path)
		if _, err := os.Stat(path); err == nil {
			l.unsupported = append(l.unsupported, Unsupported{File: path, Line: 1, Column: 1, Setting: "it", Why: u.why})
		}
	}
	return out
}

// ignoreDenies are the denies of a folder's ignore files. A line that takes a file back in is noted and denies nothing less; one that
// excludes everything, which only makes sense with such lines, is noted instead of used.
func (l *loader) ignoreDenies(dir string) (out permission.Ruleset) {
	for _, name := range ignoreFiles {
		path := filepath.Join(dir, name)
		src, ok := l.read(path, false)
		if !ok {
			continue
		}
		for i, line := range strings.Split(string(src), "\n") {
			line = strings.TrimSpace(line)
			at := &node{file: path, line: i + 1, column: 1, kind: kindString, text: line}
			switch {
			case line == "" || line[0] == '#':
				continue
			case line[0] == '!':
				l.note(at, line, "what an earlier line excludes stays excluded")
				continue
			case strings.Trim(line, "*/.") == "":
				l.note(at, line, "it excludes everything; write the rules under permission")
				continue
			}
			for _, p := range claudePaths(strings.TrimSuffix(line, "/")) {
				for _, name := range []string{"read", "list", "edit"} {
					out = append(out, permission.Rule{Permission: name, Pattern: p, Action: permission.Deny, Origin: at.origin()})
				}
			}
		}
	}
	return out
}

// parseOther reads JSON or, by the file's name, TOML.
func parseOther(path string, src []byte) (*node, *Problem) {
	if strings.HasSuffix(path, ".toml") {
		return parseTOML(path, src)
	}
	n, bad := parse(path, src)
	if bad == nil && n.kind != kindObject {
		p := wrong(n, "", "an object")
		return nil, &p
	}
	return n, bad
}

// otherDenies are the denies of other agents' files, which the caller must add last: see claudeDenies.
func (l *loader) otherDenies(dir string) (out permission.Ruleset) {
	for _, f := range otherFiles {
		path := filepath.Join(dir, f.path)
		src, ok := l.read(path, false)
		if !ok || f.denies == nil {
			continue
		}
		// A mistake in the file was reported with its layer.
		if n, bad := parseOther(path, src); bad == nil {
			for _, r := range f.denies(n) {
				r.Action, r.Origin = permission.Deny, path
				out = append(out, r)
			}
		}
	}
	return out
}

// commandWithArgs converts the command of a server: its program and its args become one list, whatever their order in the file.
func commandWithArgs(server, program *node) *node {
	command := program.object()
	command.kind, command.elems = kindArray, []*node{program}
	if args := server.get("args"); args != nil {
		command.elems = append(command.elems, args.elems...)
	}
	return command
}

// codexLayer makes a layer of Codex's config.toml: its MCP servers, and the cases in which it approves less than the default. What
// it approves without a question is used only after an import, where a person reads it.
func (l *loader) codexLayer(n *node) *node {
	out, rules := n.object(), n.object()
	for _, m := range n.members {
		switch m.key {
		case "mcp_servers":
			servers := m.value.object()
			for _, s := range m.value.members {
				if s.value.kind == kindObject {
					servers.members = append(servers.members, member{s.key, s.at, l.codexServer(s)})
				}
			}
			out.members = append(out.members, member{"mcp", m.at, servers})
		case "approval_policy":
			if m.value.text == "untrusted" { // everything except commands that are known to read
				addRule(rules, m.value, "bash", "*", permission.Ask)
			} else if m.value.text != "on-request" {
				l.note(m.at, m.key, "rules and trust decide; pillion import codex translates it")
			}
		case "sandbox_mode":
			if m.value.text == "read-only" {
				addRule(rules, m.value, "edit", "*", permission.Ask)
				addRule(rules, m.value, "bash", "*", permission.Ask)
			} else {
				l.note(m.at, m.key, "set sandbox; pillion import codex translates it")
			}
		case "model", "model_provider", "model_providers", "model_reasoning_effort":
			l.note(m.at, m.key, "set model as provider/model; pillion import codex translates it")
		case "projects": // its own record of trust
		default:
			if why := codexElsewhere[m.key]; why != "" {
				l.note(m.at, m.key, why)
			} else {
				l.note(m.at, m.key, "there is no such setting here")
			}
		}
	}
	if len(rules.members) > 0 {
		out.members = append(out.members, member{"permission", rules, rules})
	}
	return out
}

var codexElsewhere = map[string]string{
	"hooks": "write the hooks in the format of Claude Code's, under hooks", "agents": "write the agents as Markdown in .pillion/agent", "features": "it configures Codex itself",
	"notify": "write a hook for Notification or Stop", "sandbox_workspace_write": "set sandbox_network and sandbox_writable; pillion import codex translates it", "profiles": "choose the model in the session",
	"history": "sessions are kept until they are deleted", "tui": "the terminal uses its own colours", "file_opener": "the editor opens files", "shell_environment_policy": "commands get no keys; environment hands some on",
	"project_doc_fallback_filenames": "set instructions", "project_doc_max_bytes": "instructions are read whole", "hide_agent_reasoning": "the editor folds it",
}

// codexServer translates one of Codex's MCP servers.
func (l *loader) codexServer(server member) *node {
	out := server.value.object()
	headers := server.value.object()
	put := func(key string, m member, v *node) { out.members = append(out.members, member{key, m.at, v}) }
	for _, m := range server.value.members {
		switch m.key {
		case "command":
			put("command", m, commandWithArgs(server.value, m.value))
		case "args":
		case "env":
			put("environment", m, m.value)
		case "url", "cwd", "enabled":
			put(m.key, m, m.value)
		case "http_headers":
			headers.members = append(headers.members, m.value.members...)
		case "env_http_headers":
			for _, h := range m.value.members {
				v := *h.value
				v.text = "{env:" + v.text + "}"
				headers.members = append(headers.members, member{h.key, h.at, &v})
			}
		case "bearer_token_env_var":
			v := *m.value
			v.text = "Bearer {env:" + v.text + "}"
			headers.members = append(headers.members, member{"Authorization", m.at, &v})
		case "disabled_tools":
			l.denyTools(server.key, m.value)
		case "enabled_tools":
			if only := l.limitTools(server.key, m.value); only != nil {
				put("tools", m, only)
			}
		case "tool_timeout_sec":
			v := *m.value
			// Seconds, with or without a fraction; Pillion uses milliseconds. A value that is not a number is left for the check of
			// its type.
			if seconds, err := strconv.ParseFloat(v.text, 64); err == nil && seconds >= 0 && seconds < 1e9 {
				v.text = strconv.FormatInt(int64(seconds*1000), 10)
			}
			put("timeout", m, &v)
		default:
			l.note(m.at, "mcp_servers."+server.key+"."+m.key, "there is no such setting here")
		}
	}
	if len(headers.members) > 0 {
		out.members = append(out.members, member{"headers", headers, headers})
	}
	return out
}

// cursorNames are Claude Code's names for the kinds of Cursor's permissions.
var cursorNames = map[string]string{"Shell": "Bash", "Read": "Read", "Write": "Edit", "WebFetch": "WebFetch", "Mcp": "Mcp"}

// cursorRule converts one of Cursor's permissions, such as Shell(git:*), to Claude Code's rules. Shell(git) is the command with any
// arguments.
func cursorRule(text string) []string {
	kind, rest, limited := strings.Cut(strings.TrimSpace(text), "(")
	what := strings.TrimSpace(strings.TrimSuffix(rest, ")"))
	name := cursorNames[kind]
	switch {
	case name == "" || !limited:
		return nil
	case name == "Bash":
		command, args, given := strings.Cut(what, ":")
		if given && args != "*" {
			command += " " + args
		}
		return []string{"Bash(" + strings.TrimSpace(strings.TrimSuffix(command, " *")) + ":*)"}
	case name == "WebFetch":
		return []string{"WebFetch(domain:" + what + ")"}
	case name == "Mcp":
		server, tool, _ := strings.Cut(what, ":")
		if tool == "" || tool == "*" {
			return []string{"mcp__" + server}
		}
		return []string{"mcp__" + server + "__" + tool}
	}
	return []string{name + "(" + what + ")"}
}

// cursorLayer makes a layer of the allows of Cursor's command line program. The lists of its editor (permissions.json) are noted: they
// are about its own classifier.
func (l *loader) cursorLayer(n *node) *node {
	out, rules := n.object(), n.object()
	for _, m := range n.members {
		if m.key == "terminalAllowlist" || m.key == "mcpAllowlist" || m.key == "autoRun" {
			l.note(m.at, m.key, "write the rules under permission")
		}
	}
	if p := n.get("permissions"); p != nil {
		if list := p.get("allow"); list != nil {
			for _, e := range list.elems {
				translated := cursorRule(e.text)
				if translated == nil {
					l.note(e, "permissions.allow "+e.text, "there is no such tool here")
				}
				for _, text := range translated {
					v := *e
					v.text = text
					l.claudeRule(rules, &v, permission.Allow)
				}
			}
		}
	}
	if len(rules.members) > 0 {
		out.members = append(out.members, member{"permission", rules, rules})
	}
	return out
}

// cursorDenies are the denies of Cursor's command line program. An unknown kind is denied under its own name.
func cursorDenies(n *node) (out permission.Ruleset) {
	p := n.get("permissions")
	if p == nil || p.get("deny") == nil {
		return nil
	}
	for _, e := range p.get("deny").elems {
		texts := cursorRule(e.text)
		if texts == nil && strings.TrimSpace(e.text) != "" {
			texts = []string{e.text}
		}
		for _, text := range texts {
			out = append(out, claudeDeny(text)...)
		}
	}
	return out
}

// geminiNames are Claude Code's names for Gemini's tools.
var geminiNames = map[string]string{
	"run_shell_command": "Bash", "ShellTool": "Bash", "read_file": "Read", "ReadFileTool": "Read", "read_many_files": "Read", "write_file": "Write", "WriteFileTool": "Write", "replace": "Edit", "EditTool": "Edit",
	"glob": "Glob", "GlobTool": "Glob", "search_file_content": "Grep", "GrepTool": "Grep", "list_directory": "LS", "LSTool": "LS", "web_fetch": "WebFetch", "WebFetchTool": "WebFetch", "google_web_search": "WebSearch", "WebSearchTool": "WebSearch",
}

// geminiLayer makes a layer of the MCP servers of Gemini's settings. Those that mcp.excluded names are turned off.
func (l *loader) geminiLayer(n *node) *node {
	only := n.object()
	for _, m := range n.members {
		switch m.key {
		case "mcpServers":
			only.members = append(only.members, m)
		case "excludeTools", "coreTools", "allowMCPServers", "excludeMCPServers", "$schema": // older names of those below
		case "tools", "mcp":
			for _, s := range m.value.members {
				if !slices.Contains([]string{"exclude", "excluded", "core"}, s.key) && (m.key != "mcp" || s.key != "allowed") {
					l.note(s.at, m.key+"."+s.key, "write the rules under permission")
				}
			}
		case "hooks":
			l.note(m.at, m.key, codexElsewhere["hooks"])
		default:
			l.note(m.at, m.key, "there is no such setting here")
		}
	}
	if servers := n.get("mcpServers"); servers != nil {
		off := func(s, at *node) {
			s.members = append(s.members, member{"disabled", at, &node{file: at.file, line: at.line, column: at.column, kind: kindBool, text: "true"}})
		}
		for _, list := range geminiLists(n, "mcp", "excluded", "excludeMCPServers") {
			for _, e := range list.elems {
				if s := servers.get(e.text); s != nil {
					off(s, e)
				}
			}
		}
		for _, list := range geminiLists(n, "mcp", "allowed", "allowMCPServers") {
			for _, s := range servers.members {
				if !slices.ContainsFunc(list.elems, func(e *node) bool { return e.text == s.key }) {
					off(s.value, list)
				}
			}
		}
		for _, s := range servers.members {
			for i, m := range s.value.members {
				if m.key == "httpUrl" {
					s.value.members[i].key = "url"
				}
			}
		}
	}
	return l.serversLayer(only)
}

// geminiLists are the lists under a key of a section and under its older name at the top, as far as they are there.
func geminiLists(n *node, section, key, older string) (out []*node) {
	if s := n.get(section); s != nil && s.get(key) != nil {
		out = append(out, s.get(key))
	}
	if list := n.get(older); list != nil {
		out = append(out, list)
	}
	return out
}

// geminiDenies are the tools that Gemini's settings exclude, such as run_shell_command(rm), and those of its own that are not in the list
// to which it is limited.
func geminiDenies(n *node) (out permission.Ruleset) {
	for _, list := range geminiLists(n, "tools", "core", "coreTools") {
		core := map[string]bool{}
		for _, e := range list.elems {
			tool, _, _ := strings.Cut(strings.TrimSpace(e.text), "(")
			core[geminiNames[tool]] = true
		}
		for _, tool := range slices.Sorted(maps.Values(geminiNames)) {
			if !core[tool] {
				out = append(out, claudeDeny(tool)...)
				core[tool] = true // several names mean one tool
			}
		}
	}
	for _, list := range geminiLists(n, "tools", "exclude", "excludeTools") {
		for _, e := range list.elems {
			tool, rest, limited := strings.Cut(strings.TrimSpace(e.text), "(")
			name := geminiNames[tool]
			if name == "" {
				name = tool
			}
			if what := strings.TrimSuffix(rest, ")"); limited && name == "Bash" {
				name += "(" + what + ":*)"
			} else if limited {
				name += "(" + what + ")"
			}
			if name != "" {
				out = append(out, claudeDeny(name)...)
			}
		}
	}
	return out
}

// otherStamp adds the files of other agents in a folder to Stamp.
func otherStamp(add func(path string), dir string) {
	for _, f := range otherFiles {
		add(filepath.Join(dir, f.path))
	}
	for _, name := range ignoreFiles {
		add(filepath.Join(dir, name))
	}
	codexRulesStamp(add, dir)
	policyStamp(add, dir)
}

// concernsOthers reports whether a file or folder of another agent can contain settings.
func concernsOthers(name string) bool {
	return slices.Contains(ignoreFiles, name) || slices.ContainsFunc(otherFiles, func(f otherFile) bool { return strings.HasPrefix(f.path, name+string(filepath.Separator)) })
}
