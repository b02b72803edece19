package config

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"

	"github.com/pillion-dev/pillion/tools/permission"
)

// ManagedDir is the folder of the settings that whoever manages this machine has made for everybody who uses it. Only administrators
// can write there, and no variable names another folder: the person must not be able to put something else in its place.
func ManagedDir() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/Pillion"
	case "windows":
		// ProgramData in the environment would be the person's to change; this is where it is unless it was moved.
		return `C:\ProgramData\Pillion`
	}
	return "/etc/pillion"
}

// managedFiles are the files of the managed settings, in the order of reading.
func (s Sources) managedFiles() []string {
	if s.ManagedDir == "" {
		return nil
	}
	return []string{filepath.Join(s.ManagedDir, "pillion.json"), filepath.Join(s.ManagedDir, "pillion.jsonc")}
}

// managed reads the managed settings. Their rules count twice: as the first of all layers, so that what they allow needs no question, and
// as a floor (permission.Rule.Managed), which no later rule loosens. Everything else in them is the last layer, see manage.
func (l *loader) managed() {
	for _, path := range l.managedFiles() {
		if _, err := os.Lstat(path); os.IsNotExist(err) {
			continue
		}
		var n *node
		if src, ok := l.read(path, true); ok {
			n = l.parse(path, src)
		}
		// What cannot be read may forbid anything, so everything is forbidden until it can. The problem says what is wrong.
		if n == nil {
			l.floor = append(l.floor, permission.Rule{Permission: "*", Pattern: "*", Action: permission.Deny, Origin: path + ":1:1", Managed: true})
			continue
		}
		l.problems = append(l.problems, l.substitute(n)...)
		l.problems = append(l.problems, check(n, reflect.TypeFor[Config](), "")...)
		l.managedLayers = append(l.managedLayers, n)
		p := n.get("permission")
		if p == nil {
			continue
		}
		if p.kind == kindString && p.text == actionAuto {
			l.auto = true
			continue
		}
		own := rules(p)
		l.rules = append(l.rules, own...)
		l.personRules = append(l.personRules, own...)
		l.floor = append(l.floor, asFloor(own)...)
	}
}

// asFloor are the same rules as a floor.
func asFloor(own permission.Ruleset) permission.Ruleset {
	out := slices.Clone(own)
	for i := range out {
		out[i].Managed = true
	}
	return out
}

// manage lays the managed settings over all others. Their general rules are in l.floor already.
func (l *loader) manage() {
	for _, n := range l.managedLayers {
		if agents := n.get("agent"); agents != nil {
			for _, m := range agents.members {
				if p := m.value.get("permission"); m.value.kind == kindObject && p != nil {
					if l.agents == nil {
						l.agents = map[string]permission.Ruleset{}
					}
					l.agents[m.key] = append(l.agents[m.key], asFloor(rules(p))...)
				}
			}
		}
		l.noteHooks(n)
		l.tree = merge(l.tree, n, "")
	}
}

// Managed reports whether the managed settings set a value, and where, as file:line:column. path is dotted.
func (c *Config) Managed(path string) (origin string, ok bool) {
	origin = c.origins[path]
	file, _, _ := place(origin)
	return origin, c.managedDir != "" && filepath.Dir(file) == c.managedDir
}
