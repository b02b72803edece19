package builtin

import (
	"os"

	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell"
)

// Explanation is what `pillion permission explain` prints of a command.
type Explanation struct {
	Decision       string             `json:"decision"` // allow, ask, deny; refuse when it never runs
	Commands       []string           `json:"commands"`
	ExternalPaths  []shell.PathAccess `json:"externalPaths"`
	ProtectedPaths []string           `json:"protectedPaths"`
	Opaque         bool               `json:"opaque"`
	Why            string             `json:"why"`
	Requests       []ExplainedRequest `json:"requests"`
}

// ExplainedRequest is one ask of the command.
type ExplainedRequest struct {
	Permission string   `json:"permission"`
	Patterns   []string `json:"patterns"`
	Always     []string `json:"always"`
}

// Explain says what the bash tool would ask for a command in dir (empty: the session's) under these rules, without
// any remembered grants.
func (e Env) Explain(command, dir string, rules permission.Ruleset) Explanation {
	if dir == "" {
		dir = e.Cwd
	}
	a := shell.Analyze(e.shellRequest(command, dir, shell.Environ(os.Environ())))
	x := Explanation{Decision: "allow", Commands: a.Commands(), ExternalPaths: a.External, ProtectedPaths: []string{}, Opaque: a.Opaque, Why: a.Why, Requests: []ExplainedRequest{}}
	if x.ExternalPaths == nil {
		x.ExternalPaths = []shell.PathAccess{}
	}
	for _, p := range a.Protected {
		x.ProtectedPaths = append(x.ProtectedPaths, p.Path)
	}
	if a.Refused {
		x.Decision = "refuse"
		return x
	}
	for _, r := range e.commandRequests(a) {
		r = e.boxed(r, a, false)
		if r.Permission == "edit" {
			r.AskIf = permission.AskIfSpecific // as after a command that a rule allows
		}
		action, why := judge(rules, r)
		if action != permission.Allow && x.Why == "" {
			x.Why = why
		}
		if action == permission.Allow && (r.Permission == "read" || r.Permission == "edit") || len(r.Patterns) == 0 {
			continue
		}
		switch {
		case action == permission.Deny:
			x.Decision = string(permission.Deny)
		case action == permission.Ask && x.Decision == string(permission.Allow):
			x.Decision = string(permission.Ask)
		}
		always := r.Always
		if always == nil {
			always = []string{}
		}
		x.Requests = append(x.Requests, ExplainedRequest{r.Permission, r.Patterns, always})
	}
	return x
}

// judge is what the gate would do with a request when nothing is remembered.
func judge(rules permission.Ruleset, r permission.Request) (permission.Action, string) {
	out, why := permission.Allow, ""
	for i, p := range append(r.Patterns[:len(r.Patterns):len(r.Patterns)], r.Also...) {
		switch action, rule := rules.Judge(r, p); {
		case action == permission.Deny:
			return action, "a rule denies " + r.Permission + " of " + p + " (" + rule.Permission + ": " + rule.Pattern + ", from " + rule.Origin + ")"
		case action == permission.Ask && i < len(r.Patterns):
			out, why = action, r.Why
		}
	}
	if r.MustAsk {
		return permission.Ask, r.Why
	}
	return out, why
}
