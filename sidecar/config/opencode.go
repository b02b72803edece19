package config

import (
	"fmt"
	"maps"
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
	"disabled_providers": "a provider without a key is not offered; take its key away",
	"enabled_providers":  "a provider without a key is not offered",
	"watcher":            "ignore files decide what is watched",
	"tool_output":        "long outputs are kept in a file whatever their length",
	"references":         "additional folders are the editor's or --add-dir",
	"attachment":         "images are sent as they are; providers scale them",
	"enterprise":         "sessions are never sent anywhere",
	"mcpServers":         "write each server under mcp: command is a list of the program and its arguments, env is environment, type is local or remote",
	"$schema":            "",
}

// elsewhereInside says the same of settings inside of sections; * is any name.
var elsewhereInside = map[string]string{
	"agent.*.reasoningEffort":          "the effort is chosen in the session",
	"agent.*.textVerbosity":            "models answer at their own length; say it in the agent's prompt",
	"agent.*.variant":                  "the effort is chosen in the session",
	"agent.*.options":                  "nothing is passed to models unseen",
	"mcp.*.oauth.callbackPort":         "a sign-in comes back to any free port of this machine",
	"mcp.*.oauth.redirectUri":          "a sign-in comes back to any free port of this machine",
	"provider.*.whitelist":             "list the models you want under models",
	"provider.*.blacklist":             "models are offered as the provider lists them",
	"provider.*.env":                   "write key: {env:NAME}",
	"provider.*.id":                    "the provider's name is its id",
	"provider.*.options.setCacheKey":   "prompts are always cached where the provider can",
	"provider.*.options.timeout":       "an answer may take as long as it comes; a silent one is repeated",
	"provider.*.options.chunkTimeout":  "an answer may take as long as it comes; a silent one is repeated",
	"provider.*.models.*.options":      "nothing is passed to models unseen; the effort is chosen in the session",
	"provider.*.models.*.variants":     "the effort is chosen in the session",
	"provider.*.models.*.headers":      "headers are the provider's",
	"provider.*.models.*.provider":     "make it a provider of its own, with its npm",
	"provider.*.models.*.interleaved":  "it is found out from the answers",
	"provider.*.models.*.tool_call":    "every model is given tools",
	"provider.*.models.*.temperature":  "it is sent only where an agent sets one",
	"provider.*.models.*.family":       "it is for display only",
	"provider.*.models.*.release_date": "it is for display only",
	"provider.*.models.*.status":       "it is for display only",
	"provider.*.models.*.experimental": "it is for display only",
	"provider.*.options.profile":       "set AWS_PROFILE",
	"skills.urls":                      "skills are read from folders; nothing is downloaded",
}

// tried are OpenCode's experimental switches, and why those that are not used here are not.
var tried = map[string]string{
	"batch_tool":            "",
	"openTelemetry":         "nothing is sent anywhere",
	"primary_tools":         "switch tools off for sub-agents with agent.NAME.tools",
	"continue_loop_on_deny": "a turn always goes on after a refusal that has words, and ends after one without",
	"mcp_timeout":           "it is mcp.NAME.timeout",
	"disable_paste_summary": "the editor's prompt shows what was pasted",
	"policies":              "permission and trust decide",
	"hook":                  "a plugin's event and tool.execute.after hooks do it",
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
		case m.key == "logLevel":
			m.key, m.value.text = "log_level", strings.ToLower(m.value.text)
		case m.key == "experimental":
			noteTried(m.value, note)
		case m.key == "provider":
			for _, p := range m.value.members {
				theirProvider(p.value)
			}
		}
		kept = append(kept, m)
	}
	n.members = joined(kept, "agent")
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

// joined makes one object of the members of a name, in their order: of two members one would hide the other.
func joined(members []member, name string) []member {
	var out []member
	first := -1
	for _, m := range members {
		switch {
		case m.key != name || m.value.kind != kindObject:
		case first < 0:
			first = len(out)
		default:
			out[first].value.members = append(out[first].value.members, m.value.members...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// noteTried notes the experimental switches that do nothing here.
func noteTried(n *node, note func(*node, string, string)) {
	for _, m := range n.members {
		why, known := tried[m.key]
		if !known {
			why = "Pillion has no such switch" + didYouMean(m.key, slices.Sorted(maps.Keys(tried)))
		}
		if why != "" {
			note(m.at, "experimental."+m.key, why)
		}
	}
}

// theirProvider puts what OpenCode says of a provider and its models where it stands here.
func theirProvider(p *node) {
	for i, m := range p.members {
		switch {
		case m.key == "api" && strings.Contains(m.value.text, "://"):
			if p.get("baseURL") == nil && (p.get("options") == nil || p.get("options").get("baseURL") == nil) {
				p.members[i].key = "baseURL"
			} else {
				p.members = slices.Delete(slices.Clone(p.members), i, i+1)
				theirProvider(p)
				return
			}
		case m.key == "options":
			theirOptions(p, m.value)
		case m.key == "models":
			for _, model := range m.value.members {
				theirModel(model.value)
			}
		}
	}
}

// theirOptions moves up what stands in a provider's options there and beside them here.
func theirOptions(p, options *node) {
	kept := options.members[:0:0]
	for _, m := range options.members {
		if (m.key == "region" || m.key == "apiVersion") && p.get(m.key) == nil {
			p.members = append(p.members, m)
			continue
		}
		if m.key == "resourceName" && m.value.kind == kindString && options.get("baseURL") == nil && p.get("baseURL") == nil { // Azure's
			m.key, m.value.text = "baseURL", "https://"+m.value.text+".openai.azure.com"
		}
		if m.key == "endpoint" && options.get("baseURL") == nil {
			m.key = "baseURL"
		}
		kept = append(kept, m)
	}
	options.members = kept
}

// theirModel puts a model's abilities and prices where they stand here.
func theirModel(n *node) {
	var out []member
	add := func(key string, at, value *node) {
		if n.get(key) == nil && value != nil {
			out = append(out, member{key, at, value})
		}
	}
	for _, m := range n.members {
		switch m.key {
		case "reasoning":
			add("thinking", m.at, m.value)
		case "attachment":
			if n.get("modalities") == nil {
				add("images", m.at, m.value)
			}
		case "cost":
			add("cost_input", m.at, m.value.get("input"))
			add("cost_output", m.at, m.value.get("output"))
		case "modalities":
			for _, e := range m.value.elements("input") {
				if key := map[string]string{"image": "images", "pdf": "pdf"}[e.text]; key != "" {
					add(key, e, &node{file: e.file, line: e.line, column: e.column, kind: kindBool, text: "true"})
				}
			}
		default:
			out = append(out, m)
		}
	}
	n.members = out
}

// elements are those of a list among an object's members.
func (n *node) elements(key string) []*node {
	if list := n.get(key); list != nil {
		return list.elems
	}
	return nil
}

// why says why a setting has no place here.
func why(path, key string, known []string) string {
	if text := elsewhereOf(path); text != "" {
		return text
	}
	return "Pillion has no such setting" + didYouMean(key, known)
}

// elsewhereOf looks a path up in elsewhereInside. Names may have dots in them: a model's often has.
func elsewhereOf(path string) string {
	for pattern, text := range elsewhereInside {
		if pathMatch(pattern, path) {
			return text
		}
	}
	return ""
}

// pathMatch matches a pattern whose * stand for names; a name may have dots in it.
func pathMatch(pattern, path string) bool {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		if i == len(parts)-1 && i > 0 {
			return len(path) > len(part) && strings.HasSuffix(path, part)
		}
		at := strings.Index(path, part)
		if i == 0 && at != 0 || at < 0 {
			return false
		}
		path = path[at+len(part):]
	}
	return path == ""
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
				note(m.at, join(path, m.key), why(join(path, m.key), m.key, slices.Sorted(maps.Keys(fields))))
				continue
			}
			if text := elsewhereOf(join(path, m.key)); text != "" { // read, and left at that
				note(m.at, join(path, m.key), text)
			}
			l.unknown(m.value, ft, join(path, m.key), note)
			kept = append(kept, m)
		}
		n.members = kept
	}
}
