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

// Unsupported is a setting in a file of another program (OpenCode, Claude Code, Codex and others) that Pillion does not use. Line and
// Column count from 1, Column in bytes.
type Unsupported struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Setting string `json:"setting"` // dotted path
	Why     string `json:"why"`
}

// String is one line for a terminal.
func (u Unsupported) String() string {
	return fmt.Sprintf("%s:%d:%d: %s is not used: %s", printable(u.File), u.Line, u.Column, printable(u.Setting), u.Why)
}

// Unsupported lists the settings in other programs' files that Pillion does not use, in the order of reading.
func (c *Config) Unsupported() []Unsupported { return c.unsupported }

// openCodeFiles are OpenCode's configuration files, in the order of reading in a folder; ours come after them and
// win.
var openCodeFiles = []string{"opencode.json", "opencode.jsonc", filepath.Join(".opencode", "opencode.json"), filepath.Join(".opencode", "opencode.jsonc")}

// unusedSettings are top-level settings of OpenCode that Pillion does not use, with the reason that is shown to
// the person. A setting that is absent here and in Config is reported as unknown, which looks like a spelling
// mistake of theirs.
var unusedSettings = map[string]string{
	"theme":       "the editor's theme is followed",
	"keybinds":    "keys are the editor's settings",
	"tui":         "Pillion works in the editor; the terminal uses its own colours",
	"layout":      "the editor lays the panel out",
	"share":       "sessions are never sent anywhere",
	"autoshare":   "sessions are never sent anywhere",
	"autoupdate":  "update Pillion with pillion upgrade; update_check in your own settings says when there is a newer release",
	"username":    "no user name is shown",
	"snapshot":    "checkpoints are always kept; they need no git",
	"server":      "nothing listens on the network",
	"watcher":     "ignore files decide which files are watched",
	"tool_output": "long outputs are kept in a file whatever their length",
	"references":  "additional folders are the editor's or --add-dir",
	"attachment":  "images are sent as they are; providers scale them",
	"enterprise":  "sessions are never sent anywhere",
	"mcpServers":  "write each server under mcp: command is a list of the program and its arguments, env is environment, type is local or remote",
	// An empty reason removes the setting without a word.
	"$schema": "",
}

// unusedNested are such settings inside sections, by dotted path; * stands for any one name.
var unusedNested = map[string]string{
	"mcp.*.oauth.callbackPort":         "a sign-in returns to any free port of this machine",
	"mcp.*.oauth.redirectUri":          "a sign-in returns to any free port of this machine",
	"provider.*.whitelist":             "list the models you want under models",
	"provider.*.blacklist":             "models are offered as the provider lists them",
	"provider.*.env":                   "write key: {env:NAME}",
	"provider.*.id":                    "the provider's name is its id",
	"mcp.*.env":                        "write environment instead",
	"provider.*.options.setCacheKey":   "prompts are always cached if the provider supports it",
	"provider.*.models.*.provider":     "define a separate provider with its npm",
	"provider.*.models.*.interleaved":  "it is detected from the answers",
	"provider.*.models.*.tool_call":    "every model gets tools",
	"provider.*.models.*.temperature":  "it is sent only where an agent sets one",
	"provider.*.models.*.family":       "it is for display only",
	"provider.*.models.*.release_date": "it is for display only",
	"provider.*.models.*.status":       "it is for display only",
	"provider.*.models.*.experimental": "it is for display only",
	"skills.urls":                      "skills are read from folders; nothing is downloaded",
}

// libraryOptions are options of the library that OpenCode calls models with. No provider knows them: a request
// that contains one may be refused as invalid, so they are not sent.
var libraryOptions = map[string]string{
	"setCacheKey":               "prompts are always cached if the provider supports it",
	"profile":                   "set AWS_PROFILE",
	"accessKeyId":               "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in with the AWS CLI",
	"secretAccessKey":           "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in with the AWS CLI",
	"sessionToken":              "set AWS_SESSION_TOKEN",
	"name":                      "the provider's name is its id",
	"compatibility":             "what the server accepts is detected",
	"fetch":                     "requests are made by Pillion",
	"useCompletionUrls":         "azure is used by Chat Completions",
	"useDeploymentBasedUrls":    "set apiVersion for deployments",
	"enterpriseUrl":             "sign-ins to Copilot are not used",
	"structuredOutputs":         "tools are described in the form that the provider accepts",
	"supportsStructuredOutputs": "tools are described in the form that the provider accepts",
	"strictJsonSchema":          "tools are described in the form that the provider accepts",
	"strictSchemas":             "tools are described in the form that the provider accepts",
	"toolStreaming":             "answers are always streamed",
	"sendReasoning":             "reasoning is sent back where the provider requires it",
	"litellmProxy":              "what the server accepts is detected",
	"maxRetries":                "requests that may succeed later are retried",
	"apiVersion":                "set the provider's apiVersion",
	"region":                    "set the provider's region",
}

// openCodeServers maps OpenCode's ids of language servers to ours, where they differ. Without an entry a server
// that a person has turned off in OpenCode runs here.
var openCodeServers = map[string]string{"rust": "rust-analyzer", "yaml-ls": "yaml", "sourcekit-lsp": "sourcekit", "php intelephense": "php", "intelephense": "php", "haskell-language-server": "haskell"}

// experimentalSwitches are the settings below OpenCode's experimental, with the reason why they have no effect; ""
// marks those that work here.
var experimentalSwitches = map[string]string{
	"batch_tool":            "",
	"openTelemetry":         "nothing is sent anywhere",
	"primary_tools":         "switch tools off for sub-agents with agent.NAME.tools",
	"continue_loop_on_deny": "a turn always continues after a rejection with a comment, and ends after one without",
	"mcp_timeout":           "set mcp.NAME.timeout",
	"disable_paste_summary": "the editor's prompt shows what was pasted",
	"policies":              "permission and trust decide",
	"hook":                  "a plugin's event and tool.execute.after hooks do it",
}

// OpenCodeDir is OpenCode's folder of the user. OpenCode too puts it below $XDG_CONFIG_HOME, if that is set; the
// XDG Base Directory Specification says to ignore a relative path there.
func (s Sources) OpenCodeDir() string {
	if s.Env != nil {
		if dir := s.Env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "opencode")
		}
	}
	return filepath.Join(s.Home, ".config", "opencode")
}

// personalOpenCodeFiles are OpenCode's files of the person; the last one wins.
func (s Sources) personalOpenCodeFiles() []string {
	if s.Home == "" {
		return nil
	}
	dir := s.OpenCodeDir()
	return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
}

// openCodeFile reads one of OpenCode's files as a layer: keys with another name here are renamed, and what is not
// used is removed and noted. After it, the layer has our keys only, so merging, trust and checking need not know
// where it came from. nil when there is no such file or it cannot be used.
func (l *loader) openCodeFile(path string) *node {
	src, ok := l.read(path, false)
	if !ok {
		return nil
	}
	n := l.parse(path, src)
	if n != nil {
		l.openCode(n)
	}
	return n
}

// openCode converts a tree of OpenCode's settings to ours.
func (l *loader) openCode(n *node) {
	note := func(at *node, setting, why string) {
		l.unsupported = append(l.unsupported, Unsupported{File: at.file, Line: at.line, Column: at.column, Setting: setting, Why: why})
	}
	// Without capacity, append allocates: the loop below reads the old array.
	kept := n.members[:0:0]
	for _, m := range n.members {
		why, known := unusedSettings[m.key]
		switch {
		case known:
			if why != "" {
				note(m.at, m.key, why)
			}
			continue
		case m.key == "mode" || m.key == "modes":
			m.key = "agent"
		case m.key == "autocompact":
			note(m.at, m.key, "set compaction.auto instead")
			continue
		// OpenCode writes DEBUG, INFO and so on; log_level takes lower case.
		case m.key == "logLevel":
			m.key, m.value.text = "log_level", strings.ToLower(m.value.text)
		case m.key == "experimental":
			noteExperimental(m.value, note)
		case m.key == "provider":
			for _, p := range m.value.members {
				convertProvider(p.value)
			}
		case m.key == "lsp":
			renameServers(m.value)
		case m.key == "mcp":
			for _, s := range m.value.members {
				convertServer(s.value)
			}
		}
		kept = append(kept, m)
	}
	// mode and agent may both be in the file, and both are agents by their new name.
	n.members = joinMembers(kept, "agent")
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
			moveAgentOptions(a.value)
		}
	}
	// Only after the renames: an old name of a known setting is not an unknown one.
	l.unknown(n, reflect.TypeFor[Config](), nil, note)
}

// convertServer repairs an MCP server that is written as other programs want it: its program as a text beside its args, its variables as env.
// Without its args the program would do something else.
func convertServer(s *node) {
	kept := s.members[:0:0]
	for _, m := range s.members {
		switch {
		case m.key == "command" && m.value.kind == kindString:
			m.value = commandWithArgs(s, m.value)
		case m.key == "args" && s.get("command") != nil && s.get("command").kind == kindString:
			continue
		case m.key == "env" && s.get("environment") == nil:
			m.key = "environment"
		}
		kept = append(kept, m)
	}
	s.members = kept
}

// renameServers renames language servers. A server that is only turned off, and that does not exist here, needs no
// note.
func renameServers(n *node) {
	kept := n.members[:0:0]
	for _, m := range n.members {
		// A file that has both names keeps the entry under ours.
		if name := openCodeServers[m.key]; name != "" && n.get(name) == nil {
			m.key = name
		}
		// razor is a server of OpenCode that Pillion does not have.
		if off := m.value.get("disabled"); (m.key == "razor" || openCodeServers[m.key] != "") && off != nil && off.text == "true" {
			continue
		}
		kept = append(kept, m)
	}
	n.members = kept
}

// moveAgentOptions moves model options among an agent's settings into its options, where OpenCode accepts them
// too. temperature and top_p stay: they are settings of an agent here as well.
func moveAgentOptions(agent *node) {
	options := agent.get("options")
	kept := agent.members[:0:0]
	for _, m := range agent.members {
		if m.key == "temperature" || m.key == "top_p" || !slices.Contains(provider.OptionNames, m.key) {
			kept = append(kept, m)
			continue
		}
		if options == nil {
			// It takes the position of the first option, so that a mistake in it is reported at a line of the file.
			options = m.at.object()
			kept = append(kept, member{"options", m.at, options})
		}
		// What is under options was written for the model explicitly, so it wins.
		if options.kind == kindObject && options.get(m.key) == nil {
			options.members = append(options.members, m)
		}
	}
	agent.members = kept
}

// joinMembers merges the members of one name into one object. get returns the last of several, so without it the
// agents under "mode" would hide those under "agent", or the reverse. A member that is not an object stays for
// check to report.
func joinMembers(members []member, name string) []member {
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

// noteExperimental notes the experimental settings that have no effect. They stay in the tree: the section is passed on as it is.
func noteExperimental(n *node, note func(*node, string, string)) {
	for _, m := range n.members {
		why, known := experimentalSwitches[m.key]
		if !known {
			why = "Pillion has no such switch" + didYouMean(m.key, slices.Sorted(maps.Keys(experimentalSwitches)))
		}
		if why != "" {
			note(m.at, "experimental."+m.key, why)
		}
	}
}

// convertProvider moves the settings of a provider and its models to our places. "api" is an address in OpenCode
// and the wire format here; only an address contains "://".
func convertProvider(p *node) {
	for i, m := range p.members {
		switch {
		case m.key == "api" && strings.Contains(m.value.text, "://"):
			if p.get("baseURL") == nil && (p.get("options") == nil || p.get("options").get("baseURL") == nil) {
				p.members[i].key = "baseURL"
			} else {
				// An address under baseURL wins; this one would be a second one of the same name. The loop starts
				// again, because its slice has changed.
				p.members = slices.Delete(slices.Clone(p.members), i, i+1)
				convertProvider(p)
				return
			}
		case m.key == "options":
			convertOptions(p, m.value)
		case m.key == "models":
			for _, model := range m.value.members {
				convertModel(model.value)
			}
		}
	}
}

// convertOptions moves settings that OpenCode has among a provider's options and Pillion beside them. One that the
// file already has in our place stays as it is.
func convertOptions(p, options *node) {
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

// convertModel moves a model's abilities and prices to our places. A key that the file has in our form wins over
// one that is derived here.
func convertModel(n *node) {
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
			// modalities says the same more precisely: attachment alone does not tell images from PDF files.
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

// elements are the elements of the list under key; nil without one.
func (n *node) elements(key string) []*node {
	if list := n.get(key); list != nil {
		return list.elems
	}
	return nil
}

// why is the reason that a setting is not used: the known one, else that there is no such setting. known are the names at its place, for the
// suggestion.
func why(path []string, known []string) string {
	if text := whyUnused(path); text != "" {
		return text
	}
	return "Pillion has no such setting" + didYouMean(path[len(path)-1], known)
}

// whyUnused looks a path up in unusedNested, and an option in libraryOptions; "" when nothing is known of it.
func whyUnused(path []string) string {
	for pattern, text := range unusedNested {
		if pathMatch(pattern, path) {
			return text
		}
	}
	// provider.ID.options.NAME, agent.NAME.options.NAME, and the same below models and variants: four names at
	// least.
	if n := len(path); n >= 4 && (path[n-2] == "options" || path[n-3] == "variants") {
		return libraryOptions[path[n-1]]
	}
	return ""
}

// pathMatch reports whether a dotted pattern, in which * stands for one name, matches a whole path.
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

// unknown removes settings that Pillion does not have, at any depth, and notes them. check would report them as
// mistakes, but in a file of another program they are right. t is the Go type that will hold n, path its place,
// which is not changed.
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
	// Values of any shape, and those with a grammar of their own, are left to check.
	case slices.Contains([]reflect.Type{reflect.TypeFor[Any](), reflect.TypeFor[Permission](), reflect.TypeFor[Plugin]()}, t):
		return
	}
	if n.kind != kindObject {
		return
	}
	kept := n.members[:0:0]
	// The full slice expression makes append copy: without it siblings would share one array, and a path would
	// change after it was noted.
	at := func(m member) []string { return append(path[:len(path):len(path)], m.key) }
	switch t.Kind() {
	case reflect.Map:
		for _, m := range n.members {
			if text := whyUnused(at(m)); text != "" && t.Elem() == reflect.TypeFor[Any]() {
				note(m.at, strings.Join(at(m), "."), text)
				continue
			}
			l.unknown(m.value, t.Elem(), at(m), note)
			kept = append(kept, m)
		}
		n.members = kept
	case reflect.Struct:
		fields := fieldsOf(t)
		// A struct with a rest field accepts keys that it does not name: they are options for the model.
		_, rest := fields[restName]
		for _, m := range n.members {
			f, ok := fields[m.key]
			text := whyUnused(at(m))
			if !ok && rest && text == "" {
				kept = append(kept, m)
				continue
			}
			if !ok {
				note(m.at, strings.Join(at(m), "."), why(at(m), slices.Sorted(maps.Keys(fields))))
				continue
			}
			if text != "" { // it is read, but has no effect
				note(m.at, strings.Join(at(m), "."), text)
			}
			l.unknown(m.value, f.Type, at(m), note)
			kept = append(kept, m)
		}
		n.members = kept
	}
}
