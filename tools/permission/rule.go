package permission

import (
	"slices"
	"strings"
)

// Evaluate returns what the rules say about one pattern of a permission, and the rule that decided: the last one
// that matches both. Without any, the answer is Ask and the rule nil.
//
// The tools that change files (edit, write, multiedit, apply_patch, patch) are one permission, edit; a rule for the
// tool's own name counts beside it. ls is list, and todo covers todowrite and todoread.
func (rs Ruleset) Evaluate(permission, pattern string) (Action, *Rule) {
	return rs.evaluate(names(permission, ""), pattern)
}

// Judge is Evaluate for one pattern of a request: rules for the tool's own name count too.
func (rs Ruleset) Judge(r Request, pattern string) (Action, *Rule) {
	who := names(r.Permission, r.Tool)
	action, rule := rs.evaluate(who, pattern)
	// {"*": "allow"} does not allow what must be named, and Pillion's defaults do not allow tools that others added; see
	// Request.Named and Request.Added.
	if action == Allow && (r.Named && strings.ContainsAny(rule.Permission, "*?") || r.Added && rule.Origin == "default") {
		return Ask, rule
	}
	if action == Ask && (r.AskIf == AskIfNone || r.AskIf == AskIfSpecific && (rule == nil || rule.Pattern == "*")) {
		return Allow, rule
	}
	if action == Allow || !slices.Contains(r.ReadOnly, pattern) {
		return action, rule
	}
	// A command known to change nothing is let through by the rules of bash_readonly. A rule that names commands
	// is more exact than that table and stays; so does a deny that was written after it.
	if rule != nil && rule.Pattern != "*" {
		return action, rule
	}
	safe, table := rs.evaluate([]string{ReadOnlyCommands}, pattern)
	if safe != Allow || action == Deny && !rs.after(table, rule) {
		return action, rule
	}
	return safe, table
}

// insists returns the managed rule that asks about a pattern of a request; nil when none does. AskIf and Follow, by which settings of
// the person drop questions, do not count here. A call that the person has just approved is not asked once more for each file.
func (rs Ruleset) insists(r Request, pattern string) *Rule {
	if r.AskIf == AskIfNone {
		return nil
	}
	action, rule := rs.last(names(r.Permission, r.Tool), pattern, true)
	if rule == nil || action != Ask {
		return nil
	}
	// As in Judge, a rule about everything is not about commands known to change nothing.
	if rule.Pattern == "*" && slices.Contains(r.ReadOnly, pattern) {
		if safe, _ := rs.evaluate([]string{ReadOnlyCommands}, pattern); safe == Allow {
			return nil
		}
	}
	return rule
}

// ReadOnlyCommands is the permission that lets commands known to change nothing run where the rule for bash would
// ask for everything. {"bash_readonly": "ask"} switches it off.
const ReadOnlyCommands = "bash_readonly"

// evaluate looks for the last rule that covers one of the names and matches the pattern. The rule points into rs. Without a match it
// returns Ask and nil: a permission without any rule is asked.
func (rs Ruleset) evaluate(names []string, pattern string) (Action, *Rule) {
	action, rule := rs.last(names, pattern, false)
	if least, floor := rs.last(names, pattern, true); floor != nil && stricter(least, action) {
		return least, floor
	}
	return action, rule
}

// stricter reports whether a lets less happen than b.
func stricter(a, b Action) bool {
	order := []Action{Allow, Ask, Deny}
	return slices.Index(order, a) > slices.Index(order, b)
}

// last is evaluate among the rules that are managed, or among those that are not.
func (rs Ruleset) last(names []string, pattern string, managed bool) (Action, *Rule) {
	text := slashed(pattern)
	for i := len(rs) - 1; i >= 0; i-- {
		if rs[i].Managed != managed {
			continue
		}
		// Pillion's own rules about .env files apply to .ENV as well, since it is the same file where letter case does not count.
		if rs[i].covers(names) && (Match(rs[i].Pattern, text) || rs[i].Origin == "default" && rs[i].Permission == "read" && Match(rs[i].Pattern, strings.ToLower(text))) {
			return rs[i].Action, &rs[i]
		}
	}
	return Ask, nil
}

// after reports whether rule a comes after rule b; both point into rs.
func (rs Ruleset) after(a, b *Rule) bool {
	for i := range rs {
		switch &rs[i] {
		case a:
			return false
		case b:
			return true
		}
	}
	return false
}

// covers reports whether the rule is about one of the names of a request, literally or by wildcard.
func (r *Rule) covers(names []string) bool {
	for _, name := range names {
		if match(r.Permission, name) {
			return true
		}
	}
	return false
}

// names are all the names under which rules may cover a request. Older names stay valid, so that a configuration written for
// OpenCode denies here what it denied there. The loop reads names that it appends itself: an alias of an alias counts.
func names(permission, tool string) []string {
	out := []string{permission}
	add := func(name string) {
		for _, have := range out {
			if have == name {
				return
			}
		}
		out = append(out, name)
	}
	if sameFamily(permission, tool) {
		add(tool)
	}
	for _, name := range out {
		switch name {
		case "write", "multiedit":
			add("edit")
		case "apply_patch", "patch":
			add("edit")
			add("apply_patch")
			add("patch")
		case "list", "ls":
			add("list")
			add("ls")
		case "todowrite", "todoread":
			add("todo")
		}
	}
	return out
}

// sameFamily says whether a rule for the tool's own name may speak of this permission. Only the tools that share
// edit have a name beside their permission; what else a tool asks (the outside folder, the loop) is not the tool.
func sameFamily(permission, tool string) bool {
	switch tool {
	case "edit", "write", "multiedit", "apply_patch", "patch",
		"symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_rename", "symbol_delete":
		return permission == "edit"
	}
	return false
}

// Check is Evaluate in the shape of `pillion permission check`.
func Check(rs Ruleset, permission, pattern string) Checked {
	action, rule := rs.Evaluate(permission, pattern)
	return Checked{Action: action, Rule: rule}
}

// Checked is the answer of Check: the action and the rule that decided, nil when none matched.
type Checked struct {
	Action Action `json:"action"`
	Rule   *Rule  `json:"rule"`
}
