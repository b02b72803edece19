package permission

import (
	"context"
	"slices"
)

// verdict is what rules and grants say of a request.
type verdict struct {
	action  Action
	pattern string // the one that is denied
	rule    Rule   // the rule that denies
	granted bool   // allowed only because of a grant
}

func (v verdict) reply(r Request) (Reply, error) {
	if v.action == Deny {
		return Reply{}, &DeniedError{Permission: r.Permission, Pattern: v.pattern, Rule: v.rule}
	}
	return Reply{Kind: Once, Granted: v.granted}, nil
}

// judge is what the rules say, and of a change that may be followed what the person said once for all.
func (g *Gate) judge(ctx context.Context, r Request) verdict {
	v := g.weigh(ctx, r)
	if v.action == Ask && r.Followable && !r.MustAsk && g.o.Follow != nil && g.o.Follow() {
		return verdict{action: Allow}
	}
	return v
}

// weigh weighs every pattern: any deny denies, else any ask asks. Grants only turn an ask into an allow, and only
// where the request says they may.
func (g *Gate) weigh(ctx context.Context, r Request) verdict {
	sets := g.rulesets()
	patterns := r.Patterns
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	for _, rules := range sets {
		for _, list := range [...][]string{patterns, r.Also} {
			for _, p := range list {
				if a, rule := rules.Judge(r, p); a == Deny {
					return verdict{action: Deny, pattern: p, rule: *rule}
				}
			}
		}
	}
	if r.MustAsk {
		return verdict{action: Ask}
	}
	var grants Ruleset
	out := verdict{action: Allow}
	for _, p := range patterns {
		if !slices.ContainsFunc(sets, func(rules Ruleset) bool { a, _ := rules.Judge(r, p); return a != Allow }) {
			continue
		}
		if grants == nil {
			grants = g.grants(ctx, r.SessionID)
		}
		if slices.Contains(r.NoGrant, p) {
			return verdict{action: Ask}
		}
		// A grant speaks for its own permission only, so no aliases here.
		if a, rule := grants.evaluate([]string{r.Permission}, p); rule == nil || a != Allow {
			return verdict{action: Ask}
		}
		out.granted = true
	}
	return out
}

// rulesets are the gate's own rules and those of the sessions it was started from. All of them must agree.
func (g *Gate) rulesets() []Ruleset {
	out := make([]Ruleset, 0, 1+len(g.within))
	for _, f := range append([]func() Ruleset{g.o.Rules}, g.within...) {
		if f == nil {
			f = Default
		}
		out = append(out, f())
	}
	return out
}

// grants are those of the session and of the project. A store that cannot be read grants nothing.
func (g *Gate) grants(ctx context.Context, session string) Ruleset {
	out := g.SessionGrants(session)
	for _, parent := range g.inherit {
		out = append(out, g.SessionGrants(parent)...)
	}
	if g.o.Grants != nil {
		for _, project := range [...]string{g.o.Project, Everywhere} {
			list, err := g.o.Grants.List(context.WithoutCancel(ctx), project)
			if err != nil || project == "" { // the empty project lists all, which is nobody's to use
				continue
			}
			for _, grant := range list {
				out = append(out, Rule{Permission: grant.Permission, Pattern: grant.Pattern, Action: Allow, Origin: "project"})
			}
		}
	}
	if out == nil {
		out = Ruleset{}
	}
	return out
}
