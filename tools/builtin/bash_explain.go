package builtin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// Explanation is what `pillion permission explain` prints about a command, as JSON or as text. Scripts read the JSON: its names stay,
// and its lists are never null.
type Explanation struct {
	Decision       string             `json:"decision"` // allow, ask, deny; refuse when it never runs
	Commands       []string           `json:"commands"`
	ExternalPaths  []scan.PathAccess  `json:"externalPaths"`
	ProtectedPaths []string           `json:"protectedPaths"`
	Opaque         bool               `json:"opaque"` // the analysis cannot understand the command
	Why            string             `json:"why"`    // the reason of Decision
	Requests       []ExplainedRequest `json:"requests"`
	Sandbox        bool               `json:"sandbox,omitempty"`   // it would run in the sandbox
	Contained      bool               `json:"contained,omitempty"` // it would run unasked, and contained: it can only read
	// Programs has the record by which each call in the command was judged. A program without a record is judged by the call's
	// words alone.
	Programs []ExplainedProgram `json:"programs"`
}

// ExplainedProgram is one call of a command, and what is known of its program. Text is the call as the rules see it.
type ExplainedProgram struct {
	Text     string `json:"text"`
	Record   string `json:"record,omitempty"` // "git.yaml: git clean"
	ReadOnly bool   `json:"readOnly,omitempty"`
	Effect   string `json:"effect,omitempty"` // what it does more than the program does without that word: "forces: --force"
}

// ExplainedRequest is one permission that is judged before the command runs. They are in the order in which the tool asks.
type ExplainedRequest struct {
	Permission string            `json:"permission"`
	Patterns   []string          `json:"patterns"`
	Always     []string          `json:"always"`
	Action     permission.Action `json:"action"`
	Rule       *permission.Rule  `json:"rule,omitempty"` // what decided it; its origin names a remembered "always"
	Why        string            `json:"why,omitempty"`
}

// Explain says what the bash tool would do with a command in dir (empty: the session's) under the rules and grants of this gate. It
// runs the tool's own steps with Judge in place of Ask, so it cannot disagree with them. Only the answer of a plugin is not known
// beforehand.
func Explain(ctx context.Context, env Env, command, dir string, gate *permission.Gate) Explanation {
	e := env.commands()
	// The decision is "refuse" for a command that never runs: there is no shell, the analysis refuses it, or a required sandbox is
	// missing.
	x := Explanation{Decision: "refuse", Commands: []string{}, ExternalPaths: []scan.PathAccess{}, ProtectedPaths: []string{}, Requests: []ExplainedRequest{}, Programs: []ExplainedProgram{}}
	sh, err := run.Detect(e.Shell.Shell)
	if err != nil {
		x.Why = err.Error()
		return x
	}
	dir = e.workdir(dir)
	a := e.analyzed(command, dir, sh, e.Shell.Environ(), e.hidden(ctx, gate, ""))
	x.Commands, x.Opaque, x.Why = a.Commands(), a.Opaque, a.Why
	x.ExternalPaths = append(x.ExternalPaths, a.External...)
	for _, p := range a.Protected {
		x.ProtectedPaths = append(x.ProtectedPaths, p.Path)
	}
	for _, call := range a.Calls {
		x.Programs = append(x.Programs, ExplainedProgram{call.Text, call.Record, call.ReadOnly, call.Effect})
	}
	if a.Refused {
		return x
	}
	s := e.Shell.Sandbox
	// In mode "ask", a missing sandbox becomes an approval request, which is among the requests below.
	if x.Sandbox = s.active() && s.support().Usable(); !x.Sandbox && s.Mode == SandboxOn {
		x.Why = noSandbox(s.support())
		return x
	}
	x.Decision = string(permission.Allow)
	var program permission.Reply // as the person's answer would be
	for _, r := range e.commandRequests(a) {
		r = relaxAfterAnswer(e.fitToSandbox(r, a, false), program)
		v := gate.Judge(ctx, r)
		if r.Permission == "bash" {
			program = permission.Reply{Asked: v.Action == permission.Ask, Granted: v.Granted}
		}
		// A deny outweighs an ask, an ask an allow; among equals the first one gives the reason.
		why := explained(r, v)
		switch {
		case v.Action == permission.Allow && (r.Permission == "read" || r.Permission == "edit") || len(r.Patterns) == 0:
			continue // files that need no question are not worth a line
		case v.Action == permission.Deny && x.Decision != string(permission.Deny):
			x.Decision, x.Why = string(v.Action), why
		case v.Action == permission.Ask && x.Decision == string(permission.Allow):
			x.Decision, x.Why = string(v.Action), cmp.Or(x.Why, why)
		}
		x.Requests = append(x.Requests, ExplainedRequest{r.Permission, r.Patterns, append([]string{}, r.Always...), v.Action, v.Rule, why})
	}
	if can, _ := e.containable(); can && a.ReadOnly && x.Decision == string(permission.Allow) {
		x.Contained, x.Sandbox = true, false // containment is the stricter of both
	}
	return x
}

// explained says which rule decided a request, or why it must be asked whatever the rules say. The order of the cases matters: a deny
// comes before all, a grant before the rules that it overrides, and the allowance of the sandbox is what is left.
func explained(r permission.Request, v permission.Verdict) string {
	rule := "no rule names " + v.Pattern
	if v.Rule != nil {
		rule = fmt.Sprintf("%s: %q is %s, from %s", v.Rule.Permission, v.Rule.Pattern, v.Rule.Action, cmp.Or(v.Rule.Origin, "the rules"))
	}
	switch {
	case v.Action == permission.Deny:
		return "a rule denies " + r.Permission + " of " + v.Pattern + " (" + rule + ")"
	case v.Action == permission.Allow && v.Granted:
		return "it was allowed for good (" + rule + ")"
	case v.Action == permission.Allow && v.Rule != nil && v.Rule.Permission == permission.ReadOnlyCommands:
		return "it changes nothing (" + rule + ")"
	case v.Action == permission.Allow && r.Permission == "bash" && v.Rule != nil && v.Rule.Action != permission.Allow:
		return "in-project commands are not asked in the sandbox (sandbox_auto_allow)"
	case v.Action == permission.Allow:
		return rule
	case r.MustAsk:
		return r.Why + "; no rule and no \"always\" lets that through"
	}
	return r.Why + " (" + rule + ")"
}
