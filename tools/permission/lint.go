package permission

import "fmt"

// known are the permissions Pillion asks for. Others are names of MCP and custom tools.
var known = [...]string{
	"read", "edit", "write", "multiedit", "apply_patch", "patch",
	"symbol_find", "symbol_read", "symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_references", "symbol_rename", "symbol_delete", "glob", "grep", "list", "bash", "bash_input", ReadOnlyCommands,
	"task", "skill", "lsp", "webfetch", "websearch", "codesearch", "question", "external_directory", "doom_loop",
	"todo", "todowrite", "todoread", "batch", "plan_enter", "plan_exit",
}

// Lint names the rules of a configuration that probably don't do what was meant: a permission one slip away from a
// known one, and rules that a later one makes void (the last match wins). One sentence each, its origin first.
func Lint(rs Ruleset) []string {
	var out []string
	for i, r := range rs {
		if near := nearName(r.Permission); near != "" {
			out = append(out, fmt.Sprintf("%spermission %q is none of Pillion's; did you mean %q?", origin(r), r.Permission, near))
		}
		for _, later := range rs[i+1:] {
			if later.Action != r.Action && later.Pattern == "*" && (later.Permission == "*" || later.Permission == r.Permission) {
				out = append(out, fmt.Sprintf("%srule %s: %q = %s never applies: the later %s: \"*\" = %s wins; put the general rule first",
					origin(r), r.Permission, r.Pattern, r.Action, later.Permission, later.Action))
				break
			}
		}
	}
	return out
}

func origin(r Rule) string {
	if r.Origin == "" {
		return ""
	}
	return r.Origin + ": "
}

func nearName(name string) string {
	near := ""
	for _, k := range known {
		if k == name {
			return ""
		}
		if len(name) >= 3 && len(k) >= 4 && editDistance(name, k) == 1 {
			near = k
		}
	}
	return near
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours (bytes) that turn a into b.
func editDistance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return 32
	}
	var before, last, row [33]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
