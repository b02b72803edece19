package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
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
	"mcp.*.oauth.callbackPort":         "a sign-in comes back to any free port of this machine",
	"mcp.*.oauth.redirectUri":          "a sign-in comes back to any free port of this machine",
	"provider.*.whitelist":             "list the models you want under models",
	"provider.*.blacklist":             "models are offered as the provider lists them",
	"provider.*.env":                   "write key: {env:NAME}",
	"provider.*.id":                    "the provider's name is its id",
	"mcp.*.env":                        "it is environment",
	"provider.*.options.setCacheKey":   "prompts are always cached where the provider can",
	"provider.*.models.*.provider":     "make it a provider of its own, with its npm",
	"provider.*.models.*.interleaved":  "it is found out from the answers",
	"provider.*.models.*.tool_call":    "every model is given tools",
	"provider.*.models.*.temperature":  "it is sent only where an agent sets one",
	"provider.*.models.*.family":       "it is for display only",
	"provider.*.models.*.release_date": "it is for display only",
	"provider.*.models.*.status":       "it is for display only",
	"provider.*.models.*.experimental": "it is for display only",
	"skills.urls":                      "skills are read from folders; nothing is downloaded",
}

// ofTheirLibrary are options that mean something to the library OpenCode speaks with, and nothing to a provider: they
// are not sent.
var ofTheirLibrary = map[string]string{
	"setCacheKey":               "prompts are always cached where the provider can",
	"profile":                   "set AWS_PROFILE",
	"accessKeyId":               "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in with the AWS CLI",
	"secretAccessKey":           "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in with the AWS CLI",
	"sessionToken":              "set AWS_SESSION_TOKEN",
	"name":                      "the provider's name is its id",
	"compatibility":             "what the server takes is found out",
	"fetch":                     "requests are made by Pillion",
	"useCompletionUrls":         "azure is spoken to by Chat Completions",
	"useDeploymentBasedUrls":    "set apiVersion for deployments",
	"enterpriseUrl":             "sign-ins to Copilot are not used",
	"structuredOutputs":         "tools are described as the provider takes them",
	"supportsStructuredOutputs": "tools are described as the provider takes them",
	"strictJsonSchema":          "tools are described as the provider takes them",
	"strictSchemas":             "tools are described as the provider takes them",
	"toolStreaming":             "answers are always streamed",
	"sendReasoning":             "thinking is sent back where the provider wants it",
	"litellmProxy":              "what the server takes is found out",
	"maxRetries":                "what may succeed later is repeated",
	"apiVersion":                "it is the provider's apiVersion",
	"region":                    "it is the provider's region",
}

// theirLSP are OpenCode's names of language servers where ours are others.
var theirLSP = map[string]string{"rust": "rust-analyzer", "yaml-ls": "yaml", "sourcekit-lsp": "sourcekit", "php intelephense": "php", "intelephense": "php", "haskell-language-server": "haskell"}

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

// theirDir is OpenCode's folder of the user: below $XDG_CONFIG_HOME where that is set, as there.
func (s Sources) theirDir() string {
	if s.Env != nil {
		if dir := s.Env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "opencode")
		}
	}
	return filepath.Join(s.Home, ".config", "opencode")
}

// theirOwn are OpenCode's files of the person.
func (s Sources) theirOwn() []string {
	if s.Home == "" {
		return nil
	}
	dir := s.theirDir()
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
		case m.key == "lsp":
			theirServers(m.value)
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
			optionsOf(a.value)
		}
	}
	l.unknown(n, reflect.TypeFor[Config](), nil, note)
	return n
}

// theirServers gives language servers the names they have here. One that is only switched off, and that there is none
// of here, needs no word.
func theirServers(n *node) {
	kept := n.members[:0:0]
	for _, m := range n.members {
		if name := theirLSP[m.key]; name != "" && n.get(name) == nil {
			m.key = name
		}
		if off := m.value.get("disabled"); (m.key == "razor" || theirLSP[m.key] != "") && off != nil && off.text == "true" {
			continue
		}
		kept = append(kept, m)
	}
	n.members = kept
}

// optionsOf puts what stands among an agent's settings and is for its model into its options.
func optionsOf(agent *node) {
	options := agent.get("options")
	kept := agent.members[:0:0]
	for _, m := range agent.members {
		if m.key == "temperature" || m.key == "top_p" || !slices.Contains(provider.OptionNames, m.key) {
			kept = append(kept, m)
			continue
		}
		if options == nil {
			options = &node{file: m.at.file, line: m.at.line, column: m.at.column, kind: kindObject}
			kept = append(kept, member{"options", m.at, options})
		}
		if options.kind == kindObject && options.get(m.key) == nil {
			options.members = append(options.members, m)
		}
	}
	agent.members = kept
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
			add("cost_cache_read", m.at, m.value.get("cache_read"))
			add("cost_cache_write", m.at, m.value.get("cache_write"))
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
func why(path []string, known []string) string {
	if text := elsewhereOf(path); text != "" {
		return text
	}
	return "Pillion has no such setting" + didYouMean(path[len(path)-1], known)
}

// elsewhereOf looks a path up in elsewhereInside, and an option in ofTheirLibrary.
func elsewhereOf(path []string) string {
	for pattern, text := range elsewhereInside {
		if pathMatch(pattern, path) {
			return text
		}
	}
	if n := len(path); n >= 4 && (path[n-2] == "options" || path[n-3] == "variants") {
		return ofTheirLibrary[path[n-1]]
	}
	return ""
}

// pathMatch matches a pattern whose * stand for names.
func pathMatch(pattern string, path []string) bool {
	parts := strings.Split(pattern, ".")
	if len(parts) != len(path) {
		return false
	}
	for i, part := range parts {
		if part != "*" && part != path[i] {
			return false
		}
	}
	return true
}

// unknown takes settings out that Pillion has no place for, however deep, and notes them.
func (l *loader) unknown(n *node, t reflect.Type, path []string, note func(*node, string, string)) {
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
	kept := n.members[:0:0]
	at := func(m member) []string { return append(path[:len(path):len(path)], m.key) }
	switch t.Kind() {
	case reflect.Map:
		for _, m := range n.members {
			if text := elsewhereOf(at(m)); text != "" && t.Elem() == reflect.TypeFor[Any]() {
				note(m.at, strings.Join(at(m), "."), text)
				continue
			}
			l.unknown(m.value, t.Elem(), at(m), note)
			kept = append(kept, m)
		}
		n.members = kept
	case reflect.Struct:
		fields := fieldsOf(t)
		_, rest := fields[restName]
		for _, m := range n.members {
			f, ok := fields[m.key]
			text := elsewhereOf(at(m))
			if !ok && rest && text == "" {
				kept = append(kept, m)
				continue
			}
			if !ok {
				note(m.at, strings.Join(at(m), "."), why(at(m), slices.Sorted(maps.Keys(fields))))
				continue
			}
			if text != "" { // read, and left at that
				note(m.at, strings.Join(at(m), "."), text)
			}
			l.unknown(m.value, f.Type, at(m), note)
			kept = append(kept, m)
		}
		n.members = kept
	}
}
