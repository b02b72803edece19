package permission

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// known are the permissions that Pillion asks for. Any other name may be that of an MCP or custom tool.
var known = [...]string{
	"read", "edit", "write", "multiedit", "apply_patch", "patch",
	"symbol_find", "symbol_read", "symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_references", "symbol_rename", "symbol_delete", "glob", "grep", "list", "bash", "bash_input", ReadOnlyCommands,
	"task", "skill", "lsp", "webfetch", "websearch", "codesearch", "question", "external_directory", "doom_loop",
	"todo", "todowrite", "todoread", "batch", "plan_enter", "plan_exit",
}

// Lint names the rules of a configuration that probably do not do what was meant: a permission one slip away from a known one, and
// rules without effect because a later one covers them (the last match wins). It returns one sentence for each, its origin first.
func Lint(rs Ruleset) []string {
	var out []string
	// A managed rule is a floor beside the others, and stands among them once more: no order makes it useless.
	managed := map[string]bool{}
	for _, r := range rs {
		if r.Managed {
			managed[r.Origin] = true
		}
	}
	for i, r := range rs {
		if r.Managed {
			continue
		}
		if near := nearName(r.Permission); near != "" {
			out = append(out, fmt.Sprintf("%spermission %q is not one of Pillion's; did you mean %q?", origin(r), r.Permission, near))
		}
		for _, later := range rs[i+1:] {
			if managed[r.Origin] || later.Managed {
				continue
			}
			if later.Action != r.Action && later.Pattern == "*" && (later.Permission == "*" || later.Permission == r.Permission) {
				text := fmt.Sprintf("%srule %s: %q = %s never applies: the later %s: \"*\" = %s wins", origin(r), r.Permission, r.Pattern, r.Action, later.Permission, later.Action)
				if file(later) == file(r) {
					text += "; put the general rule first"
				} else {
					text += ", from " + later.Origin
				}
				out = append(out, text)
				break
			}
		}
	}
	return out
}

// file is the file of a rule's place, which is "file:line:column".
func file(r Rule) string {
	name := r.Origin
	for range 2 {
		if i := strings.LastIndexByte(name, ':'); i >= 0 {
			name = name[:i]
		}
	}
	return name
}

// origin is the prefix that names a rule's place in the configuration, empty for rules without one.
func origin(r Rule) string {
	if r.Origin == "" {
		return ""
	}
	return r.Origin + ": "
}

// nearName returns the known permission of at least four letters that is one slip away from a name; empty for known names. In a shorter
// one a slip is not evidence. MCP and custom tools have names of their own, so an unknown name alone is not a mistake.
func nearName(name string) string {
	near := ""
	for _, k := range known {
		if k == name {
			return ""
		}
		if len(k) >= 4 && fuzzy.Slips(name, k) == 1 {
			near = k
		}
	}
	return near
}
