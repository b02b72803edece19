package config

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// An untrusted project's rules come before the person's own, so they can only change what the defaults say. Denies and
// asks count. An allow counts where the default allows as well; elsewhere it becomes an ask.

// projectRules weighs a project's general rules.
func projectRules(rules permission.Ruleset, hold func(permission.Rule, string)) permission.Ruleset {
	var out permission.Ruleset
	for _, r := range rules {
		if r.Action != permission.Allow {
			out = append(out, r)
			continue
		}
		narrowed, whole := narrow(r)
		if !whole {
			hold(r, "")
		}
		out = append(out, narrowed...)
	}
	return out
}

// narrow is what remains of an allow rule; whole is false when something was taken.
func narrow(r permission.Rule) (out permission.Ruleset, whole bool) {
	if strings.ContainsAny(r.Permission, "*?") {
		return nil, false // it would speak for everything: the defaults stay
	}
	defaults := permission.Default()
	if action, _ := defaults.Evaluate(r.Permission, r.Pattern); action != permission.Allow {
		r.Action = permission.Ask
		return permission.Ruleset{r}, false
	}
	// What the default still asks inside of the pattern (.env files) is asked again after it.
	out = permission.Ruleset{r}
	for _, d := range defaults {
		if d.Permission == r.Permission && d.Pattern != "*" {
			out = append(out, d)
		}
	}
	return out, true
}

// ownRules are agents with rules of their own: a project's rules for one stand behind them, and an ask would weaken a
// deny. A test in the sidecar compares the list with the agents there are.
var ownRules = []string{"plan", "explore", "general", "title", "summary", "compaction"}

// agentRules weighs a project's rules for an agent. They stand behind the person's general ones, so whatever those
// forbid or ask must stay.
func agentRules(agent string, rules, person permission.Ruleset, hold func(permission.Rule, string)) permission.Ruleset {
	var out permission.Ruleset
	for _, r := range rules {
		kept := permission.Ruleset{r}
		whole := true
		if r.Action == permission.Allow {
			kept, whole = narrow(r)
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

// weakens reports a rule that could win over a stricter one of the person's.
func weakens(r permission.Rule, person permission.Ruleset) bool {
	strict := func(a permission.Action) int {
		return slices.Index([]permission.Action{permission.Allow, permission.Ask, permission.Deny}, a)
	}
	for _, p := range person {
		if strict(p.Action) <= strict(r.Action) {
			continue
		}
		if strings.ContainsAny(r.Permission, "*?") || speaks(p, r.Permission) {
			return true
		}
	}
	return false
}

// speaks reports whether a rule says something about a permission, by any of its names.
func speaks(p permission.Rule, name string) bool {
	all := permission.Ruleset{{Permission: p.Permission, Pattern: "*", Action: permission.Deny}}
	action, _ := all.Evaluate(name, "x")
	if action == permission.Deny {
		return true
	}
	back := permission.Ruleset{{Permission: name, Pattern: "*", Action: permission.Deny}}
	action, _ = back.Evaluate(p.Permission, "x")
	return action == permission.Deny
}
