package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Sources say where to look. Nothing is read at a place that is empty.
type Sources struct {
	Cwd     string // session directory, absolute
	Root    string // worktree root: project files are read from here down to Cwd
	UserDir string // ~/.config/pillion
	// ManagedDir holds what whoever manages the machine has decided for everybody (see ManagedDir); the person cannot loosen it.
	ManagedDir string
	Home       string                   // ~, for agents and commands of other programs; "": not read
	Editor     []byte                   // the editor's settings, JSON
	Env        func(name string) string // the environment
	MaxBytes   int64                    // a file larger than this is refused; 0: 4 MiB
	// Trusted: the person trusts the folder, so its files may start programs, redirect models and allow calls.
	// Otherwise Config.Held lists what was left out.
	Trusted bool
	// Plugins are what plugins' config hooks have changed; nil before they are loaded.
	Plugins []PluginLayer
	// TrustedNow says whether a worktree is trusted when something is started or reached (Config.Reason); nil: Trusted.
	TrustedNow func(root string) bool
}

// names are the names of a configuration file, in the order in which they are read in a folder: the last one that
// exists wins, setting by setting.
var names = []string{"pillion.json", "pillion.jsonc", filepath.Join(".pillion", "pillion.json"), filepath.Join(".pillion", "pillion.jsonc")}

// ProjectFolders are the folders of a project that hold settings and nothing else; Folders are those below them, and
// below the person's own.
var (
	ProjectFolders = []string{".pillion", ".opencode", ".claude", ".cursor"}
	Folders        = []string{"agent", "agents", "mode", "modes", "command", "commands", "tool", "tools", "plugin", "plugins"}
)

// Concerns reports whether a file or folder of this name in a project's folder belongs to the configuration, so
// that a watcher knows which changes make it stale.
func Concerns(name string) bool {
	return slices.Contains(names, name) || slices.Contains(openCodeFiles, name) || slices.Contains(ProjectFolders, name) || name == claudeServers || concernsOthers(name) || name == "trust"
}

// Load reads and merges every layer, each over the earlier ones: the project from its root down to Cwd, then what
// other programs keep for the person, the person's own files, the editor's settings and the environment, and last the managed
// settings of the machine. The person comes after the project, so a repository cannot override what a person has decided; of permission
// rules see orderRules.
//
// Load always returns a usable configuration: what is wrong is left out and reported. A file that is not JSON at
// all is left out as a whole.
func Load(s Sources) (*Config, []Problem) {
	l := loader{Sources: s, origins: map[string]string{}, included: map[string]string{}, hookPlaces: map[string][]string{}}
	if l.Env == nil {
		l.Env = func(string) string { return "" }
	}
	if l.MaxBytes == 0 {
		// A file is read whole into memory, and a repository may contain one of any size.
		l.MaxBytes = 4 << 20
	}
	l.managed()
	managed := len(l.rules)
	l.project()
	l.plugins()
	project, written := len(l.rules), slices.Clone(l.written)
	for _, dir := range s.personalFolders() {
		for _, n := range l.markdownIn(dir, "") {
			l.add(n)
		}
	}
	if s.Home != "" {
		for _, n := range append(l.otherLayers(s.Home, true), l.claudeLayers(s.Home)...) {
			l.add(n)
		}
	}
	for _, path := range s.personalOpenCodeFiles() {
		if n := l.openCodeFile(path); n != nil {
			l.add(n)
		}
	}
	if s.UserDir != "" {
		l.file(filepath.Join(s.UserDir, "pillion.json"), false)
		l.file(filepath.Join(s.UserDir, "pillion.jsonc"), false)
	}
	if len(s.Editor) > 0 {
		l.text("editor settings", s.Editor)
	}
	// The person has named this file, so it is reported when it is missing; the files above are optional.
	if p := l.Env("PILLION_CONFIG"); p != "" {
		l.file(p, true)
	}
	if t := l.Env("PILLION_CONFIG_CONTENT"); t != "" {
		l.text("PILLION_CONFIG_CONTENT", []byte(t))
	}
	if t := l.Env("PILLION_CONFIG_FOLDERS"); t != "" {
		l.folders("PILLION_CONFIG_FOLDERS", []byte(t))
	}
	// Marshal quotes the name; it cannot fail for a map of strings.
	if m := l.Env("PILLION_MODEL"); m != "" {
		b, _ := json.Marshal(map[string]string{"model": m})
		l.text("PILLION_MODEL", b)
	}
	l.manage()
	l.rules = slices.Concat(l.rules[:managed], orderRules(l.rules[managed:project], written, l.rules[project:]))
	return l.finish()
}

// loader reads the layers of a configuration in order and merges them.
//
// It is one type because the layers are read for their effect on the same tree, and what is wrong in one is a problem of the whole. Its
// methods are in the file of what they read: claude_settings.go, hooks.go, markdown.go, opencode.go, others.go; substitute.go fills in
// {env:…} and {file:…}; the order of the layers, and what an untrusted project may not set, are here.
type loader struct {
	Sources
	// tree is what the layers read so far make together; nil before the first one.
	tree *node
	// rules are the general rules in the order of reading: the last one that matches decides, so they must not be
	// sorted or merged by key.
	rules             permission.Ruleset
	written           permission.Ruleset // the general rules of the layers read so far, also where less of them counts
	agents            map[string]permission.Ruleset
	managedLayers     []*node
	floor             permission.Ruleset            // the rules of the managed settings
	auto              bool                          // "permission": "auto" is set by the person or by a trusted folder
	untrustedLayer    bool                          // true while the files of an untrusted project are added
	projectAgentRules map[string]permission.Ruleset // rules for agents from an untrusted project
	pluginLayer       bool                          // true while the changes of plugins are added
	pluginAgentRules  map[string]permission.Ruleset // rules for agents from plugins
	personRules       permission.Ruleset            // general rules that are not an untrusted project's
	held              []Held

	unsupported []Unsupported

	offServers   map[string]offServer  // MCP servers that other programs' settings turn off, by name
	serverDenies permission.Ruleset    // tools of MCP servers that other programs' settings deny
	onlyTools    map[string][][]string // by MCP server: the tools that other programs' settings are limited to, a list for each setting
	onlyServers  []*node               // lists of Claude Code's allowedMcpServers

	problems []Problem
	// origins maps a dotted path to the place of its value, as file:line:column, for "config show --origin" and
	// Config.Origin.
	origins map[string]string
	// included maps the path of a {file:…} to its state when it was read (see Current).
	included     map[string]string
	hookPlaces   map[string][]string // by event: where its hooks are, in their order
	projectFiles map[string]string   // by file: the folder whose trust its settings need
}

// project reads the files of the project. What an untrusted project may not set is removed before the layers are
// merged, so that no later code has to think of it.
func (l *loader) project() {
	var files []*node
	for _, dir := range Between(l.Root, l.Cwd) {
		within := l.Root
		if within == "" {
			within = l.Cwd
		}
		// Files of other programs come before ours: where both have a setting, the one that was written for Pillion
		// wins.
		for _, base := range []string{".cursor", ".claude", ".opencode"} {
			files = append(files, l.markdownIn(filepath.Join(dir, base), within)...)
		}
		if dir != l.Home { // the user's own settings count without trust, below
			files = append(files, l.otherLayers(dir, false)...)
			files = append(files, l.claudeLayers(dir)...)
		}
		for _, name := range openCodeFiles {
			if n := l.openCodeFile(filepath.Join(dir, name)); n != nil {
				files = append(files, n)
			}
		}
		for _, name := range names {
			if dir == l.UserDir { // the user's own settings too
				break
			}
			path := filepath.Join(dir, name)
			src, ok := l.read(path, false)
			if !ok {
				continue
			}
			if n := l.parse(path, src); n != nil {
				files = append(files, n)
			}
		}
		files = append(files, l.markdownIn(filepath.Join(dir, ".pillion"), within)...)
	}
	if !l.Trusted {
		u := untrusted{root: l.Root, remote: map[string]bool{}}
		if u.root == "" {
			u.root = l.Cwd
		}
		// All files are looked at before one is pruned: the address of a provider may be in one file and the model
		// that uses it in another.
		for _, n := range files {
			u.remotes(n)
		}
		for _, n := range files {
			u.prune(n)
		}
		l.held = u.held
	}
	l.projectAgentRules = map[string]permission.Ruleset{}
	l.untrustedLayer = !l.Trusted
	root := l.Root
	if root == "" {
		root = l.Cwd
	}
	l.projectFiles = map[string]string{}
	for _, n := range files {
		l.projectFiles[n.file] = root
		l.add(n)
	}
	l.untrustedLayer = false
}

// file adds a file as a layer. With must a missing file is reported; without it, it is an empty layer.
func (l *loader) file(path string, must bool) {
	if src, ok := l.read(path, must); ok {
		l.text(path, src)
	}
}

// read returns the content of a file. ok is false when there is none, or when it cannot be read, which is reported.
func (l *loader) read(path string, must bool) (src []byte, ok bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		// ENOTDIR (something on the way is a file) is not fs.ErrNotExist, but the file is missing all the same.
		if must || !(errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "not a directory")) {
			l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: "cannot be read: " + cause(err)})
		}
		return nil, false
	// A pipe or a device would block the start, or never end.
	case !info.Mode().IsRegular():
		l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: "is not a regular file"})
		return nil, false
	case info.Size() > l.MaxBytes:
		l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: fmt.Sprintf("is larger than %d bytes", l.MaxBytes)})
		return nil, false
	}
	src, err = os.ReadFile(path)
	if err != nil {
		l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: "cannot be read: " + cause(err)})
		return nil, false
	}
	return src, true
}

// text adds a layer from memory; name is its origin.
func (l *loader) text(name string, src []byte) {
	if n := l.parse(name, src); n != nil {
		l.add(n)
	}
}

// folders adds the settings of the folders that Cwd is in, the outer ones first. An editor gives them to one process for a
// window with several folders: {"/path/of/a/folder": {settings}}. It passes only those of folders that the person trusts.
func (l *loader) folders(name string, src []byte) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(src, &all); err != nil {
		l.problems = append(l.problems, Problem{File: name, Line: 1, Column: 1, Fatal: true, Message: "is not an object of folders and their settings: " + err.Error()})
		return
	}
	// A folder that contains another has the shorter path.
	dirs := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, dir := range dirs {
		at := dir
		if real, err := filepath.EvalSymlinks(dir); err == nil && !within(dir, l.Cwd) {
			at = real // an editor names the folder as the person opened it; Cwd may be without links
		}
		if filepath.IsAbs(at) && within(at, l.Cwd) {
			l.text("settings of "+dir, all[dir])
		}
	}
}

// within reports whether path is dir or is below it, by the text of both.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// parse reads a layer; nil when it is not an object, which has been reported.
func (l *loader) parse(name string, src []byte) *node {
	n, bad := parse(name, src)
	if bad != nil {
		l.problems = append(l.problems, *bad)
		return nil
	}
	if n.kind != kindObject {
		l.problems = append(l.problems, wrong(n, "", "an object"))
		return nil
	}
	return n
}

// add merges one layer over the earlier ones. References are replaced first, so that check sees the values that
// will be used; the rules are taken after check, so they hold valid actions only.
func (l *loader) add(n *node) {
	l.problems = append(l.problems, l.substitute(n)...)
	l.problems = append(l.problems, check(n, reflect.TypeFor[Config](), "")...)
	l.takeRules(n)
	l.noteHooks(n)
	l.tree = merge(l.tree, n, "")
}

// takeRules collects the permission sections of a layer, the general one and those of agents, behind those of earlier layers: merging them
// as objects would lose the order of the rules, which decides. Of an untrusted project's layer, rules that loosen are left out or weakened
// (see projectRules), and "auto" is held back: it lets commands run that would otherwise be asked about.
func (l *loader) takeRules(n *node) {
	if p := n.get("permission"); p != nil && p.kind == kindString && p.text == actionAuto {
		if l.untrustedLayer {
			h := Held{Setting: "permission", Reason: loosens}
			h.File, h.Line, h.Column = place(p.origin())
			l.held = append(l.held, h)
		} else {
			l.auto = true
		}
	} else if p != nil {
		own := rules(p)
		l.written = append(l.written, own...)
		switch {
		case l.untrustedLayer:
			own = projectRules(own, l.holdRule)
		case l.pluginLayer:
			own = projectRules(own, noteNothing)
		default:
			// agentRules compares an untrusted project's rules with these in finish, when all layers are read.
			l.personRules = append(l.personRules, own...)
		}
		l.rules = append(l.rules, own...)
	}
	agents := n.get("agent")
	if agents == nil {
		return
	}
	for _, m := range agents.members {
		if m.value.kind != kindObject {
			continue
		}
		if p := m.value.get("permission"); p != nil {
			if l.untrustedLayer { // agentRules needs all of the person's rules, which come later
				l.projectAgentRules[m.key] = append(l.projectAgentRules[m.key], rules(p)...)
				continue
			}
			if l.pluginLayer {
				if l.pluginAgentRules == nil {
					l.pluginAgentRules = map[string]permission.Ruleset{}
				}
				l.pluginAgentRules[m.key] = append(l.pluginAgentRules[m.key], rules(p)...)
				continue
			}
			if l.agents == nil {
				l.agents = map[string]permission.Ruleset{}
			}
			l.agents[m.key] = append(l.agents[m.key], rules(p)...)
		}
	}
}

// rules are those of a checked permission section, in the order of the file.
func rules(n *node) permission.Ruleset {
	// A single action stands for every permission and pattern.
	if n.kind == kindString {
		return permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Action(n.text), Origin: n.origin()}}
	}
	var out permission.Ruleset
	for _, m := range n.members {
		if m.value.kind == kindString {
			out = append(out, permission.Rule{Permission: m.key, Pattern: "*", Action: permission.Action(m.value.text), Origin: m.at.origin()})
			continue
		}
		for _, p := range m.value.members {
			out = append(out, permission.Rule{Permission: m.key, Pattern: p.key, Action: permission.Action(p.value.text), Origin: p.at.origin()})
		}
	}
	return out
}

// finish turns the merged tree into a Config, with the origins of its values and the rules in their final order: the layers', then what
// other programs deny. An agent's rules are those of an untrusted project first, as far as agentRules lets them pass, then the person's,
// then the denies again.
func (l *loader) finish() (*Config, []Problem) {
	c := &Config{}
	if l.tree != nil {
		// encoding/json, and not code of Pillion, fills Config: the types with two forms (Plugin, OrFalse) read
		// themselves there.
		var b bytes.Buffer
		l.tree.json(&b)
		if err := json.Unmarshal(b.Bytes(), c); err != nil {
			// check has removed every wrong value, so this is a mistake in this package: report it.
			l.problems = append(l.problems, Problem{File: "configuration", Line: 1, Column: 1, Fatal: true, Message: err.Error()})
		}
		l.tree.leaves("", func(path string, n *node) {
			// A value from a variable that is not set is empty; without this note its origin would name a place where
			// everything looks right.
			l.origins[path] = n.origin()
			if n.unset != "" {
				l.origins[path] += " (" + n.unset + " is not set)"
			}
		})
	}
	c.origins = l.origins
	c.placeHooks(l.hookPlaces)
	denies := append(l.claudeDenies(), l.serverDenies...)
	l.turnedOff(c.MCP)
	l.limitServers(c.MCP)
	for _, dir := range l.denyingFolders() {
		denies = append(denies, l.otherDenies(dir)...)
		denies = append(denies, l.codexDenies(dir)...)
		forbidden, _ := policyRules(l.policies(dir, false))
		denies = append(denies, forbidden...)
		if dir != l.Home {
			denies = append(denies, l.ignoreDenies(dir)...)
		}
	}
	// The denies of other programs go last: the last rule that matches wins, and a deny must hold whatever another file
	// allows.
	c.Permission = Permission{Rules: slices.Concat(l.rules, denies, l.floor), Auto: l.auto}
	// "auto" answers for the person what the rules ask about; a managed rule wants the person.
	if slices.ContainsFunc(l.floor, func(r permission.Rule) bool { return r.Action == permission.Ask }) {
		c.Permission.Auto, c.Permission.NoAuto = false, true
	}
	c.managedDir = l.ManagedDir
	for _, name := range slices.Sorted(maps.Keys(c.Agent)) {
		// An agent's rules are evaluated after the general ones, so the denies are repeated there.
		a := c.Agent[name]
		a.Permission = Permission{Rules: slices.Concat(agentRules(name, l.projectAgentRules[name], l.personRules, l.holdRule),
			agentRules(name, l.pluginAgentRules[name], l.personRules, noteNothing), l.agents[name], denies)}
		c.Agent[name] = a
	}
	c.projectFiles, c.trustedNow = l.projectFiles, l.TrustedNow
	if c.trustedNow == nil {
		c.trustedNow = func(string) bool { return l.Trusted }
	}
	c.held, c.trusted, c.unsupported, c.included = l.held, l.Trusted, l.unsupported, l.included
	return c, l.problems
}

// noteNothing takes the place of holdRule for plugins, about which the person is told once (see PluginChange).
func noteNothing(permission.Rule, string) {}

// holdRule reports a rule of the project that is not used as it was written; prefix is "" or "agent.NAME.".
func (l *loader) holdRule(r permission.Rule, prefix string) {
	h := Held{Setting: prefix + "permission." + r.Permission, Reason: loosens}
	if r.Pattern != "*" {
		h.Setting += "." + r.Pattern
	}
	h.File, h.Line, h.Column = place(r.Origin)
	// One rule of Claude Code's (Bash(make:*)) is two of ours, without arguments and with any: the person reads the wider one.
	if n := len(l.held); n > 0 {
		if last := l.held[n-1]; h.Setting == last.Setting+" *" && h.File == last.File && h.Line == last.Line && h.Column == last.Column {
			l.held[n-1] = h
			return
		}
	}
	l.held = append(l.held, h)
}

// place splits an origin, file:line:column. Paths may contain colons, so it splits from the end. line and column
// are 0 where the origin has none.
func place(origin string) (file string, line, column int) {
	file = origin
	for _, n := range []*int{&column, &line} {
		i := strings.LastIndexByte(file, ':')
		if i < 0 {
			break
		}
		*n, _ = strconv.Atoi(file[i+1:])
		file = file[:i]
	}
	return file, line, column
}

// cause is the text of an error without the path and the operation: the problem names the file already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Between lists the folders from root down to dir, both included, the outermost first; only dir when it does not
// are under root. It compares paths as text and follows no links.
func Between(root, dir string) []string {
	if dir == "" {
		return nil
	}
	rel, err := filepath.Rel(root, dir)
	if root == "" || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return []string{dir}
	}
	out := []string{root}
	if rel == "." {
		return out
	}
	at := root
	for _, part := range strings.Split(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		out = append(out, at)
	}
	return out
}

// Stamp is a text that changes when a file that Load would read appears, disappears or changes, or a variable that
// it reads does. Comparing two is cheaper than loading: files are looked at, not read. It must visit the same
// places as Load: one that is missing here is noticed only when something else changes.
func Stamp(s Sources) string {
	var b strings.Builder
	add := func(path string) {
		if m := fileState(path); m != "" {
			b.WriteString(path + " " + m + ";")
		}
	}
	for _, dir := range Between(s.Root, s.Cwd) {
		for _, name := range slices.Concat(openCodeFiles, names) {
			add(filepath.Join(dir, name))
		}
		for _, name := range slices.Concat(claudeSettings, []string{claudeServers}) {
			add(filepath.Join(dir, name))
		}
		otherStamp(add, dir)
		for _, base := range ProjectFolders {
			markdownStamp(add, filepath.Join(dir, base))
		}
	}
	for _, dir := range s.personalFolders() {
		markdownStamp(add, dir)
	}
	for _, name := range slices.Concat(claudeSettings, []string{claudeServers}) {
		if s.Home != "" {
			add(filepath.Join(s.Home, name))
		}
	}
	if s.Home != "" {
		otherStamp(add, s.Home)
	}
	for _, path := range s.personalOpenCodeFiles() {
		add(path)
	}
	for _, path := range s.managedFiles() {
		add(path)
	}
	if s.UserDir != "" {
		add(filepath.Join(s.UserDir, "pillion.json"))
		add(filepath.Join(s.UserDir, "pillion.jsonc"))
	}
	if s.Env != nil {
		add(s.Env("PILLION_CONFIG"))
		fmt.Fprintf(&b, "%q %q %q", s.Env("PILLION_CONFIG_CONTENT"), s.Env("PILLION_CONFIG_FOLDERS"), s.Env("PILLION_MODEL"))
	}
	// The editor's settings have no time of change, so their text is part of the stamp.
	b.Write(s.Editor)
	fmt.Fprintf(&b, " %v", s.Trusted)
	for _, p := range s.Plugins {
		fmt.Fprintf(&b, " %q %q", p.File, p.Text)
	}
	return b.String()
}

// fileState tells versions of a file apart, by size in bytes and time; "" when there is none.
func fileState(path string) string { return stateOf(os.Stat(path)) }

// stateOf is fileState of a file that was looked at already.
func stateOf(info os.FileInfo, err error) string {
	if err != nil {
		return ""
	}
	// Nanoseconds: a file may be saved twice within a second.
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
}

// Current reports whether the files that {file:…} includes are unchanged. They are not part of Stamp, because only a
// loaded configuration knows their names.
func (c *Config) Current() bool {
	for path, m := range c.included {
		if fileState(path) != m {
			return false
		}
	}
	return true
}
