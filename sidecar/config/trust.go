package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/pillion-dev/pillion/agent/provider"
)

// Held is a setting that came with a project and does not count until the person trusts its folder. Line and Column
// count from 1, Column in bytes.
type Held struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Setting string `json:"setting"` // dotted path
	Reason  string `json:"reason"`  // what it would have done
}

func (h Held) String() string {
	return fmt.Sprintf("%s:%d:%d: %s is held back: %s", printable(h.File), h.Line, h.Column, printable(h.Setting), h.Reason)
}

// printable shows a stranger's text without what moves a cursor or hides letters, shortened.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}

// Held lists what was left out because the folder is not trusted, in the order it was read.
func (c *Config) Held() []Held { return c.held }

// Trusted reports whether the project's own settings count in full.
func (c *Config) Trusted() bool { return c.trusted }

// Why a setting waits for trust.
const (
	startsProgram = "it would start a program that the project chose"
	redirects     = "it would send your requests and keys elsewhere"
	readsSecrets  = "it would put a secret or a file of yours into what a model reads"
	loosens       = "it would loosen what you are asked"
	intoRequests  = "it would put what the project chose into your requests"
)

// untrusted takes out of a project's file all that a stranger's repository must not decide: which programs start,
// where model traffic goes, which secrets are read. It works on the file as it was written, before anything is
// substituted. What is not known to be harmless is held back.
type untrusted struct {
	root   string          // {file:…} may read below it
	remote map[string]bool // providers to which one of the project's files gives an address
	held   []Held
}

func (u *untrusted) hold(at *node, setting, reason string) {
	u.held = append(u.held, Held{File: at.file, Line: at.line, Column: at.column, Setting: setting, Reason: reason})
}

// harmless top-level settings need no trust. permission and agent's rules are weighed rule by rule elsewhere.
var harmless = []string{"compaction", "$schema", "default_agent", "steps", "log_level", "permission", "sandbox", "mcp_budget"}

// prune removes what is held back from a parsed file.
func (u *untrusted) prune(n *node) {
	if n.kind != kindObject {
		return
	}
	u.keep(n, "", func(m member) bool {
		v := m.value
		switch m.key {
		case "provider":
			u.keep(v, "provider", func(p member) bool { return u.provider(p) })
			return true
		case "lsp":
			u.keep(v, "lsp", func(s member) bool {
				u.drop(s.value, "lsp."+s.key, startsProgram, "command", "env", "initialization", "settings")
				return true
			})
		case "formatter":
			if v.text != "false" { // any object switches formatters on, and they run what a project configures
				u.hold(m.at, "formatter", startsProgram)
				return false
			}
		case "mcp":
			u.keep(v, "mcp", u.mcp)
			return true
		case "web":
			u.hold(m.at, "web", "it would let pages of this machine and private networks be fetched")
			return false
		case "store": // it counts only in the person's own settings, trust or not
			u.hold(m.at, m.key, "it would send your sessions elsewhere")
			return false
		case "tracing": // the same
			u.hold(m.at, m.key, "it would send what you do elsewhere")
			return false
		case "websearch":
			u.hold(m.at, "websearch", redirects)
			return false
		case "shell", "ripgrep", "plugin", "js_runtime":
			u.hold(m.at, m.key, startsProgram)
			return false
		case "programs": // a record may say that a program changes nothing
			u.hold(m.at, m.key, loosens)
			return false
		case "model":
			if !u.model(m, "model") {
				return false
			}
		case "agent":
			u.keep(v, "agent", func(a member) bool { u.agent(a); return true })
		case "command":
			u.keep(v, "command", func(c member) bool { u.command(c); return true })
		case "small_model":
			if !u.model(m, "small_model") {
				return false
			}
		case "tools":
			u.tools(v, "tools")
		case "instructions":
			u.instructions(v)
		case "review":
			if v.text != "preview" { // follow writes at once; in a draft commands run that are asked about elsewhere
				u.hold(m.at, "review", loosens)
				return false
			}
		case "sandbox_network", "sandbox_auto_allow", "sandbox_writable":
			if v.kind != kindBool || v.text != "false" {
				u.hold(m.at, m.key, loosens)
				return false
			}
		default:
			if !slices.Contains(harmless, m.key) && known(m.key) {
				u.hold(m.at, m.key, loosens)
				return false
			}
		}
		return u.plain(v, m.key)
	})
}

// keep filters an object's members.
func (u *untrusted) keep(n *node, path string, f func(member) bool) {
	kept := n.members[:0:0]
	for _, m := range n.members {
		if f(m) {
			kept = append(kept, m)
		}
	}
	n.members = kept
}

// drop holds back the named members of an object.
func (u *untrusted) drop(n *node, path, reason string, names ...string) {
	u.keep(n, path, func(m member) bool {
		if slices.Contains(names, m.key) {
			u.hold(m.at, path+"."+m.key, reason)
			return false
		}
		return true
	})
}

// provider decides on one provider's section. One with an address is left out whole, whatever the address: a port of
// this machine may be another user's program, or a way out, and gets the prompts, files and keys all the same. One
// without an address keeps what describes its models.
func (u *untrusted) provider(p member) bool {
	path := "provider." + p.key
	if hasAddress(p.value) {
		u.hold(p.at, path, redirects)
		return false
	}
	u.drop(p.value, path, redirects, "baseURL", "headers", "key", "apiKey")
	if o := p.value.get("options"); o != nil {
		u.options(o, path+".options")
	}
	if models := p.value.get("models"); models != nil {
		for _, m := range models.members {
			at := path + ".models." + m.key
			u.drop(m.value, at, redirects, "headers")
			if o := m.value.get("options"); o != nil {
				u.options(o, at+".options")
			}
			if v := m.value.get("variants"); v != nil {
				for _, x := range v.members {
					u.options(x.value, at+".variants."+x.key)
				}
			}
		}
	}
	return u.plain(p.value, path)
}

// options keeps of what is sent with requests that which only says how a model answers, and how long that may take.
// The rest may send them elsewhere, keep them there, or lend them tools: a service has fields for all of it.
func (u *untrusted) options(n *node, path string) {
	u.keep(n, path, func(m member) bool {
		if slices.Contains(provider.OptionNames, m.key) || slices.Contains([]string{"timeout", "headerTimeout", "chunkTimeout", "setCacheKey", "disabled"}, m.key) {
			return true
		}
		reason := intoRequests
		if slices.Contains([]string{"apiKey", "authToken", "headers", "organization", "project", "queryParams", "endpoint"}, m.key) {
			reason = redirects
		}
		u.hold(m.at, path+"."+m.key, reason)
		return false
	})
}

// mcp lets a project switch a server off, nothing else.
func (u *untrusted) mcp(m member) bool {
	if off := m.value.get("enabled"); off != nil && off.text == "false" && len(m.value.members) == 1 {
		return true
	}
	reason := startsProgram
	if m.value.get("url") != nil {
		reason = "it would connect to an address that the project chose"
	}
	u.hold(m.at, "mcp."+m.key, reason)
	return false
}

// hasAddress reports whether a provider's section says where requests go.
func hasAddress(section *node) bool {
	named := func(n *node) bool {
		return slices.ContainsFunc(n.members, func(m member) bool { return m.key == "baseURL" })
	}
	return named(section) || slices.ContainsFunc(section.members, func(m member) bool { return m.key == "options" && named(m.value) })
}

// remotes remembers the providers that a project's file gives an address.
func (u *untrusted) remotes(n *node) {
	for _, m := range n.members {
		if m.key != "provider" {
			continue
		}
		for _, p := range m.value.members {
			if hasAddress(p.value) {
				u.remote[p.key] = true
			}
		}
	}
}

func (u *untrusted) model(m member, path string) bool {
	id, _, _ := strings.Cut(m.value.text, "/")
	if m.value.kind == kindString && u.remote[id] {
		u.hold(m.at, path, redirects)
		return false
	}
	return true
}

func (u *untrusted) agent(a member) {
	path := "agent." + a.key
	u.keep(a.value, path, func(m member) bool {
		switch m.key {
		case "model":
			return u.model(m, path+".model")
		case "tools":
			u.tools(m.value, path+".tools")
		case "options":
			u.options(m.value, path+".options")
		}
		return true
	})
}

// command keeps a command's words; what it is run with is the person's choice.
func (u *untrusted) command(c member) {
	path := "command." + c.key
	u.keep(c.value, path, func(m member) bool {
		switch m.key {
		case "model":
			return u.model(m, path+".model")
		case "agent":
			u.hold(m.at, path+".agent", loosens)
			return false
		}
		return true
	})
}

// tools may be switched off: the person's wildcard that switches all off would lose to a name.
func (u *untrusted) tools(n *node, path string) {
	u.keep(n, path, func(t member) bool {
		if t.value.text != "false" {
			u.hold(t.at, path+"."+t.key, loosens)
			return false
		}
		return true
	})
}

// instructions keeps the globs that stay in the project.
func (u *untrusted) instructions(n *node) {
	kept := n.elems[:0:0]
	for _, e := range n.elems {
		s := filepath.ToSlash(e.text)
		out := strings.HasPrefix(s, "~") || strings.HasPrefix(s, "/") || filepath.IsAbs(e.text) || strings.Contains(s, ":") || slices.Contains(strings.Split(s, "/"), "..")
		if e.kind == kindString && out {
			u.hold(e, "instructions", readsSecrets)
			continue
		}
		kept = append(kept, e)
	}
	n.elems = kept
}

// plain holds back what reads the environment, or a file outside the project.
func (u *untrusted) plain(n *node, path string) bool {
	if n.kind == kindString {
		if u.reads(n) {
			u.hold(n, path, readsSecrets)
			return false
		}
		return true
	}
	u.keep(n, path, func(m member) bool { return u.plain(m.value, join(path, m.key)) })
	kept := n.elems[:0:0]
	for _, e := range n.elems {
		if u.plain(e, path) {
			kept = append(kept, e)
		}
	}
	n.elems = kept
	return true
}

// reads reports a {env:…}, or a {file:…} that does not stay in the project.
func (u *untrusted) reads(n *node) bool {
	if n.raw {
		return false
	}
	for rest := n.text; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		inner, _, closed := strings.Cut(rest, "}")
		switch kind, arg, _ := strings.Cut(inner, ":"); {
		case !closed:
			return false
		case kind == "env":
			return true
		case kind == "file":
			if strings.HasPrefix(arg, "~") || filepath.IsAbs(arg) {
				return true
			}
			real, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(n.file), arg))
			if err != nil {
				continue // not there: said when it is read
			}
			root, err := filepath.EvalSymlinks(u.root)
			rel, err2 := filepath.Rel(root, real)
			if err != nil || err2 != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
				return true
			}
		}
	}
}

// known reports a key of the configuration; others are reported as mistakes anyway.
func known(key string) bool {
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == key && name != "" {
			return true
		}
	}
	return false
}
