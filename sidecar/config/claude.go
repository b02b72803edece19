package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// claudeSettings are the files in which Claude Code keeps permissions, below a project's folder or the home folder.
var claudeSettings = []string{filepath.Join(".claude", "settings.json"), filepath.Join(".claude", "settings.local.json")}

// claudeDenies reads the deny rules of Claude Code's settings. They apply whether the folder is trusted or not,
// because they can only forbid; what the files allow and ask is read as a layer (see claudeLayers). They come after
// every other rule, since the last rule that matches wins.
func (l *loader) claudeDenies() (out permission.Ruleset) {
	for _, dir := range l.denyingFolders() {
		for _, name := range claudeSettings {
			path := filepath.Join(dir, name)
			src, ok := l.read(path, false)
			if !ok {
				continue
			}
			n, bad := parseOther(path, src)
			if bad != nil {
				// A file that does not parse is fatal, not skipped in silence: the person relies on its denies.
				bad.Message, bad.Fatal = "its deny rules are not used: "+bad.Message, true
				l.problems = append(l.problems, *bad)
				continue
			}
			l.turnOffServers(n)
			for _, e := range claudeDenyTexts(n) {
				text := strings.TrimSpace(e.text)
				if e.kind != kindString || text == "" {
					l.problems = append(l.problems, e.problem("permissions.deny: %s is not a rule; write it as \"Read(./secrets/**)\"", e.shown()))
					continue
				}
				for _, r := range claudeDeny(text) {
					r.Action, r.Origin = permission.Deny, path
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// claudeDenyTexts are the deny rules of a settings file, and what its sandbox keeps commands from, as rules for the same.
func claudeDenyTexts(n *node) (out []*node) {
	if p := n.get("permissions"); p != nil {
		out = append(out, p.elements("deny")...)
	}
	sandbox := n.get("sandbox")
	if sandbox == nil {
		return out
	}
	for _, list := range []struct{ section, key, rule string }{
		{"filesystem", "denyRead", "Read(%s)"}, {"filesystem", "denyWrite", "Edit(%s)"}, {"network", "deniedDomains", "WebFetch(domain:%s)"},
	} {
		section := sandbox.get(list.section)
		if section == nil {
			continue
		}
		for _, e := range section.elements(list.key) {
			rule := *e
			if rule.kind == kindString && rule.text != "" {
				rule.text = fmt.Sprintf(list.rule, strings.TrimPrefix(e.text, "*."))
			}
			out = append(out, &rule)
		}
	}
	return out
}

// turnOffServers notes the MCP servers that a settings file turns off: disabledMcpjsonServers names servers of .mcp.json, deniedMcpServers
// servers of any file. finish turns them off whatever another file says.
func (l *loader) turnOffServers(n *node) {
	if l.offServers == nil {
		l.offServers = map[string]offServer{}
	}
	for _, e := range n.elements("disabledMcpjsonServers") {
		if _, ok := l.offServers[e.text]; !ok {
			l.offServers[e.text] = offServer{at: e.origin(), claudeOnly: true}
		}
	}
	for _, e := range n.elements("deniedMcpServers") {
		if name := e.get("serverName"); name != nil {
			l.offServers[name.text] = offServer{at: name.origin()}
		} else {
			l.note(e, "deniedMcpServers", "only a serverName is read; deny its tools under permission")
		}
	}
	if list := n.get("allowedMcpServers"); list != nil {
		l.onlyServers = append(l.onlyServers, list)
	}
}

// limitTools notes that a server's tools are limited to those of a list ("*" is every one), whatever is trusted and whatever other files
// say. It returns the list as a setting of the server, for an import; nil where every tool is allowed.
func (l *loader) limitTools(server string, list *node) *node {
	out := *list
	out.kind, out.elems = kindArray, nil
	elems := list.elems
	if list.kind == kindString {
		elems = []*node{list}
	}
	names := []string{} // an empty list allows none
	for _, e := range elems {
		name := *e
		name.text, _, _ = strings.Cut(strings.TrimSpace(e.text), "(") // Gemini limits arguments so; its tools are told by the name alone
		if name.text == "*" {
			return nil
		}
		if e.kind == kindString && name.text != "" {
			names, out.elems = append(names, name.text), append(out.elems, &name)
		}
	}
	if l.onlyTools == nil {
		l.onlyTools = map[string][][]string{}
	}
	l.onlyTools[server] = append(l.onlyTools[server], names)
	return &out
}

// limitServers applies what other programs' settings limit servers and their tools to. Of several lists each must allow.
func (l *loader) limitServers(servers map[string]MCPServer) {
	for name, s := range servers {
		for _, only := range l.onlyTools[name] {
			if s.Tools == nil {
				s.Tools = only
			} else {
				s.Tools = slices.DeleteFunc(slices.Clone(s.Tools), func(tool string) bool { return !slices.Contains(only, tool) })
			}
		}
		for _, list := range l.onlyServers {
			if !allowsServer(list, name, s.Command, s.URL) {
				no := false
				s.Enabled = &no
				l.origins["mcp."+name+".enabled"] = list.origin()
			}
		}
		servers[name] = s
	}
}

// allowsServer reports whether a list of allowedMcpServers has a server. An entry is a name, a whole command or an address with wildcards.
// As in Claude Code, a name allows a program only if the list has no commands, and an address only if it has no addresses.
func allowsServer(list *node, name string, command []string, url string) bool {
	key := "serverUrl"
	if len(command) > 0 {
		key = "serverCommand"
	}
	named, exact := false, false
	for _, e := range list.elems {
		if n := e.get("serverName"); n != nil && n.text == name {
			named = true
		}
		x := e.get(key)
		if x == nil {
			continue
		}
		exact = true
		if key == "serverUrl" && permission.Match(x.text, url) ||
			key == "serverCommand" && slices.EqualFunc(x.elems, command, func(n *node, word string) bool { return n.text == word }) {
			return true
		}
	}
	return named && !exact
}

// offServer is an MCP server that another program's settings turn off.
type offServer struct {
	at         string // the place of the setting
	claudeOnly bool   // only if .mcp.json defines it
}

// turnedOff sets enabled to false for the servers that are turned off.
func (l *loader) turnedOff(servers map[string]MCPServer) {
	for name, off := range l.offServers {
		s, ok := servers[name]
		from := l.origins["mcp."+name+".command"] + l.origins["mcp."+name+".url"]
		if file, _, _ := place(from); !ok || off.claudeOnly && filepath.Base(file) != claudeServers {
			continue
		}
		no := false
		s.Enabled = &no
		servers[name] = s
		l.origins["mcp."+name+".enabled"] = off.at
	}
}

// denyingFolders are the folders whose denies count: those of the project from its root down to Cwd, and the home folder. Trust does not
// matter.
func (l *loader) denyingFolders() []string {
	dirs := Between(l.Root, l.Cwd)
	if l.Home != "" {
		dirs = append(dirs, l.Home)
	}
	return dirs
}

// claudePermissions maps Claude Code's tools to our permissions. A rule about reading also covers the searches that
// would show the same content.
var claudePermissions = map[string][]string{
	"Read": {"read", "list"}, "LS": {"list"}, "Glob": {"glob"}, "Grep": {"grep"},
	"Edit": {"edit"}, "MultiEdit": {"edit"}, "Write": {"edit"}, "NotebookEdit": {"edit"},
	"Bash": {"bash"}, "WebFetch": {"webfetch"}, "WebSearch": {"websearch"}, "Task": {"task"}, "Agent": {"task"}, "Skill": {"skill"},
}

// claudeDeny translates a rule such as Bash(curl:*), Read(./secrets/**), WebFetch(domain:example.com) or
// mcp__server__tool. Where the two pattern languages differ the result denies more, never less; an unknown tool is
// denied by its own name. The caller sets action and origin.
func claudeDeny(text string) (out permission.Ruleset) {
	tool, rest, limited := strings.Cut(text, "(")
	what := strings.TrimSpace(strings.TrimSuffix(rest, ")"))
	if server, ok := strings.CutPrefix(tool, "mcp__"); ok {
		server = strings.ReplaceAll(server, "__", "_")
		return permission.Ruleset{{Permission: server, Pattern: "*"}, {Permission: server + "_*", Pattern: "*"}}
	}
	names, known := claudePermissions[tool]
	if !known {
		names, limited = []string{strings.ToLower(tool)}, false
	}
	patterns := []string{"*"}
	if limited && what != "" && what != "*" {
		switch tool {
		case "Bash":
			patterns = []string{claudeCommand(what)}
		case "WebFetch":
			if host, ok := strings.CutPrefix(what, "domain:"); ok {
				// Every scheme, port and subdomain: a page must not become reachable by another way to write its
				// address.
				patterns = []string{"*://" + host, "*://" + host + "/*", "*://" + host + ":*", "*://*." + host, "*://*." + host + "/*"}
			}
		case "Read", "LS", "Edit", "MultiEdit", "Write", "NotebookEdit":
			patterns = claudePaths(what)
		}
	}
	for _, name := range names {
		for _, p := range patterns {
			out = append(out, permission.Rule{Permission: name, Pattern: p})
		}
	}
	return out
}

// claudeCommand translates "npm run test:*", a prefix, to "npm run test *"; everything else has the same wildcards as
// ours.
func claudeCommand(what string) string {
	if prefix, ok := strings.CutSuffix(what, ":*"); ok {
		return strings.TrimSpace(prefix) + " *"
	}
	return what
}

// claudePaths are the paths that a pattern in .gitignore's syntax may mean: "//x" from the root of the disk, "/x" and
// "./x" from a folder that is not known here, "x" at any depth, and a folder with everything in it.
func claudePaths(what string) (out []string) {
	p := strings.ReplaceAll(filepath.ToSlash(what), "**", "*")
	for _, home := range []string{"$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(p, home); ok {
			p = "~/" + rest
		}
	}
	add := func(p string) {
		out = append(out, p, strings.TrimSuffix(p, "/")+"/*")
		if folder := strings.TrimSuffix(p, "/*"); folder != p && strings.Trim(folder, "*/.") != "" { // its listing names what is in it
			out = append(out, folder)
		}
	}
	if abs, ok := strings.CutPrefix(p, "//"); ok {
		add("/" + abs)
		return out
	}
	if strings.HasPrefix(p, "~") {
		add(p)
		return out
	}
	if strings.HasPrefix(p, "/") {
		add(p)
	}
	p = strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
	add(p)
	add("*/" + strings.TrimPrefix(p, "*/"))
	return out
}
