package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Sources say where to look. Nothing is read at a place that is empty.
type Sources struct {
	Cwd      string                   // session directory, absolute
	Root     string                   // worktree root: project files are read from here down to Cwd
	UserDir  string                   // ~/.config/pillion
	Editor   []byte                   // the editor's settings, JSON
	Env      func(name string) string // the environment
	MaxBytes int64                    // a file larger than this is refused; 0: 4 MiB
}

// names of a configuration file, in the order they are read within one folder.
var names = []string{"pillion.json", "pillion.jsonc", filepath.Join(".pillion", "pillion.json"), filepath.Join(".pillion", "pillion.jsonc")}

// Load reads and merges every layer. It always returns a usable configuration: what is wrong is left out and
// reported. A file that is not JSON at all is left out as a whole.
func Load(s Sources) (*Config, []Problem) {
	l := loader{Sources: s, origins: map[string]string{}}
	if l.Env == nil {
		l.Env = func(string) string { return "" }
	}
	if l.MaxBytes == 0 {
		l.MaxBytes = 4 << 20
	}
	for _, dir := range between(s.Root, s.Cwd) {
		for _, name := range names {
			l.file(filepath.Join(dir, name), false)
		}
	}
	if s.UserDir != "" {
		l.file(filepath.Join(s.UserDir, "pillion.json"), false)
		l.file(filepath.Join(s.UserDir, "pillion.jsonc"), false)
	}
	if len(s.Editor) > 0 {
		l.text("editor settings", s.Editor)
	}
	if p := l.Env("PILLION_CONFIG"); p != "" {
		l.file(p, true)
	}
	if t := l.Env("PILLION_CONFIG_CONTENT"); t != "" {
		l.text("PILLION_CONFIG_CONTENT", []byte(t))
	}
	if m := l.Env("PILLION_MODEL"); m != "" {
		b, _ := json.Marshal(map[string]string{"model": m})
		l.text("PILLION_MODEL", b)
	}
	return l.finish()
}

type loader struct {
	Sources
	tree     *node
	rules    permission.Ruleset
	agents   map[string]permission.Ruleset
	problems []Problem
	origins  map[string]string
}

func (l *loader) file(path string, must bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		if must || !(errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "not a directory")) {
			l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: "cannot be read: " + cause(err)})
		}
		return
	case !info.Mode().IsRegular():
		l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: "is not a regular file"})
		return
	case info.Size() > l.MaxBytes:
		l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: fmt.Sprintf("is larger than %d bytes", l.MaxBytes)})
		return
	}
	src, err := os.ReadFile(path)
	if err != nil {
		l.problems = append(l.problems, Problem{File: path, Line: 1, Column: 1, Fatal: true, Message: "cannot be read: " + cause(err)})
		return
	}
	l.text(path, src)
}

func (l *loader) text(name string, src []byte) {
	n, bad := parse(name, src)
	if bad != nil {
		l.problems = append(l.problems, *bad)
		return
	}
	if n.kind != kindObject {
		l.problems = append(l.problems, wrong(n, "", "an object"))
		return
	}
	l.problems = append(l.problems, l.substitute(n)...)
	l.problems = append(l.problems, check(n, reflect.TypeFor[Config](), "")...)
	l.takeRules(n)
	l.tree = merge(l.tree, n, "")
}

// takeRules gathers permission sections layer by layer: merging objects would lose the order that decides.
func (l *loader) takeRules(n *node) {
	if p := n.get("permission"); p != nil {
		l.rules = append(l.rules, rules(p)...)
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
			if l.agents == nil {
				l.agents = map[string]permission.Ruleset{}
			}
			l.agents[m.key] = append(l.agents[m.key], rules(p)...)
		}
	}
}

// rules flattens a checked permission section in file order.
func rules(n *node) permission.Ruleset {
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

func (l *loader) finish() (*Config, []Problem) {
	c := &Config{}
	if l.tree != nil {
		var b bytes.Buffer
		l.tree.json(&b)
		if err := json.Unmarshal(b.Bytes(), c); err != nil {
			// check has taken every wrong value out, so this is a fault of ours: say it rather than hide it.
			l.problems = append(l.problems, Problem{File: "configuration", Line: 1, Column: 1, Fatal: true, Message: err.Error()})
		}
		l.tree.leaves("", func(path string, n *node) { l.origins[path] = n.origin() })
	}
	c.origins = l.origins
	c.Permission = Permission{Rules: l.rules}
	for name, a := range c.Agent {
		a.Permission = Permission{Rules: l.agents[name]}
		c.Agent[name] = a
	}
	return c, l.problems
}

// substitute replaces {env:NAME} and {file:path} inside strings; paths are relative to the file they stand in.
func (l *loader) substitute(n *node) []Problem {
	var out []Problem
	for _, m := range n.members {
		out = append(out, l.substitute(m.value)...)
	}
	for _, e := range n.elems {
		out = append(out, l.substitute(e)...)
	}
	if n.kind != kindString || !strings.Contains(n.text, "{") {
		return out
	}
	var b strings.Builder
	rest := n.text
	for {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			break
		}
		inner := rest[i+1 : i+end]
		b.WriteString(rest[:i])
		switch kind, arg, _ := strings.Cut(inner, ":"); kind {
		case "env":
			b.WriteString(l.Env(arg))
		case "file":
			text, err := l.include(n.file, arg)
			if err != nil {
				out = append(out, n.problem("{file:%s} %v", arg, err))
			}
			b.WriteString(text)
		default:
			b.WriteString(rest[i : i+end+1])
		}
		rest = rest[i+end+1:]
	}
	n.text = b.String() + rest
	return out
}

func (l *loader) include(from, name string) (string, error) {
	if strings.HasPrefix(name, "~/") {
		name = filepath.Join(l.Env("HOME"), name[2:])
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", cause(err))
	}
	if !info.Mode().IsRegular() || info.Size() > l.MaxBytes {
		return "", errors.New("is not a regular file of a sensible size")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", cause(err))
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// between lists the folders from root down to dir; only dir when it does not lie under root.
func between(root, dir string) []string {
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

// Stamp changes when a file that Load would read appears, goes or changes, or a variable that it looks at does.
func Stamp(s Sources) string {
	var b strings.Builder
	add := func(path string) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %d;", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, dir := range between(s.Root, s.Cwd) {
		for _, name := range names {
			add(filepath.Join(dir, name))
		}
	}
	if s.UserDir != "" {
		add(filepath.Join(s.UserDir, "pillion.json"))
		add(filepath.Join(s.UserDir, "pillion.jsonc"))
	}
	if s.Env != nil {
		add(s.Env("PILLION_CONFIG"))
		fmt.Fprintf(&b, "%q %q", s.Env("PILLION_CONFIG_CONTENT"), s.Env("PILLION_MODEL"))
	}
	b.Write(s.Editor)
	return b.String()
}
