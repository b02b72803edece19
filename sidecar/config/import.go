package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Programs are those whose settings Import translates. claude and opencode have their own readers; each of the others has at least
// one row in otherFiles.
var Programs = []string{"claude", "opencode", "cursor", "codex", "gemini"}

// Imported is the result of Import. Nothing is written yet.
type Imported struct {
	Path  string   // the file of settings that Text is for
	Old   string   // its present content; empty: it does not exist
	Text  string   // its new content; empty: it cannot be changed, see Problems
	Files []string // what was read
	// Used are the program's files and folders that Pillion reads where they are, so that nothing needs to be translated.
	Used []string
	// Left are the settings that have no translation, each with its place and the reason.
	Left []Unsupported
	// Problems are mistakes in the files that were read, or in the settings file, which then does not change.
	Problems []Problem
}

// Import translates the settings of another program into Pillion's. It reads the project's files, or with own the person's. It
// writes nothing. A person reviews the text, so it may also translate settings that loosen. Settings that the settings file has
// already stay, with their comments. It fails for an unknown program, and if that program has neither settings nor files that are used as
// they are; mistakes in the files are in Problems.
func Import(s Sources, program string, own bool) (Imported, error) {
	if !slices.Contains(Programs, program) {
		return Imported{}, fmt.Errorf("%s is not a program whose settings can be imported; use one of %s", program, oneOf(Programs))
	}
	dir := s.Root
	if own || dir == "" {
		dir = s.Home
	}
	l := loader{Sources: s, origins: map[string]string{}, included: map[string]string{}, hookPlaces: map[string][]string{}}
	// As in Load, whatever the caller set.
	l.MaxBytes = 4 << 20
	if l.Env == nil {
		l.Env = os.Getenv
	}
	out := Imported{}
	var layers []*node
	var denies permission.Ruleset
	// Only existing files are named as read: the list is in the file's first line.
	read := func(paths ...string) {
		for _, p := range paths {
			if _, err := os.Stat(p); err == nil {
				out.Files = append(out.Files, p)
			}
		}
	}
	switch program {
	case "claude":
		for _, name := range slices.Concat(claudeSettings, []string{claudeServers}) {
			read(filepath.Join(dir, name))
		}
		if own { // its servers for all projects are in a file of their own
			if n := l.readOther(filepath.Join(dir, ".claude.json")); n != nil {
				read(filepath.Join(dir, ".claude.json"))
				layers = append(layers, l.serversLayer(n))
			}
		}
		layers = append(layers, l.claudeLayers(dir)...)
		layers = append(layers, l.claudeModels(dir)...)
		// claudeDenies reads the folders of a session; here it must read only this folder, not the person's.
		only := l
		only.Root, only.Cwd, only.Home = dir, dir, ""
		denies = only.claudeDenies()
		l.offServers, l.onlyServers, l.problems, l.unsupported = only.offServers, only.onlyServers, only.problems, only.unsupported
	case "opencode":
		files := s.personalOpenCodeFiles()
		if !own {
			files = nil
			for _, name := range openCodeFiles {
				files = append(files, filepath.Join(dir, name))
			}
		}
		for _, path := range files {
			if n := l.openCodeFile(path); n != nil {
				layers = append(layers, n)
				read(path)
			}
		}
	default:
		for _, f := range otherFiles {
			// A person's settings are in the home folder, where some of these files have no meaning.
			if f.program != program || own && !f.home {
				continue
			}
			path := filepath.Join(dir, f.path)
			n := l.readOther(path)
			if n == nil {
				continue
			}
			read(path)
			layers = append(layers, f.layer(&l, n))
			if program == "codex" {
				denies = append(denies, l.codexDenies(dir)...)
				layers = append(layers, l.codexChoices(n))
			}
			if f.denies != nil {
				for _, r := range f.denies(n) {
					r.Action = permission.Deny
					denies = append(denies, r)
				}
			}
		}
	}
	out.Used = s.usedAsTheyAre(program, dir, own)
	if len(out.Files) == 0 && len(out.Used) > 0 {
		return out, nil
	}
	if len(out.Files) == 0 {
		hint := ""
		if !own {
			hint = "; with --global your own are read"
		}
		return out, fmt.Errorf("no settings of %s were found in %s%s", program, dir, hint)
	}
	tree := (&node{file: program, line: 1, column: 1}).object()
	// Rules are collected over all layers: merge would put a later rule about a known permission at the place of the first one, but
	// the order decides.
	var rules []member
	for _, n := range layers {
		if p := n.get("permission"); p != nil && p.kind == kindObject {
			rules = append(rules, p.members...)
			n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key == "permission" })
		}
		tree = merge(tree, n, "")
	}
	if servers := tree.get("mcp"); servers != nil {
		for _, s := range servers.members {
			off, denied := l.offServers[s.key]
			denied = denied && (!off.claudeOnly || filepath.Base(s.at.file) == claudeServers)
			var command []string
			for _, word := range s.value.elements("command") {
				command = append(command, word.text)
			}
			url := ""
			if u := s.value.get("url"); u != nil {
				url = u.text
			}
			if denied || slices.ContainsFunc(l.onlyServers, func(list *node) bool { return !allowsServer(list, s.key, command, url) }) {
				s.value.members = append(s.value.members, member{"enabled", s.at, &node{file: s.at.file, line: s.at.line, column: s.at.column, kind: kindBool, text: "false"}})
			}
		}
	}
	at := tree.object()
	// Denies come last, so they override every translated allow.
	for _, r := range append(denies, l.serverDenies...) {
		addRule(at, tree, r.Permission, r.Pattern, permission.Deny)
	}
	if section := groupRules(tree, append(rules, at.members...)); len(section.members) > 0 {
		tree.members = append(tree.members, member{"permission", section, section})
	}
	// The translation must be valid: check removes what is not, and reports it.
	out.Problems, out.Left = append(l.problems, check(tree, reflect.TypeFor[Config](), "")...), l.left(program)
	out.Path = filepath.Join(dir, "pillion.jsonc")
	if own {
		out.Path = filepath.Join(s.UserDir, "pillion.jsonc")
	} else {
		for _, name := range names { // an existing file keeps its place
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				out.Path = filepath.Join(dir, name)
			}
		}
	}
	old, ok := l.read(out.Path, false)
	if !ok && fileState(out.Path) != "" { // it exists and cannot be read
		out.Problems = l.problems
		return out, nil
	}
	out.Old = string(old)
	text, err := laidInto(old, tree, header(program, out.Files, dir))
	if err != nil {
		out.Problems = append(out.Problems, Problem{File: out.Path, Line: 1, Column: 1, Fatal: true, Message: err.Error()})
		return out, nil
	}
	out.Text = text
	return out, nil
}

// usedFiles are what Pillion reads where another program has it, by program; below a project's folder or the home folder.
var usedFiles = map[string][]string{
	"claude":   {"CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/agents", ".claude/commands", ".claude/skills", ".claude/rules"},
	"opencode": {"AGENTS.md"},
	"cursor":   {".cursorrules", ".cursorignore", ".cursor/rules", ".cursor/agents", ".cursor/commands", ".cursor/skills"},
	"codex":    {"AGENTS.md", "AGENTS.override.md", ".codex/AGENTS.md", ".codex/rules", ".codex/skills", ".agents/skills"},
	"gemini":   {"GEMINI.md", ".gemini/GEMINI.md", ".gemini/skills", ".gemini/policies", ".geminiignore", ".aiexclude"},
}

// usedAsTheyAre are those that exist.
func (s Sources) usedAsTheyAre(program, dir string, own bool) (out []string) {
	paths := []string{}
	for _, p := range usedFiles[program] {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(p)))
	}
	if program == "opencode" {
		folder := filepath.Join(dir, ".opencode")
		if own {
			folder = s.OpenCodeDir()
		}
		for _, name := range slices.Concat(Folders, []string{"skill", "skills"}) {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// readOther reads a file of another program; nil if it does not exist or has a mistake, which is added to the problems.
func (l *loader) readOther(path string) *node {
	src, ok := l.read(path, false)
	if !ok {
		return nil
	}
	n, bad := parseOther(path, src)
	if bad != nil {
		l.problems = append(l.problems, *bad)
		return nil
	}
	return n
}

// left are the notes without those that advise to run this import. They are found by the command in their text, so a note that
// gives this advice must contain "pillion import PROGRAM".
func (l *loader) left(program string) []Unsupported {
	return slices.DeleteFunc(l.unsupported, func(u Unsupported) bool { return strings.Contains(u.Why, "pillion import "+program) })
}

// header is the comment at the top of a new file that says where its settings come from. Paths below dir are shown relative to it.
// printable replaces line breaks in a name, which would end the comment.
func header(program string, files []string, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Imported from %s:", program)
	for _, f := range files {
		if rel, err := filepath.Rel(dir, f); err == nil {
			f = filepath.ToSlash(rel)
		}
		b.WriteString(" " + printable(f))
	}
	return b.String() + "\n"
}

// groupRules writes one section for each permission, as people do. The sections are in the order of their last rules, so that a
// deny, which comes last, still follows an allow with a wildcard. Within a section a repeated pattern moves to the end for the same
// reason. at is the place of the new nodes.
func groupRules(at *node, rules []member) *node {
	out := at.object()
	for _, r := range rules {
		section := at.object()
		if i := slices.IndexFunc(out.members, func(m member) bool { return m.key == r.key }); i >= 0 {
			section = out.members[i].value
			out.members = slices.Delete(out.members, i, i+1)
		}
		value := r.value
		if value.kind != kindObject { // "bash": "ask"
			value = at.object()
			value.members = []member{{"*", r.at, r.value}}
		}
		for _, p := range value.members {
			section.members = append(slices.DeleteFunc(section.members, func(m member) bool { return m.key == p.key }), p)
		}
		out.members = append(out.members, member{r.key, r.at, section})
	}
	return out
}

// laidInto returns the text of a settings file with the missing settings added. An empty file becomes the tree itself, below a
// comment. A value that both have stays as it is in the file; objects are merged key by key. The error says why the file cannot be
// changed.
func laidInto(old []byte, tree *node, comment string) (string, error) {
	var b bytes.Buffer
	if len(bytes.TrimSpace(old)) == 0 {
		b.WriteString(comment)
		tree.json(&b)
		return formatted(b.Bytes(), "  ")
	}
	have, bad := parse("", old)
	if bad != nil {
		return "", fmt.Errorf("it is not JSON with comments, so nothing can be added: %s", bad.Message)
	}
	v, err := hujson.Parse(bytes.Clone(old)) // it changes the bytes that it is given
	if err != nil {
		return "", err
	}
	// One operation of a JSON Patch (RFC 6902), which hujson applies without losing comments.
	type operation struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	var patch []operation
	var add func(have, want *node, path string)
	add = func(have, want *node, path string) {
		for _, m := range want.members {
			// A JSON Pointer (RFC 6901): ~ and / of a key are escaped.
			at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(m.key)
			switch was := have.get(m.key); {
			case was == nil:
				var raw bytes.Buffer
				m.value.json(&raw)
				patch = append(patch, operation{"add", at, raw.Bytes()})
			case was.kind == kindObject && m.value.kind == kindObject:
				add(was, m.value, at)
			}
		}
	}
	add(have, tree, "")
	if len(patch) == 0 {
		return string(old), nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return "", err
	}
	if err := v.Patch(raw); err != nil {
		return "", err
	}
	return formatted([]byte(v.String()), indentOf(old))
}

// formatted returns JSON with comments in hujson's format, which is stable: a later import changes only the lines that it adds.
// hujson indents with tabs, which are replaced by indent.
func formatted(src []byte, indent string) (string, error) {
	out, err := hujson.Format(src)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(string(out), "\n")
	for i, line := range lines {
		rest := strings.TrimLeft(line, "\t")
		lines[i] = strings.Repeat(indent, len(line)-len(rest)) + rest
	}
	return strings.Join(lines, ""), nil
}

// indentOf is the indentation of a file's first indented line, default two blanks. With another one an import would change every
// line.
func indentOf(src []byte) string {
	for line := range strings.Lines(string(src)) {
		if rest := strings.TrimLeft(line, " \t"); rest != line && strings.TrimSpace(rest) != "" {
			return line[:len(line)-len(rest)]
		}
	}
	return "  "
}

// claudeModels converts Claude Code's choice of model and service, a layer for each file. It is used only for an import: an address
// from another program's file may be used only after a person has read it. Aliases such as "sonnet" have no counterpart and are
// left out.
func (l *loader) claudeModels(dir string) (out []*node) {
	for _, name := range claudeSettings {
		n := l.readOther(filepath.Join(dir, name))
		if n == nil {
			continue
		}
		layer := n.object()
		put := func(path, value string) { setText(layer, n, strings.Split(path, "."), value) }
		if m := n.get("model"); m != nil && strings.HasPrefix(m.text, "claude-") {
			put("model", "anthropic/"+m.text)
		}
		if env := n.get("env"); env != nil {
			for _, v := range env.members {
				switch v.key {
				case "ANTHROPIC_BASE_URL":
					put("provider.anthropic.baseURL", v.value.text)
				case "ANTHROPIC_MODEL":
					put("model", "anthropic/"+v.value.text)
				case "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL":
					put("small_model", "anthropic/"+v.value.text)
				}
			}
		}
		out = append(out, layer)
	}
	return out
}

// codexChoices are the settings of Codex's config.toml that loosen or redirect: model, service and sandbox. codexLayer leaves them
// out, because they may be used only after a person has read them.
func (l *loader) codexChoices(n *node) *node {
	out := n.object()
	put := func(path, value string) { setText(out, n, strings.Split(path, "."), value) }
	put1 := func(key string, v *node) { out.members = append(out.members, member{key, v, v}) }
	text := func(key string) string {
		if v := n.get(key); v != nil {
			return v.text
		}
		return ""
	}
	vendor := text("model_provider")
	if vendor == "" {
		// Codex's default.
		vendor = "openai"
	}
	if m := text("model"); m != "" {
		put("model", vendor+"/"+m)
		if e := text("model_reasoning_effort"); e != "" {
			// The dots of a name such as gpt-5.1 are not separators; see setText.
			put("provider."+vendor+".models."+strings.ReplaceAll(m, ".", "\x00")+".options.reasoningEffort", e)
		}
	}
	if all := n.get("model_providers"); all != nil {
		for _, p := range all.members {
			for _, m := range p.value.members {
				switch m.key {
				case "http_headers", "env_http_headers", "query_params":
					at := map[bool]string{true: ".options.queryParams.", false: ".headers."}[m.key == "query_params"]
					for _, h := range m.value.members {
						text := h.value.text
						if m.key == "env_http_headers" {
							text = "{env:" + text + "}"
						}
						put("provider."+p.key+at+strings.ReplaceAll(h.key, ".", "\x00"), text)
					}
				case "name":
					put("provider."+p.key+".name", m.value.text)
				case "base_url":
					put("provider."+p.key+".baseURL", m.value.text)
				case "env_key":
					put("provider."+p.key+".key", "{env:"+m.value.text+"}")
				case "wire_api":
					// Its other value is chat, the format of a provider without the setting.
					if m.value.text == "responses" {
						put("provider."+p.key+".api", "responses")
					}
				default:
					l.note(m.at, "model_providers."+p.key+"."+m.key, "there is no such setting here")
				}
			}
		}
	}
	yes := func() *node { v := n.object(); v.kind, v.text = kindBool, "true"; return v }
	switch text("sandbox_mode") {
	// Codex asks before it leaves the sandbox, unless its policy is never; with untrusted it also asks about commands in the
	// sandbox.
	case "workspace-write":
		if text("approval_policy") == "never" {
			put("sandbox", "on")
		} else {
			put("sandbox", "ask")
		}
		if text("approval_policy") != "untrusted" {
			put1("sandbox_auto_allow", yes())
		}
	// The agent plan changes nothing; it is the nearest setting.
	case "read-only":
		put("default_agent", "plan")
	}
	if w := n.get("sandbox_workspace_write"); w != nil {
		if v := w.get("network_access"); v != nil && v.text == "true" {
			put1("sandbox_network", yes())
		}
		if v := w.get("writable_roots"); v != nil && v.kind == kindArray {
			put1("sandbox_writable", v)
		}
	}
	return out
}

// setText sets a text in a tree and creates the objects on the way to it. at is the place that the new nodes name. A NUL in a key
// stands for a dot, because callers split a path with dots. An existing value is not replaced but
// followed by a second one, which wins.
func setText(to, at *node, path []string, value string) {
	for _, key := range path[:len(path)-1] {
		key = strings.ReplaceAll(key, "\x00", ".")
		next := to.get(key)
		if next == nil {
			next = at.object()
			to.members = append(to.members, member{key, at, next})
		}
		to = next
	}
	v := at.object()
	v.kind, v.text = kindString, value
	to.members = append(to.members, member{strings.ReplaceAll(path[len(path)-1], "\x00", "."), at, v})
}
