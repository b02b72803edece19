package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// geminiPolicies is the folder of Gemini's rules about tools, in a project and in the home folder: [[rule]] tables in TOML.
var geminiPolicies = filepath.Join(".gemini", "policies")

// policy is one rule of Gemini's: which calls it is about, and what is decided about them.
type policy struct {
	at       *node
	tools    []string // Claude Code's names, or the tool's own; none: all
	server   string   // the MCP server whose tools they are
	commands []string // how the command begins; none: any
	narrow   bool     // it has conditions that are not known here
	decision string
	priority float64 // the rule of the highest decides
}

// policyConditions are the keys of a rule that do not narrow it further.
var policyConditions = []string{"toolName", "mcpName", "commandPrefix", "decision", "priority", "description", "name", "denyMessage", "deny_message"}

// policies are the rules of a folder's files, in the order of their names.
func (l *loader) policies(dir string, report bool) (out []policy) {
	entries, _ := os.ReadDir(filepath.Join(dir, geminiPolicies))
	for _, e := range entries {
		path := filepath.Join(dir, geminiPolicies, e.Name())
		if filepath.Ext(path) != ".toml" {
			continue
		}
		src, ok := l.read(path, false)
		if !ok {
			continue
		}
		n, bad := parseTOML(path, src)
		if bad != nil {
			if report {
				l.problems = append(l.problems, *bad)
			}
			continue
		}
		if n = n.get("rule"); n != nil {
			for _, r := range n.elems {
				out = append(out, newPolicy(r))
			}
		}
	}
	return out
}

// newPolicy reads a rule.
func newPolicy(r *node) policy {
	p := policy{at: r}
	for _, m := range r.members {
		if !slices.Contains(policyConditions, m.key) {
			p.narrow = true
		}
	}
	p.commands = texts(r.get("commandPrefix"))
	p.server = strings.Join(texts(r.get("mcpName")), "")
	p.decision = strings.Join(texts(r.get("decision")), "")
	if n := r.get("priority"); n != nil {
		p.priority, _ = strconv.ParseFloat(n.text, 64)
	}
	for _, tool := range texts(r.get("toolName")) {
		if tool == "*" {
			continue // all, as without a name
		}
		if name := geminiNames[tool]; name != "" {
			tool = name
		}
		p.tools = append(p.tools, tool)
	}
	return p
}

// texts are the strings of a value that may be one or a list of them.
func texts(n *node) (out []string) {
	switch {
	case n == nil:
	case n.kind == kindArray:
		for _, e := range n.elems {
			out = append(out, e.text)
		}
	default:
		out = append(out, n.text)
	}
	return out
}

// covers reports whether a rule is about calls of a tool.
func (p *policy) covers(tool, server string) bool {
	return (p.server == "" || p.server == server) && (len(p.tools) == 0 || slices.Contains(p.tools, tool))
}

// policyRules are the calls that a folder's policies deny, and those about which they ask. A deny becomes a question if its conditions are
// not known here, or if a rule of a higher priority makes an exception to it. A deny that such a rule replaces counts for nothing.
func policyRules(all []policy) (denies, asks permission.Ruleset) {
	for i := range all {
		p := &all[i]
		if p.decision != "deny" && p.decision != "ask_user" {
			continue
		}
		tools := p.tools
		switch {
		case len(tools) > 0:
		case p.server != "":
			tools = []string{""}
		default:
			tools = slices.Compact(slices.Sorted(maps.Values(geminiNames)))
		}
		for _, tool := range tools {
			certain, replaced := p.decision == "deny" && !p.narrow, false
			for j := range all {
				o := &all[j]
				if o.priority <= p.priority || o.decision == p.decision || o.decision == "deny" || !o.covers(tool, p.server) || apart(o.commands, p.commands) {
					continue
				}
				if len(o.commands) == 0 && !o.narrow {
					replaced = true
				}
				certain = false
			}
			if replaced {
				continue
			}
			for _, text := range p.texts(tool) {
				for _, r := range claudeDeny(text) {
					if r.Origin = p.at.origin(); certain {
						r.Action = permission.Deny
						denies = append(denies, r)
					} else {
						r.Action = permission.Ask
						asks = append(asks, r)
					}
				}
			}
		}
	}
	return denies, asks
}

// apart reports whether no command begins as one of a and as one of b. An empty list is any command.
func apart(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if strings.HasPrefix(x, y) || strings.HasPrefix(y, x) {
				return false
			}
		}
	}
	return len(a) > 0 && len(b) > 0
}

// texts are Claude Code's rules for a tool of the policy.
func (p *policy) texts(tool string) []string {
	own := strings.TrimPrefix(tool, "mcp_") // mcp_server_tool is the tool of any server
	switch {
	case p.server != "" && tool == "":
		return []string{"mcp__" + p.server}
	case p.server != "":
		return []string{"mcp__" + p.server + "__" + tool}
	case own != tool:
		return []string{own}
	case tool == "Bash" && len(p.commands) > 0 && !p.narrow:
		var out []string
		for _, c := range p.commands {
			out = append(out, "Bash("+strings.TrimSpace(c)+":*)")
		}
		return out
	}
	return []string{tool}
}

// policyLayer makes a layer of what a folder's policies ask about, and notes what they allow; nil where there are none.
func (l *loader) policyLayer(dir string) *node {
	all := l.policies(dir, true)
	if len(all) == 0 {
		return nil
	}
	out := all[0].at.object()
	rules := out.object()
	for i := range all {
		if p := &all[i]; p.decision != "deny" && p.decision != "ask_user" {
			l.note(p.at, "rule", "what is denied counts; write what is allowed under permission")
		}
	}
	_, asks := policyRules(all)
	for _, r := range asks {
		addRule(rules, all[0].at, r.Permission, r.Pattern, r.Action)
	}
	if len(rules.members) > 0 {
		out.members = append(out.members, member{"permission", rules, rules})
	}
	return out
}

// policyStamp adds the files of a folder to Stamp.
func policyStamp(add func(path string), dir string) {
	entries, _ := os.ReadDir(filepath.Join(dir, geminiPolicies))
	for _, e := range entries {
		add(filepath.Join(dir, geminiPolicies, e.Name()))
	}
}
