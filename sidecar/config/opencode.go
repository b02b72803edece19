package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Unsupported is a setting of OpenCode's that is not used here. Line and Column count from 1, Column in bytes.
type Unsupported struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Setting string `json:"setting"` // dotted path
	Why     string `json:"why"`
}

func (u Unsupported) String() string {
	return fmt.Sprintf("%s:%d:%d: %s is not used: %s", printable(u.File), u.Line, u.Column, printable(u.Setting), u.Why)
}

// Unsupported lists what OpenCode's files set and Pillion does not use, in the order it was read.
func (c *Config) Unsupported() []Unsupported { return c.unsupported }

// theirNames are OpenCode's configuration files, in the order they are read within one folder; ours come after them.
var theirNames = []string{"opencode.json", "opencode.jsonc", filepath.Join(".opencode", "opencode.json"), filepath.Join(".opencode", "opencode.jsonc")}

// elsewhere says of OpenCode's settings that have no place here why that is.
var elsewhere = map[string]string{
	"theme":              "the editor's theme is followed",
	"keybinds":           "keys are the editor's settings",
	"tui":                "Pillion lives in the editor; the terminal follows its own colours",
	"layout":             "the editor lays the panel out",
	"share":              "sessions are never sent anywhere",
	"autoshare":          "sessions are never sent anywhere",
	"autoupdate":         "Pillion is updated by whatever installed it",
	"username":           "nobody's name is shown",
	"snapshot":           "checkpoints are always kept; they need no git",
	"server":             "nothing listens on the network",
	"logLevel":           "it is log_level here",
	"disabled_providers": "a provider without a key is not offered; take its key away",
	"enabled_providers":  "a provider without a key is not offered",
	"watcher":            "ignore files decide what is watched",
	"tool_output":        "long outputs are kept in a file whatever their length",
	"references":         "additional folders are the editor's or --add-dir",
	"attachment":         "images are sent as they are; providers scale them",
	"$schema":            "",
}

// theirOwn are OpenCode's files of the person.
func (s Sources) theirOwn() []string {
	if s.Home == "" {
		return nil
	}
	dir := filepath.Join(s.Home, ".config", "opencode")
	return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
}

// theirsFile reads one of OpenCode's files as a layer: what is called otherwise is renamed, what has no place here is
// taken out and reported.
func (l *loader) theirsFile(path string) *node {
	src, ok := l.read(path, false)
	if !ok {
		return nil
	}
	n := l.parse(path, src)
	if n == nil {
		return nil
	}
	note := func(at *node, setting, why string) {
		l.unsupported = append(l.unsupported, Unsupported{File: at.file, Line: at.line, Column: at.column, Setting: setting, Why: why})
	}
	kept := n.members[:0:0]
	for _, m := range n.members {
		why, known := elsewhere[m.key]
		switch {
		case known:
			if why != "" {
				note(m.at, m.key, why)
			}
			continue
		case m.key == "mode" || m.key == "modes":
			m.key = "agent"
		case m.key == "autocompact":
			note(m.at, m.key, "it is compaction.auto here")
			continue
		}
		kept = append(kept, m)
	}
	n.members = kept
	for _, m := range n.members {
		if m.key != "agent" {
			continue
		}
		for _, a := range m.value.members {
			for i, s := range a.value.members {
				if s.key == "maxSteps" {
					a.value.members[i].key = "steps"
				}
			}
		}
	}
	l.unknown(n, reflect.TypeFor[Config](), "", note)
	return n
}

// unknown takes settings out that Pillion has no place for, however deep, and notes them.
func (l *loader) unknown(n *node, t reflect.Type, path string, note func(*node, string, string)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case strings.HasPrefix(t.Name(), "Switch["):
		by, _ := t.FieldByName("By")
		t = by.Type
	case strings.HasPrefix(t.Name(), "OrFalse["):
		value, _ := t.FieldByName("Value")
		t = value.Type
	case slices.Contains([]reflect.Type{reflect.TypeFor[Any](), reflect.TypeFor[Permission](), reflect.TypeFor[Plugin]()}, t):
		return
	}
	if n.kind != kindObject {
		return
	}
	switch t.Kind() {
	case reflect.Map:
		for _, m := range n.members {
			l.unknown(m.value, t.Elem(), join(path, m.key), note)
		}
	case reflect.Struct:
		fields := map[string]reflect.Type{}
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" {
				fields[name] = f.Type
			}
		}
		kept := n.members[:0:0]
		for _, m := range n.members {
			ft, ok := fields[m.key]
			if !ok {
				note(m.at, join(path, m.key), "Pillion has no such setting")
				continue
			}
			l.unknown(m.value, ft, join(path, m.key), note)
			kept = append(kept, m)
		}
		n.members = kept
	}
}
