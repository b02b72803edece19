package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pillion-dev/pillion/tools/frontmatter"
	"github.com/pillion-dev/pillion/tools/permission"
)

// markdownKind describes the files of a folder; convert makes a section of the configuration of one, nil when that
// is not possible.
type markdownKind struct {
	section string   // "agent" or "command"
	folders []string // names of the folder
	convert func(m *markdown) *node
}

// markdownKinds are the folders of Markdown files. Both the singular and the plural are read, as OpenCode does.
var markdownKinds = []markdownKind{
	{"agent", []string{"agent", "agents", "mode", "modes"}, (*markdown).agent}, // modes are what OpenCode once called primary agents
	{"command", []string{"command", "commands"}, (*markdown).command},
}

// Limits: the folder may be in the home folder by mistake, or in a repository from elsewhere.
const (
	maxMarkdown      = 1 << 20 // bytes of one file
	maxMarkdownFiles = 500     // of one folder
)

// markdown is one file of an agent or a command, with its front matter parsed.
type markdown struct {
	path   string
	name   string // its path below the folder, without .md
	claude bool   // written for Claude Code or Cursor, which have some other keys
	// primary: it can lead a session, unless the file says otherwise.
	primary bool
	doc     frontmatter.Doc
	l       *loader
}

// markdownIn reads the agents and commands below a folder such as .pillion, each as a layer of its own, so that
// positions, origins and trust work as for every other file. With within set, files that lead out of it by a link
// are left out.
func (l *loader) markdownIn(base, within string) (out []*node) {
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		return nil
	}
	claude := slices.Contains([]string{".claude", ".cursor"}, filepath.Base(base))
	theirs := claude || slices.Contains([]string{".opencode", "opencode"}, filepath.Base(base))
	for _, k := range markdownKinds {
		for _, folder := range k.folders {
			dir := filepath.Join(base, folder)
			for _, path := range markdownFiles(dir) {
				m := l.readMarkdown(path, dir, within)
				if m == nil {
					continue
				}
				m.claude, m.primary = claude, strings.HasPrefix(folder, "mode")
				value := k.convert(m)
				if value == nil {
					continue
				}
				// All synthetic nodes point to the first line: the name of the file is what sets the name of the
				// section.
				at := &node{file: path, line: 1, column: 1, kind: kindObject}
				key := &node{file: path, line: 1, column: 1, kind: kindString, text: m.name}
				section := *at
				section.members = []member{{m.name, key, value}}
				at.members = []member{{k.section, key, &section}}
				if theirs { // unknown keys in files of other programs are not mistakes
					l.unknown(at, reflect.TypeFor[Config](), nil, func(at *node, setting, why string) {
						l.unsupported = append(l.unsupported, Unsupported{File: at.file, Line: at.line, Column: at.column, Setting: setting, Why: why})
					})
				}
				out = append(out, at)
			}
		}
	}
	return out
}

// markdownFiles are the .md files below a folder, sorted, so that the same one wins on every machine. README.md is
// documentation of the folder.
func markdownFiles(dir string) (out []string) {
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		// Entries count as well as files: a large tree without Markdown would otherwise be walked to its end at
		// every start.
		if seen++; seen > 4*maxMarkdownFiles || len(out) == maxMarkdownFiles {
			return filepath.SkipAll
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(d.Name(), ".md") && !strings.EqualFold(d.Name(), "README.md") {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// readMarkdown reads one file; nil when it cannot be used, which is reported. A repository could link an agent's
// file to a private one of the person, whose text would then be sent to a model as its prompt: hence the
// comparison of the resolved paths.
func (l *loader) readMarkdown(path, dir, within string) *markdown {
	bad := func(line int, format string, a ...any) *markdown {
		l.problems = append(l.problems, Problem{File: path, Line: line, Column: 1, Message: fmt.Sprintf(format, a...), Fatal: true})
		return nil
	}
	if within != "" {
		real, err := filepath.EvalSymlinks(path)
		top, err2 := filepath.EvalSymlinks(within)
		if err != nil || err2 != nil {
			return bad(1, "cannot be read")
		}
		if rel, err := filepath.Rel(top, real); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return bad(1, "is a link out of the project, to %s; it is not read", real)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return bad(1, "cannot be read: %s", cause(err))
	}
	if !info.Mode().IsRegular() || info.Size() > maxMarkdown {
		return bad(1, "is not a regular file of at most %d bytes", maxMarkdown)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return bad(1, "cannot be read: %s", cause(err))
	}
	doc, err := frontmatter.Parse(src)
	if err != nil {
		line, message := frontmatter.Place(err)
		return bad(line, "%s", message)
	}
	// Files in folders below keep their path as the name, with slashes on every system: review/go.
	name, _ := filepath.Rel(dir, path)
	return &markdown{path: path, name: strings.TrimSuffix(filepath.ToSlash(name), ".md"), doc: doc, l: l}
}

// object makes a section of the front matter: keep returns the name and value of a key here, or "" to leave it
// out. A file without front matter yields an empty section.
func (m *markdown) object(keep func(key string, value *yaml.Node) (string, *node)) *node {
	out := &node{file: m.path, line: 1, column: 1, kind: kindObject}
	if m.doc.Head == nil {
		return out
	}
	// The content of a YAML mapping alternates: key, value, key, value.
	for i := 0; i+1 < len(m.doc.Head.Content); i += 2 {
		k, v := m.doc.Head.Content[i], m.doc.Head.Content[i+1]
		if name, value := keep(k.Value, v); name != "" {
			at := m.node(k)
			at.kind, at.text = kindString, name
			out.members = append(out.members, member{name, at, value})
		}
	}
	return out
}

// body adds the text below the front matter. References such as {env:NAME} in it are not replaced (raw): it is
// prose, and may explain them.
func (m *markdown) body(out *node, key string) {
	if m.doc.Body == "" {
		return
	}
	n := &node{file: m.path, line: m.doc.BodyLine, column: 1, kind: kindString, text: m.doc.Body, raw: true}
	out.members = append(out.members, member{key, n, n})
}

// SmallModel stands for the configured small model, or the small one of the session's provider, as the model of an agent. It has no slash, so
// it cannot be the name of a real model (provider/model).
const SmallModel = "small"

// agent reads an agent, in the keys of Pillion, OpenCode and Claude Code. The text below the front matter is its prompt. It changes m.name
// where the file names the agent itself.
func (m *markdown) agent() *node {
	mode, reads := false, false
	out := m.object(func(key string, v *yaml.Node) (string, *node) {
		switch key {
		case "maxTurns":
			return "steps", m.node(v)
		case "permissionMode", "readonly": // Claude Code's and Cursor's words for an agent that changes nothing
			if m.claude && (v.Value == "plan" || v.Value == "true") {
				reads = true
				return "", nil
			}
		case "name":
			if m.claude && v.Value != "" {
				m.name = v.Value
			}
			return "", nil
		case "maxSteps":
			return "steps", m.node(v)
		case "tools", "disallowedTools":
			if v.Kind == yaml.MappingNode {
				return "tools", m.node(v)
			}
			return "tools", m.toolList(v, key == "tools")
		case "model":
			if m.claude && v.Value == "haiku" { // the small one, whichever vendor's is used here
				n := m.node(v)
				n.text = SmallModel
				return key, n
			}
			if m.claude && !strings.Contains(v.Value, "/") {
				return "", nil // "sonnet", "inherit": names of another program's models
			}
		case "mode":
			mode = true
		}
		if m.claude && !slices.Contains([]string{"description", "model", "color", "mode", "permission", "temperature"}, key) {
			m.unused("agent", key, v)
			return "", nil
		}
		return key, m.node(v)
	})
	// Agents of Claude Code are subagents without saying so; agents in a folder of modes lead a session.
	if (m.claude || m.primary) && !mode {
		n := &node{file: m.path, line: 1, column: 1, kind: kindString, text: "subagent"}
		if m.primary {
			n.text = "primary"
		}
		out.members = append(out.members, member{"mode", n, n})
	}
	if reads {
		at := &node{file: m.path, line: 1, column: 1, kind: kindObject}
		rules := at.object()
		addRule(rules, at, "edit", "*", permission.Deny)
		addRule(rules, at, "bash", "*", permission.Ask)
		out.members = append(out.members, member{"permission", at, rules})
	}
	moveAgentOptions(out)
	m.body(out, "prompt")
	return out
}

// unused notes a key of another program's file that has no effect.
func (m *markdown) unused(section, key string, v *yaml.Node) {
	// Without these an agent works the same.
	if slices.Contains([]string{"name", "version", "author", "is_background", "background", "license", "metadata"}, key) || v.Value == "default" {
		return
	}
	m.l.note(m.node(v), section+"."+m.name+"."+key, "Pillion has no such setting for it")
}

// claudeTools maps Claude Code's tools, in lower case, to Pillion's.
var claudeTools = map[string][]string{
	"read": {"read"}, "write": {"write", "apply_patch"}, "edit": {"edit", "apply_patch"}, "multiedit": {"multiedit"}, "glob": {"glob"}, "grep": {"grep"},
	"ls": {"list"}, "bash": {"bash"}, "bashoutput": {"bash_output"}, "killshell": {"bash_kill"}, "webfetch": {"webfetch"}, "websearch": {"websearch"},
	"todowrite": {"todowrite", "todoread"}, "task": {"task"}, "agent": {"task"}, "skill": {"skill"}, "askuserquestion": {"question"}, "lsp": {"lsp"},
}

// switchableTools are the tools that a list of tools turns off when it does not name them. A built-in tool that is missing here stays on
// for an agent whose list leaves it out.
var switchableTools = []string{"read", "write", "edit", "multiedit", "apply_patch", "list", "glob", "grep", "bash", "bash_output", "bash_input", "bash_kill",
	"lsp", "symbol_find", "symbol_read", "symbol_references", "symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_rename", "symbol_delete",
	"webfetch", "websearch", "codesearch", "task", "skill", "question", "todowrite", "todoread", "batch"}

// toolList makes switches of a list of tools: tools that are not in it are off (for a list of forbidden tools,
// those that are). It never turns a tool on: a switch that is true would count more than a person's "*": false.
// The list is a YAML sequence or one string with commas.
func (m *markdown) toolList(v *yaml.Node, allowed bool) *node {
	var names []string
	if v.Kind == yaml.SequenceNode {
		for _, e := range v.Content {
			names = append(names, e.Value)
		}
	} else {
		names = strings.Split(v.Value, ",")
	}
	in := map[string]bool{}
	for _, n := range names {
		// What a tool is limited to is no matter of switches, which know whole tools only.
		n, _, _ = strings.Cut(strings.TrimSpace(n), "(") // Bash(git:*)
		switch n = strings.ToLower(strings.TrimSpace(n)); {
		case n == "":
		case n == "*":
			return &node{file: m.path, line: v.Line + m.doc.Line, column: v.Column, kind: kindObject}
		case claudeTools[n] != nil:
			for _, t := range claudeTools[n] {
				in[t] = true
			}
		default:
			in[n] = true
		}
	}
	// Tools that only continue or refine another one follow it: an agent that may run bash must be able to read and
	// stop what it started.
	for from, more := range map[string][]string{"bash": {"bash_output", "bash_input", "bash_kill"}, "read": {"symbol_read"}, "grep": {"symbol_find", "symbol_references"},
		"edit": {"symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_rename", "symbol_delete", "multiedit"}} {
		for _, t := range more {
			in[t] = in[t] || in[from]
		}
	}
	out := &node{file: m.path, line: v.Line + m.doc.Line, column: v.Column, kind: kindObject}
	for _, t := range switchableTools {
		if in[t] != allowed {
			off := &node{file: m.path, line: out.line, column: out.column, kind: kindBool, text: "false"}
			out.members = append(out.members, member{t, off, off})
		}
	}
	return out
}

// command reads a slash command. One without a text would send an empty prompt, so it is a problem of the file.
func (m *markdown) command() *node {
	if m.doc.Body == "" {
		m.l.problems = append(m.l.problems, Problem{File: m.path, Line: 1, Column: 1, Message: "the command has no prompt; write it below the front matter"})
		return nil
	}
	out := m.object(func(key string, v *yaml.Node) (string, *node) {
		switch {
		case key == "argument-hint":
			return "hint", text(m.node(v), v)
		case key == "model" && m.claude && !strings.Contains(v.Value, "/"), key == "name":
			return "", nil
		case m.claude && key == "allowed-tools":
			m.l.note(m.node(v), "command."+m.name+"."+key, "each call needs the approval that it always needs")
			return "", nil
		case m.claude && key != "description" && key != "model":
			m.unused("command", key, v)
			return "", nil
		}
		return key, m.node(v)
	})
	m.body(out, "template")
	return out
}

// text turns n, the node of v, into a string where YAML sees a list: an argument hint such as [file] is written without quotes, and means its
// brackets. Other nodes are returned as they are.
func text(n *node, v *yaml.Node) *node {
	if v.Kind == yaml.SequenceNode {
		var parts []string
		for _, e := range v.Content {
			parts = append(parts, e.Value)
		}
		n.kind, n.text, n.elems = kindString, "["+strings.Join(parts, ", ")+"]", nil
	}
	return n
}

// node converts a YAML value, with its position: lines in doc count from the front matter, so doc.Line is added.
func (m *markdown) node(v *yaml.Node) *node {
	n := &node{file: m.path, line: v.Line + m.doc.Line, column: v.Column}
	switch v.Kind {
	case yaml.MappingNode:
		n.kind = kindObject
		for i := 0; i+1 < len(v.Content); i += 2 {
			at := m.node(v.Content[i])
			at.kind, at.text = kindString, v.Content[i].Value
			n.members = append(n.members, member{at.text, at, m.node(v.Content[i+1])})
		}
	case yaml.SequenceNode:
		n.kind = kindArray
		for _, e := range v.Content {
			n.elems = append(n.elems, m.node(e))
		}
	default:
		n.kind, n.text = kindString, v.Value
		// A quoted or block scalar is a string whatever it looks like; a plain one gets the type that YAML gives it.
		var value any
		if v.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 || v.Decode(&value) != nil {
			return n
		}
		switch x := value.(type) {
		case nil:
			n.kind, n.text = kindNull, "null"
		case bool:
			n.kind, n.text = kindBool, strconv.FormatBool(x)
		case int:
			n.kind, n.text = kindNumber, strconv.Itoa(x)
		case float64:
			// JSON has neither NaN nor infinities (RFC 8259, section 6): such a value stays a string, and check
			// reports it.
			if x == x && x < 1e300 && x > -1e300 {
				n.kind, n.text = kindNumber, strconv.FormatFloat(x, 'g', -1, 64)
			}
		}
	}
	return n
}

// personalFolders are the person's own folders of agents and commands; the last one wins.
func (s Sources) personalFolders() (out []string) {
	if s.Home != "" {
		out = append(out, filepath.Join(s.Home, ".claude"), s.OpenCodeDir(), filepath.Join(s.Home, ".opencode"))
	}
	if s.UserDir != "" {
		out = append(out, s.UserDir)
	}
	return out
}

// markdownStamp calls add for every file that markdownIn would read; Stamp misses changes of a file that it leaves
// out.
func markdownStamp(add func(path string), base string) {
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		return
	}
	for _, k := range markdownKinds {
		for _, folder := range k.folders {
			for _, path := range markdownFiles(filepath.Join(base, folder)) {
				add(path)
			}
		}
	}
}
