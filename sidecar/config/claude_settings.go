package config

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// claudeServers is where Claude Code keeps a project's MCP servers.
const claudeServers = ".mcp.json"

// claudeLayers are Claude Code's files of one folder as layers of Pillion: what .claude/settings.json and settings.local.json allow
// and ask, and the servers of .mcp.json. They are read as every other file of the project: an untrusted folder's servers and allows
// are held back. Denies are added elsewhere, because they count whatever is trusted (see claudeDenies).
func (l *loader) claudeLayers(dir string) (out []*node) {
	for _, name := range claudeSettings {
		path := filepath.Join(dir, name)
		src, ok := l.read(path, false)
		if !ok {
			continue
		}
		// The denies are read from the same file by claudeDenies, whose report would be a second one of the same
		// mistake.
		if n, bad := parseOther(path, src); bad == nil { // what is wrong is reported with the denies
			out = append(out, l.claudeLayer(n))
		}
	}
	if src, ok := l.read(filepath.Join(dir, claudeServers), false); ok {
		if n := l.parse(filepath.Join(dir, claudeServers), src); n != nil {
			out = append(out, l.serversLayer(n))
		}
	}
	return out
}

// note records a setting of another program's file that has no effect here. It is not a mistake: the person is told of it, and everything else
// of the file is used.
func (l *loader) note(at *node, setting, why string) {
	l.unsupported = append(l.unsupported, Unsupported{File: at.file, Line: at.line, Column: at.column, Setting: setting, Why: why})
}

// claudeElsewhere says of Claude Code's settings that have no counterpart why that is; empty: it needs no word.
var claudeElsewhere = map[string]string{
	"$schema": "",
	"model":   "set model in pillion.jsonc, as provider/model", "statusLine": "the status line is fixed", "outputStyle": "write instructions instead",
	"enableAllProjectMcpServers": "trust decides", "enabledMcpjsonServers": "trust decides", "disabledMcpjsonServers": "", "deniedMcpServers": "",
	"allowedMcpServers": "", "enabledPlugins": "no marketplace is read: copy the agents, commands and skills of a plugin into .claude", "extraKnownMarketplaces": "no marketplace is read", "installedPluginVersions": "",
	"cleanupPeriodDays": "sessions are kept until they are deleted", "includeCoAuthoredBy": "commits are what the agent writes",
}

// claudeLayer makes a layer of one settings file: its hooks, its variables, and the rules that allow or ask. Settings without a counterpart
// are noted.
func (l *loader) claudeLayer(n *node) *node {
	out := n.object()
	rules := n.object()
	for _, m := range n.members {
		switch m.key {
		case "hooks":
			if m, ok := l.claudeHooks(m); ok {
				out.members = append(out.members, m)
			}
			continue
		case "env":
			out.members = append(out.members, member{"env", m.at, l.claudeEnv(m.value)})
			continue
		case "disableAllHooks":
			out.members = append(out.members, m)
			continue
		}
		if m.key == "sandbox" {
			l.claudeSandbox(m)
			continue
		}
		if m.key != "permissions" {
			if why, known := claudeElsewhere[m.key]; why != "" {
				l.note(m.at, m.key, why)
			} else if !known {
				l.note(m.at, m.key, "there is no such setting here")
			}
			continue
		}
		// An ask is stronger than an allow there; here the last rule that matches wins.
		for _, list := range []struct {
			key    string
			action permission.Action
		}{{"allow", permission.Allow}, {"ask", permission.Ask}} {
			if v := m.value.get(list.key); v != nil {
				for _, e := range v.elems {
					l.claudeRule(rules, e, list.action)
				}
			}
		}
		for _, p := range m.value.members {
			switch p.key {
			case "allow", "ask", "deny":
			case "defaultMode":
				if p.value.text == "acceptEdits" {
					addRule(rules, p.value, "edit", "*", permission.Allow)
				} else if p.value.text != "default" {
					l.note(p.at, "permissions.defaultMode", "rules and trust decide; the agent plan only reads")
				}
			default:
				l.note(p.at, "permissions."+p.key, "there is no such setting here")
			}
		}
	}
	if len(rules.members) > 0 {
		out.members = append(out.members, member{"permission", rules, rules})
	}
	return out
}

// claudeSandbox notes what of Claude Code's sandbox is not used: what it keeps commands from counts as denies (see claudeDenyTexts).
func (l *loader) claudeSandbox(m member) {
	for _, s := range m.value.members {
		for _, p := range s.value.members {
			if p.key != "denyRead" && p.key != "denyWrite" && p.key != "deniedDomains" {
				l.note(p.at, "sandbox."+s.key+"."+p.key, "set sandbox in pillion.jsonc")
			}
		}
		if s.value.kind != kindObject {
			l.note(s.at, "sandbox."+s.key, "set sandbox in pillion.jsonc")
		}
	}
}

// claudeEnv are the variables of the setting env. There they may be numbers and true as well, and they configure the program
// itself: those that choose its model, service or key have settings of their own here, which are named.
func (l *loader) claudeEnv(n *node) *node {
	out := *n
	out.members = nil
	for _, m := range n.members {
		if why := claudeVariables[m.key]; why != "" {
			l.note(m.at, "env."+m.key, why)
			continue
		}
		if prefix, _, _ := strings.Cut(m.key, "_"); prefix == "CLAUDE" || prefix == "ANTHROPIC" || strings.HasPrefix(m.key, "DISABLE_") {
			l.note(m.at, "env."+m.key, "it configures Claude Code itself")
			continue
		}
		v := *m.value
		// As a shell would pass it on; {env:…} has no meaning there.
		if v.raw = true; v.kind == kindNumber || v.kind == kindBool {
			v.kind = kindString
		}
		out.members = append(out.members, member{m.key, m.at, &v})
	}
	return &out
}

// claudeVariables are variables with a setting of their own here.
var claudeVariables = map[string]string{
	"ANTHROPIC_API_KEY": "run pillion auth login anthropic", "ANTHROPIC_AUTH_TOKEN": "set provider.anthropic.options.authToken",
	"ANTHROPIC_BASE_URL": "set provider.anthropic.baseURL", "ANTHROPIC_MODEL": "set model, as anthropic/NAME", "ANTHROPIC_SMALL_FAST_MODEL": "set small_model, as anthropic/NAME",
	"ANTHROPIC_DEFAULT_HAIKU_MODEL": "set small_model, as anthropic/NAME", "CLAUDE_CODE_USE_BEDROCK": "set model, as bedrock/NAME", "CLAUDE_CODE_USE_VERTEX": "set model, as google-vertex/NAME",
	"MCP_TIMEOUT": "set mcp.NAME.timeout", "BASH_DEFAULT_TIMEOUT_MS": "the agent chooses the time limit of each command",
}

// claudeRule adds a rule that allows or asks. Where the two ways to write patterns differ an allow says less here,
// and an ask more: a rule that does not translate exactly must not let anything happen without a question.
func (l *loader) claudeRule(to, e *node, action permission.Action) {
	text := strings.TrimSpace(e.text)
	if action == permission.Ask {
		for _, r := range claudeDeny(text) {
			// A deny is translated to the widest patterns, which is what an ask needs.
			addRule(to, e, r.Permission, r.Pattern, action)
		}
		return
	}
	tool, rest, limited := strings.Cut(text, "(")
	what := strings.TrimSpace(strings.TrimSuffix(rest, ")"))
	limited = limited && what != "" && what != "*"
	if server, ok := strings.CutPrefix(tool, "mcp__"); ok {
		server = strings.ReplaceAll(server, "__", "_")
		if !strings.Contains(tool[len("mcp__"):], "__") {
			server += "_*" // all tools of the server
		}
		addRule(to, e, server, "*", action)
		return
	}
	names, known := claudePermissions[tool]
	if !known {
		l.note(e, "permissions.allow "+text, "there is no such tool here")
		return
	}
	patterns := []string{"*"}
	if limited {
		switch tool {
		case "Bash":
			// An exact command, or with ":*" the command alone and with arguments; never a longer word that begins
			// the same way.
			patterns = []string{what}
			if prefix, ok := strings.CutSuffix(what, ":*"); ok {
				patterns = []string{strings.TrimSpace(prefix), strings.TrimSpace(prefix) + " *"}
			}
		case "WebFetch":
			host, ok := strings.CutPrefix(what, "domain:")
			// Any other limit is unknown, and allowing all pages would say more than the file does.
			if !ok {
				return
			}
			patterns = []string{"https://" + host, "https://" + host + "/*"}
		case "Read", "LS", "Edit", "MultiEdit", "Write", "NotebookEdit":
			p := strings.ReplaceAll(filepath.ToSlash(what), "**", "*")
			// "//" begins an absolute path, and a single slash one in the project, which our patterns write without
			// it.
			if abs, ok := strings.CutPrefix(p, "//"); ok {
				p = "/" + abs
			} else {
				p = strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
			}
			patterns = []string{p}
		default:
			patterns = []string{what}
		}
	}
	for _, name := range names {
		for _, p := range patterns {
			addRule(to, e, name, p, action)
		}
	}
}

// addRule adds a rule to a permission section, behind those that it has; the rule's place is that of at. The last rule that matches wins.
func addRule(to, at *node, name, pattern string, action permission.Action) {
	value := &node{file: at.file, line: at.line, column: at.column, kind: kindString, text: string(action), raw: true}
	key := &node{file: at.file, line: at.line, column: at.column, kind: kindString, text: pattern}
	// A section of its own for each rule: grouped by name, a later ask would come before an earlier allow of another name.
	section := &node{file: at.file, line: at.line, column: at.column, kind: kindObject, members: []member{{pattern, key, value}}}
	to.members = append(to.members, member{name, key, section})
}

// serversLayer makes a layer of a .mcp.json file: {"mcpServers": {NAME: {"command", "args", "env"} or {"type", "url", "headers"}}}. Cursor,
// Gemini and VS Code use the same shape.
func (l *loader) serversLayer(n *node) *node {
	out := n.object()
	for _, m := range n.members {
		switch m.key {
		case "mcpServers", "servers", "$schema":
		case "inputs":
			l.note(m.at, m.key, "write {env:NAME} where ${input:ID} is")
		default:
			l.note(m.at, m.key, "there is no such setting here")
		}
	}
	servers := n.get("mcpServers")
	if servers == nil {
		servers = n.get("servers") // VS Code's name of it
	}
	if servers == nil || servers.kind != kindObject {
		return out
	}
	section := servers.object()
	for _, m := range servers.members {
		if m.value.kind == kindObject {
			section.members = append(section.members, member{m.key, m.at, l.claudeServer(m)})
		}
	}
	out.members = []member{{"mcp", servers, section}}
	return out
}

// claudeServer translates one server to our keys. Its values are the nodes of the file, so they keep their
// positions.
func (l *loader) claudeServer(server member) *node {
	out := server.value.object()
	put := func(key string, m member, v *node) { out.members = append(out.members, member{key, m.at, v}) }
	l.variables(server.value)
	for _, m := range server.value.members {
		switch m.key {
		case "command":
			put("command", m, commandWithArgs(server.value, m.value))
		case "args":
		case "env":
			put("environment", m, m.value)
		case "url", "headers", "cwd", "timeout": // timeout is in milliseconds, as here
			put(m.key, m, m.value)
		case "disabled":
			if m.value.text == "true" {
				put("enabled", m, &node{file: m.value.file, line: m.value.line, column: m.value.column, kind: kindBool, text: "false"})
			}
		case "disabledTools", "excludeTools":
			l.denyTools(server.key, m.value)
		case "includeTools", "enabledTools", "tools": // Gemini's name, that of several editors, Copilot's
			if only := l.limitTools(server.key, m.value); only != nil {
				put("tools", m, only)
			}
		// The other types are told by command and url; only the older SSE transport needs a word.
		case "type":
			if m.value.text == "sse" {
				put("sse", m, &node{file: m.value.file, line: m.value.line, column: m.value.column, kind: kindBool, text: "true"})
			}
		default:
			l.note(m.at, "mcpServers."+server.key+"."+m.key, "there is no such setting here")
		}
	}
	return out
}

// denyTools denies tools of a server by their names, whatever is trusted.
func (l *loader) denyTools(server string, list *node) {
	for _, e := range list.elems {
		if e.kind == kindString && e.text != "" {
			l.serverDenies = append(l.serverDenies, permission.Rule{Permission: tools.Name(server) + "_" + tools.Name(e.text), Pattern: "*", Action: permission.Deny, Origin: e.origin()})
		}
	}
}

// claudeVariable matches ${NAME} and ${NAME:-default}, the two forms that Claude Code replaces in .mcp.json, and the forms of VS Code and
// Cursor: ${env:NAME}, ${input:ID} and ${workspaceFolder}.
var claudeVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{(?:(env|input):)?([A-Za-z_][A-Za-z0-9_-]*)(?::-([^}]*))?\}`)
})

// variables writes ${NAME} as {env:NAME}, and ${NAME:-value} as the value where the variable is not set. Whether the environment is
// read at all is decided where {env:…} is.
func (l *loader) variables(n *node) {
	for _, e := range n.elems {
		l.variables(e)
	}
	for _, m := range n.members {
		l.variables(m.value)
	}
	if n.kind != kindString {
		return
	}
	n.text = claudeVariable().ReplaceAllStringFunc(n.text, func(s string) string {
		m := claudeVariable().FindStringSubmatch(s)
		// The file lies in a folder such as .cursor of the one that is meant.
		folder := filepath.Dir(filepath.Dir(n.file))
		switch {
		case m[1] == "input":
			l.note(n, s, "no question asks for it here; write {env:NAME}")
			return s
		case m[1] == "" && m[2] == "workspaceFolder":
			return folder
		case m[1] == "" && m[2] == "workspaceFolderBasename":
			return filepath.Base(folder)
		case m[1] == "" && m[2] == "userHome":
			return l.Home
		case strings.Contains(s, ":-") && l.Env(m[2]) == "":
			return m[3]
		}
		return "{env:" + m[2] + "}"
	})
}
