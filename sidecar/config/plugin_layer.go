package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// PluginLayer is what a plugin's config hook has changed, as a layer of settings. Text is JSON in OpenCode's form, with the changed settings
// only (see PluginChange).
type PluginLayer struct {
	File   string // the plugin, for origins
	Folder string // the worktree whose trust it needs; "": it is the person's own
	Text   []byte
}

// pluginSettings are the sections that a plugin may change: those that OpenCode has too. Where sessions are stored, what is sandboxed, which
// programs run around a call and which plugins there are is decided by the person alone.
var pluginSettings = []string{"agent", "mode", "command", "mcp", "tools", "provider", "model", "small_model", "default_agent", "instructions", "lsp", "formatter", "skills", "compaction", "permission"}

// ForPlugins is the configuration as plugins see it, in OpenCode's form: rules are objects of patterns by permission.
func (c *Config) ForPlugins() (map[string]any, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	rules := func(of permission.Ruleset) map[string]any {
		sections := map[string]any{}
		for _, r := range of {
			section, ok := sections[r.Permission].(map[string]any)
			if !ok {
				section = map[string]any{}
				sections[r.Permission] = section
			}
			section[r.Pattern] = string(r.Action)
		}
		return sections
	}
	// A plugin may add to these without looking whether they exist, as OpenCode's documentation shows it.
	for _, name := range []string{"agent", "command", "mcp"} {
		if out[name] == nil {
			out[name] = map[string]any{}
		}
	}
	out["permission"] = rules(c.Permission.Rules)
	for name, a := range c.Agent {
		if shown, ok := out["agent"].(map[string]any)[name].(map[string]any); ok {
			shown["permission"] = rules(a.Permission.Rules)
		}
	}
	return out, nil
}

// PluginChange compares the configuration that a plugin was given with what its hook left. It returns the layer's text, "" without a change,
// and a line for the person that says what it sets and what of it is not used.
func PluginChange(file string, before map[string]any, after []byte) (text []byte, said string, err error) {
	n, bad := parse(file, after)
	if bad != nil || n.kind != kindObject {
		return nil, "", fmt.Errorf("its config hook left something that is not a configuration")
	}
	var sets, not []string
	changed := difference(before, n)
	kept := changed.members[:0:0]
	for _, m := range changed.members {
		if !slices.Contains(pluginSettings, m.key) {
			if whyNot, known := unusedSettings[m.key]; !known || whyNot != "" {
				not = append(not, m.key)
			}
			continue
		}
		kept = append(kept, m)
		name := m.key
		if m.value.kind == kindObject && len(m.value.members) > 0 && m.key != "permission" {
			var names []string
			for _, x := range m.value.members {
				names = append(names, printable(x.key))
			}
			name += " " + strings.Join(names, ", ")
		}
		sets = append(sets, name)
	}
	// What was removed has no layer; for these two there is a setting that says the same.
	for _, removed := range []struct{ section, off, value string }{{"agent", "disable", "true"}, {"mcp", "enabled", "false"}} {
		was, _ := before[removed.section].(map[string]any)
		now := n.get(removed.section)
		for _, name := range slices.Sorted(maps.Keys(was)) {
			if now != nil && now.get(name) != nil {
				continue
			}
			one := n.object()
			one.members = []member{{removed.off, n, n.constant(removed.value)}}
			all := n.object()
			all.members = []member{{name, n, one}}
			kept = append(kept, member{removed.section, n, all})
			sets = append(sets, "no "+removed.section+" "+printable(name))
		}
	}
	if allows(changed) {
		not = append(not, "rules that allow (write them into pillion.jsonc if you want them)")
	}
	if len(sets) > 0 {
		said = "sets " + strings.Join(sets, "; ")
	}
	if len(not) > 0 {
		said = strings.TrimPrefix(said+"; not used: "+strings.Join(not, ", "), "; ")
	}
	if len(kept) == 0 {
		return nil, said, nil
	}
	merged := n.object()
	for _, m := range kept {
		one := n.object()
		one.members = []member{m}
		merged = merge(merged, one, "")
	}
	var b bytes.Buffer
	merged.json(&b)
	return b.Bytes(), said, nil
}

// constant is a value of JSON's words at the place of another node.
func (n *node) constant(text string) *node {
	return &node{file: n.file, line: n.line, column: n.column, kind: kindBool, text: text}
}

// difference is what after has and before has not, key by key; lists and other values are taken whole.
func difference(before map[string]any, after *node) *node {
	out := after.object()
	for _, m := range after.members {
		was, had := before[m.key]
		if old, ok := was.(map[string]any); ok && m.value.kind == kindObject {
			if inner := difference(old, m.value); len(inner.members) > 0 {
				out.members = append(out.members, member{m.key, m.at, inner})
			}
			continue
		}
		var now any
		if json.Unmarshal([]byte(m.value.shown()), &now) == nil && had && reflect.DeepEqual(was, now) {
			continue
		}
		out.members = append(out.members, m)
	}
	return out
}

// allows reports a rule that allows, among the general rules or those of an agent.
func allows(n *node) bool {
	found := func(p *node) bool {
		if p == nil {
			return false
		}
		return slices.ContainsFunc(rules(p), func(r permission.Rule) bool { return r.Action == permission.Allow })
	}
	if found(n.get("permission")) {
		return true
	}
	for _, section := range []string{"agent", "mode"} {
		if agents := n.get(section); agents != nil {
			for _, a := range agents.members {
				if a.value.kind == kindObject && found(a.value.get("permission")) {
					return true
				}
			}
		}
	}
	return false
}

// plugins adds the layers of plugins, after the project's files and before the person's, whose settings win. Rules count as those of an
// untrusted project: they may deny and ask; what is allowed without a question stands in a file that a person can read.
func (l *loader) plugins() {
	for _, p := range l.Plugins {
		if p.Folder != "" && !l.Trusted {
			continue // the folder has lost its trust while the plugin runs
		}
		n := l.parse(p.File, p.Text)
		if n == nil {
			continue
		}
		n.fixed(p.File)
		if p.Folder != "" {
			l.projectFiles[p.File] = p.Folder
		}
		l.openCode(n)
		l.pluginLayer = true
		l.add(n)
		l.pluginLayer = false
	}
}

// fixed gives all nodes of a tree the first line of a file as their place, since the tree was made by a program, and leaves {env:…} in their
// texts as it is.
func (n *node) fixed(file string) {
	n.file, n.line, n.column, n.raw = file, 1, 1, true
	for _, e := range n.elems {
		e.fixed(file)
	}
	for _, m := range n.members {
		m.at.fixed(file)
		m.value.fixed(file)
	}
}
