package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Held is a setting of a project that is not used until the person trusts its folder. Line and Column count from 1,
// Column in bytes.
type Held struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Setting string `json:"setting"` // dotted path
	Reason  string `json:"reason"`  // what it would have done
}

// String is one line for a terminal.
func (h Held) String() string {
	return fmt.Sprintf("%s:%d:%d: %s is held back: %s", printable(h.File), h.Line, h.Column, printable(h.Setting), h.Reason)
}

// printable shows a text of the project without characters that move a cursor or are invisible, at most 300
// characters. The list of held settings is shown before the person trusts the folder: a key with an escape
// sequence could otherwise hide or rewrite the lines of a terminal that warn about it.
func printable(s string) string {
	return textutil.Shorten(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s), 300)
}

// Held lists the settings that are held back, in the order of reading. It is empty for a trusted project.
func (c *Config) Held() []Held { return c.held }

// Trusted reports whether the project's own settings are used in full.
func (c *Config) Trusted() bool { return c.trusted }

// Why a setting is held back; the text follows "is held back: ".
const (
	startsProgram = "it would start a program that the project chose"
	redirects     = "it would send your requests and keys elsewhere"
	readsSecrets  = "it would show a secret or a file of yours to a model"
	loosens       = "it would let more happen without your approval"
	intoRequests  = "it would put what the project chose into your requests"
)

// untrusted removes from a project's file what a repository must not decide before it is trusted: which programs
// start, where model requests go, which secrets are read. It works on the file as it was written, before references
// are replaced. What is not known to be harmless is held back.
type untrusted struct {
	root   string          // {file:…} may read below it
	remote map[string]bool // providers to which one of the project's files gives an address
	held   []Held
}

// hold notes a setting as held back; the caller removes it from the tree.
func (u *untrusted) hold(at *node, setting, reason string) {
	u.held = append(u.held, Held{File: at.file, Line: at.line, Column: at.column, Setting: setting, Reason: reason})
}

// harmless are the top-level settings that need no trust. The rules of permission and agent are judged one by one
// elsewhere (see projectRules and agentRules). A setting that is listed here by mistake works in every repository that a person opens.
var harmless = []string{"compaction", "$schema", "default_agent", "steps", "log_level", "permission", "disabled_providers", "enabled_providers", "sandbox", "mcp_budget", "repair_rounds"}

// prune removes what is held back from a file. A new setting is held back until it gets a case here or is listed
// in harmless; a test checks that each one was considered. Wrong types need no care: check removes them later.
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
			// A language server runs with these: each can name a program or a library to load.
			u.keep(v, "lsp", func(s member) bool {
				u.drop(s.value, "lsp."+s.key, startsProgram, "command", "env", "initialization", "settings")
				return true
			})
		case "formatter":
			if v.text != "false" { // an object turns formatters on as well, and they run what the project configures
				u.hold(m.at, "formatter", startsProgram)
				return false
			}
		// mcp decides on whole sections, so nothing is left in them that could read a secret.
		case "mcp":
			u.keep(v, "mcp", u.mcp)
			return true
		case "web":
			u.hold(m.at, "web", "it would let pages of this machine and private networks be fetched")
			return false
		case "store": // only the person's own settings may set it, trusted or not
			u.hold(m.at, m.key, "it would send your sessions elsewhere")
			return false
		case "tracing": // the same
			u.hold(m.at, m.key, "it would send what you do elsewhere")
			return false
		case "update_check", "refresh_models": // the same
			u.hold(m.at, m.key, "it would make requests that you did not ask for")
			return false
		case "websearch":
			u.hold(m.at, "websearch", redirects)
			return false
		case "shell", "ripgrep", "plugin", "js_runtime", "agents":
			u.hold(m.at, m.key, startsProgram)
			return false
		case "verify", "hooks", "env": // PATH or BASH_ENV in env would start a program as well
			u.hold(m.at, m.key, startsProgram)
			return false
		case "search_index": // only the person decides that pieces of texts are kept outside of the project
			if v.kind != kindBool || v.text != "false" {
				u.hold(m.at, m.key, "it would keep pieces of the project's text in Pillion's state folder")
				return false
			}
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
			if v.text == "follow" || v.text == "draft" { // follow writes at once; in a draft commands run that are asked about elsewhere
				u.hold(m.at, "review", loosens)
				return false
			}
		case "sandbox_network", "sandbox_auto_allow", "sandbox_writable":
			if v.kind != kindBool || v.text != "false" {
				u.hold(m.at, m.key, loosens)
				return false
			}
		// A key that Config does not have is kept, because check reports it as a mistake, with a suggestion.
		default:
			if !slices.Contains(harmless, m.key) && known(m.key) {
				u.hold(m.at, m.key, loosens)
				return false
			}
		}
		// Whatever passed above may still contain {env:…} or {file:…}: in an agent's prompt it would be sent to a
		// model.
		return u.withoutSecrets(v, m.key)
	})
}

// keep removes the members of an object that f refuses. f reports what it refuses itself, by hold. A node that is not an object has no members,
// and nothing happens.
func (u *untrusted) keep(n *node, path string, f func(member) bool) {
	kept := n.members[:0:0]
	for _, m := range n.members {
		if f(m) {
			kept = append(kept, m)
		}
	}
	n.members = kept
}

// drop removes the named members of an object and notes them as held back.
func (u *untrusted) drop(n *node, path, reason string, names ...string) {
	u.keep(n, path, func(m member) bool {
		if slices.Contains(names, m.key) {
			u.hold(m.at, path+"."+m.key, reason)
			return false
		}
		return true
	})
}

// provider decides on one provider's section. One with an address is held back as a whole, whatever the address: even
// a port of this machine may belong to another user, and would get prompts, files and keys. One without an address
// keeps what describes its models.
func (u *untrusted) provider(p member) bool {
	path := "provider." + p.key
	if hasAddress(p.value) {
		u.hold(p.at, path, redirects)
		return false
	}
	u.drop(p.value, path, redirects, "baseURL", "headers", "key", "apiKey", "region", "project", "device")
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
	return u.withoutSecrets(p.value, path)
}

// options keeps of the request options only those that say how a model answers, and how long that may take. Others
// could send requests elsewhere, store them, or give them tools. It is a list of what is allowed, because
// providers add options at any time.
func (u *untrusted) options(n *node, path string) {
	u.keep(n, path, func(m member) bool {
		if slices.Contains(provider.OptionNames, m.key) || slices.Contains([]string{"timeout", "headerTimeout", "chunkTimeout", "setCacheKey", "disabled"}, m.key) {
			return true
		}
		reason := intoRequests
		if slices.Contains([]string{"apiKey", "authToken", "headers", "organization", "project", "location", "queryParams", "endpoint"}, m.key) {
			reason = redirects
		}
		u.hold(m.at, path+"."+m.key, reason)
		return false
	})
}

// mcp lets a project turn a server off, and nothing else: with a second key in the section, it would define or
// change one.
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

// hasAddress reports whether a provider's section says where requests go. It looks for the key and not for its
// value: an address may be composed from references, which are not replaced yet.
func hasAddress(section *node) bool {
	named := func(n *node) bool {
		return slices.ContainsFunc(n.members, func(m member) bool { return m.key == "baseURL" })
	}
	return named(section) || slices.ContainsFunc(section.members, func(m member) bool { return m.key == "options" && named(m.value) })
}

// remotes notes the providers that a file of the project gives an address; a model of one of them is held back too.
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

// model holds back a model of a provider with an address of the project; with the provider's section removed, the
// name may mean another service.
func (u *untrusted) model(m member, path string) bool {
	id, _, _ := strings.Cut(m.value.text, "/")
	if m.value.kind == kindString && u.remote[id] {
		u.hold(m.at, path, redirects)
		return false
	}
	return true
}

// agent decides on the settings of one agent; its rules are judged by agentRules.
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

// command keeps the text of a command. Which agent runs it is the person's choice: another one may have looser rules.
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

// tools lets a project turn tools off only: one that it turns on by name would win over the person's "*": false.
func (u *untrusted) tools(n *node, path string) {
	u.keep(n, path, func(t member) bool {
		if t.value.text != "false" {
			u.hold(t.at, path+"."+t.key, loosens)
			return false
		}
		return true
	})
}

// instructions keeps the globs that stay in the project. Instructions are sent with every request, so "~/.ssh/*"
// would send keys. A colon is refused for Windows drives and for addresses.
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

// withoutSecrets removes strings that read the environment, or a file outside the project. It reports whether n
// itself may stay.
func (u *untrusted) withoutSecrets(n *node, path string) bool {
	if n.kind == kindString {
		if u.reads(n) {
			u.hold(n, path, readsSecrets)
			return false
		}
		return true
	}
	u.keep(n, path, func(m member) bool { return u.withoutSecrets(m.value, join(path, m.key)) })
	kept := n.elems[:0:0]
	for _, e := range n.elems {
		if u.withoutSecrets(e, path) {
			kept = append(kept, e)
		}
	}
	n.elems = kept
	return true
}

// reads reports a {env:…}, or a {file:…} that leads out of the project, also by a link. It must find at least the
// references that filled replaces. Text with raw set is never replaced.
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
			// Both ends are resolved: in a project below a link (as /tmp on macOS) every file would seem to be
			// outside.
			real, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(n.file), arg))
			if err != nil {
				continue // it does not exist; reported when it is read
			}
			root, err := filepath.EvalSymlinks(u.root)
			rel, err2 := filepath.Rel(root, real)
			if err != nil || err2 != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
				return true
			}
		}
	}
}

// known reports a top-level key of the configuration; unknown ones are reported as mistakes by check.
func known(key string) bool {
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == key && name != "" {
			return true
		}
	}
	return false
}
