package permission

import (
	"context"
	"slices"
	"strings"
)

// Verdict is what rules and grants say of a request, before a person is asked.
type Verdict struct {
	Action  Action
	Pattern string // the pattern of the request that decided
	Rule    *Rule  // the rule or grant that decided; nil: none matches, or the request must be asked
	Granted bool   // allowed only because of a grant
}

// managed reports whether a managed rule decided.
func (v Verdict) managed() bool { return v.Rule != nil && v.Rule.Managed }

// Reply is what Ask returns when the person is not asked. For a Deny, v must have a Rule.
func (v Verdict) Reply(r Request) (Reply, error) {
	if v.Action == Deny {
		return Reply{}, &DeniedError{Permission: r.Permission, Pattern: v.Pattern, Rule: *v.Rule}
	}
	return Reply{Kind: Once, Granted: v.Granted}, nil
}

// Would is the action of Judge. It lets a caller skip work that only serves the question, such as checking a proposal.
func (g *Gate) Would(ctx context.Context, r Request) Action { return g.Judge(ctx, r).Action }

// Judge says what Ask will do with a request: Allow or Deny by rule or grant, or Ask the person. A Followable change is allowed while
// the person has switched Follow on.
func (g *Gate) Judge(ctx context.Context, r Request) Verdict {
	v := g.weigh(ctx, r)
	if v.Action == Ask && !v.managed() && r.Followable && !r.MustAsk && g.o.Follow != nil && g.o.Follow() {
		return Verdict{Action: Allow}
	}
	return v
}

// weigh judges every pattern by every ruleset: any deny denies, otherwise any ask asks. Denies have a pass of their own, because the
// person must not be asked about one pattern of a request when another is denied. Grants only turn an ask into an allow, and only for
// patterns that the request does not exclude (NoGrant, Exact).
func (g *Gate) weigh(ctx context.Context, r Request) Verdict {
	sets := g.rulesets()
	patterns := r.Patterns
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	for _, rules := range sets {
		for _, p := range patterns {
			if a, rule := rules.Judge(r, p); a == Deny {
				return Verdict{Action: Deny, Pattern: p, Rule: rule}
			}
		}
		for _, p := range r.Also {
			if a, _ := rules.Judge(r, p); a != Deny {
				continue
			}
			if a, rule := rules.withoutOverridden(r, patterns).Judge(r, p); a == Deny {
				return Verdict{Action: Deny, Pattern: p, Rule: rule}
			}
		}
	}
	// What was decided for everybody asks, whatever else would allow the request.
	for _, rules := range sets {
		for _, p := range patterns {
			if rule := rules.insists(r, p); rule != nil {
				return Verdict{Action: Ask, Pattern: p, Rule: rule}
			}
		}
	}
	if r.MustAsk { // after the denies: a deny is never weakened to a question
		return Verdict{Action: Ask}
	}
	var grants Ruleset
	out := Verdict{Action: Allow}
	for _, p := range patterns {
		v := Verdict{Action: Allow, Pattern: p}
		for _, rules := range sets {
			if a, rule := rules.Judge(r, p); a != Allow {
				v = Verdict{Action: Ask, Pattern: p, Rule: rule}
				break
			} else if v.Rule == nil {
				v.Rule = rule
			}
		}
		if v.Action == Allow {
			if !out.Granted { // one pattern that needed a grant makes the whole answer a granted one
				out = v
			}
			continue
		}
		if grants == nil {
			grants = g.grants(ctx, r.SessionID)
		}
		if slices.Contains(r.NoGrant, p) {
			return v
		}
		// A grant counts for its own permission only, so evaluate gets no other names.
		usable := grants
		// "git clean *" was remembered for a plain clean. A call whose options do more is covered only by a grant of exactly its
		// text, and a text with wildcards in it cannot be told from a pattern, so it is covered by none.
		if slices.Contains(r.Exact, p) {
			usable = slices.DeleteFunc(slices.Clone(grants), func(g Rule) bool { return g.Pattern != p || strings.ContainsAny(p, "*?") })
		}
		// Without a matching grant evaluate returns Ask and no rule: the person is asked.
		a, rule := usable.evaluate([]string{r.Permission}, p)
		if rule == nil || a != Allow {
			return v
		}
		out = Verdict{Action: Allow, Pattern: p, Rule: rule, Granted: true}
	}
	return out
}

// withoutOverridden are the rules without the denies that match all patterns of a request that is not denied. A later rule overrides them for
// the patterns, so they must not deny another spelling: {"*": "deny", "docs/**": "allow"} allows docs/a.md, also where "*" matches its
// absolute path and "docs/**" does not.
func (rs Ruleset) withoutOverridden(r Request, patterns []string) Ruleset {
	who := names(r.Permission, r.Tool)
	return slices.DeleteFunc(slices.Clone(rs), func(rule Rule) bool {
		return rule.Action == Deny && !rule.Managed && rule.covers(who) && !slices.ContainsFunc(patterns, func(p string) bool { return !Match(rule.Pattern, slashed(p)) })
	})
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

// grants are those of the session, of the sessions it was started from, of the project and of all projects. A store that cannot be
// read grants nothing. The result is never nil, so that weigh reads the store once for a request and not for each pattern.
func (g *Gate) grants(ctx context.Context, session string) Ruleset {
	out := g.SessionGrants(session)
	for _, parent := range g.inherit {
		out = append(out, g.SessionGrants(parent)...)
	}
	if g.o.Grants != nil {
		for _, project := range [...]string{g.o.Project, Everywhere} {
			if project == "" { // the store would list the grants of all projects
				continue
			}
			list, err := g.o.Grants.List(context.WithoutCancel(ctx), project)
			if err != nil {
				continue
			}
			for _, grant := range list {
				out = append(out, Rule{Permission: grant.Permission, Pattern: grant.Pattern, Action: Allow, Origin: grant.Scope()})
			}
		}
	}
	if out == nil {
		out = Ruleset{}
	}
	return out
}
