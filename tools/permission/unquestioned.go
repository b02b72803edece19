package permission

import (
	"slices"
	"strings"
)

// Unquestioned compiles what rules alone, without grants, say about one permission: the function reports that every ruleset
// allows every one of the patterns. It answers in well under a microsecond, since it serves walks over whole projects; where it
// says false, Judge decides.
//
//	quiet := permission.Unquestioned(gate.Rulesets(), "read", "read")
//	if !quiet("web/.env", "/home/me/project/web/.env") { … ask Judge … }
func Unquestioned(sets []Ruleset, permission, tool string) func(patterns ...string) bool {
	who := names(permission, tool)
	// Managed rules are a floor beside the others (Rule.Managed): the last that matches of each kind must allow.
	type kinds struct{ own, managed []quickRule }
	compiled := make([]kinds, len(sets))
	for i, rules := range sets {
		var done [2]bool
		// The last matching rule wins, so they are tried from the end.
		for _, r := range slices.Backward(rules) {
			list, kind := &compiled[i].own, 0
			if r.Managed {
				list, kind = &compiled[i].managed, 1
			}
			if done[kind] || !r.covers(who) {
				continue
			}
			q := compile(r)
			*list = append(*list, q)
			done[kind] = q.all // nothing before it can decide any more
		}
	}
	return func(patterns ...string) bool {
		for _, p := range patterns {
			text := slashed(p)
			low := strings.ToLower(text)
			matches := func(q quickRule) bool {
				// See Ruleset.last: Pillion's own rules about .env files ignore letter case.
				return q.match(text) || q.anyCase && low != text && q.match(low)
			}
			for _, rules := range compiled {
				if i := slices.IndexFunc(rules.own, matches); i < 0 || rules.own[i].action != Allow {
					return false
				}
				if i := slices.IndexFunc(rules.managed, matches); i >= 0 && rules.managed[i].action != Allow {
					return false
				}
			}
		}
		return true
	}
}

// quickRule is a rule whose pattern is taken apart once.
type quickRule struct {
	match   func(text string) bool
	all     bool // it matches everything
	anyCase bool
	action  Action
}

// compile avoids the general matcher for the usual forms: *, *x, *x*, and no wildcard.
func compile(r Rule) quickRule {
	pattern := slashed(expandHome(r.Pattern, homeDir))
	q := quickRule{action: r.Action, all: pattern == "*", anyCase: r.Origin == "default" && r.Permission == "read"}
	q.match = func(text string) bool { return match(pattern, text) }
	body, tail := strings.CutPrefix(pattern, "*")
	inner, both := strings.CutSuffix(body, "*")
	switch {
	case tail && !strings.ContainsAny(body, "*?"):
		q.match = func(text string) bool { return strings.HasSuffix(text, body) }
	case tail && both && !strings.ContainsAny(inner, "*?") && !strings.HasSuffix(pattern, " *"):
		q.match = func(text string) bool { return strings.Contains(text, inner) }
	case !strings.ContainsAny(pattern, "*?"):
		q.match = func(text string) bool { return text == pattern }
	}
	return q
}

// Rulesets are the gate's own rules and those of the sessions it was started from, as they are now: all of them must agree.
func (g *Gate) Rulesets() []Ruleset { return g.rulesets() }
