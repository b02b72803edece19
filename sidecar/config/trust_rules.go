package config

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// projectRules judges the general rules of an untrusted project. They come before the person's own, so they can only
// change the defaults. Denies and asks are used; an allow is used where the default allows as well, and becomes an
// ask elsewhere.
func projectRules(rules permission.Ruleset, hold func(permission.Rule, string)) permission.Ruleset {
	var out permission.Ruleset
	for _, r := range rules {
		if r.Action != permission.Allow {
			out = append(out, r)
			continue
		}
		narrowed, whole := narrowAllow(r)
		if !whole {
			hold(r, "")
		}
		out = append(out, narrowed...)
	}
	return out
}

// narrowAllow is what remains of an untrusted project's allow rule: all of it where the defaults allow the same, an ask elsewhere, nothing
// where the permission is a wildcard. whole is false when it is not used as it was written, which the person is told.
func narrowAllow(r permission.Rule) (out permission.Ruleset, whole bool) {
	if strings.ContainsAny(r.Permission, "*?") {
		return nil, false // it would cover every permission
	}
	defaults := permission.Default()
	if action, _ := defaults.Evaluate(r.Permission, r.Pattern); action != permission.Allow {
		r.Action = permission.Ask
		return permission.Ruleset{r}, false
	}
	// The defaults that still ask within the pattern (.env files) are repeated after it.
	out = permission.Ruleset{r}
	for _, d := range defaults {
		if d.Permission == r.Permission && d.Pattern != "*" {
			out = append(out, d)
		}
	}
	return out, true
}

// ownRules are agents with rules of their own. A project's rules for such an agent come after those, and an ask would
// weaken a deny. A test in package main compares the list with the agents.
var ownRules = []string{"plan", "explore", "general", "title", "commit", "summary", "compaction"}

// agentRules judges an untrusted project's rules for an agent. They come after the person's general ones, so whatever
// those deny or ask must stay so.
func agentRules(agent string, rules, person permission.Ruleset, hold func(permission.Rule, string)) permission.Ruleset {
	var out permission.Ruleset
	for _, r := range rules {
		kept := permission.Ruleset{r}
		whole := true
		if r.Action == permission.Allow {
			kept, whole = narrowAllow(r)
		}
		kept = slices.DeleteFunc(kept, func(k permission.Rule) bool {
			drop := k.Action != permission.Deny && (slices.Contains(ownRules, agent) || weakens(k, person))
			whole = whole && !drop
			return drop
		})
		if !whole {
			hold(r, "agent."+agent+".")
		}
		out = append(out, kept...)
	}
	return out
}

// weakens reports a rule that could win over a stricter one of the person. Patterns are not compared, because
// whether two wildcards overlap is hard to tell: any stricter rule about the same permission counts.
func weakens(r permission.Rule, person permission.Ruleset) bool {
	strict := func(a permission.Action) int {
		return slices.Index([]permission.Action{permission.Allow, permission.Ask, permission.Deny}, a)
	}
	for _, p := range person {
		if strict(p.Action) <= strict(r.Action) {
			continue
		}
		if strings.ContainsAny(r.Permission, "*?") || covers(p, r.Permission) {
			return true
		}
	}
	return false
}

// covers reports whether a rule is about a permission, by any of its names. It asks the evaluation itself, both
// ways round, since that knows which names stand for one another.
func covers(p permission.Rule, name string) bool {
	all := permission.Ruleset{{Permission: p.Permission, Pattern: "*", Action: permission.Deny}}
	action, _ := all.Evaluate(name, "x")
	if action == permission.Deny {
		return true
	}
	back := permission.Ruleset{{Permission: name, Pattern: "*", Action: permission.Deny}}
	action, _ = back.Evaluate(p.Permission, "x")
	return action == permission.Deny
}
