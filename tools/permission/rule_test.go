package permission

import (
	"context"
	"testing"
)

func rules(t *testing.T, config string) Ruleset {
	t.Helper()
	rs, err := Parse([]byte(config), nil)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func TestEvaluate(t *testing.T) {
	for _, c := range []struct {
		name, config, permission, pattern string
		want                              Action
	}{
		{"no rule asks", `{}`, "bash", "ls", Ask},
		{"a word for all", `"allow"`, "bash", "ls", Allow},
		{"the last match wins", `{"bash":{"*":"ask","git *":"allow","git push *":"deny"}}`, "bash", "git push origin", Deny},
		{"a general rule at the end undoes the others", `{"bash":{"git *":"allow","*":"ask"}}`, "bash", "git log", Ask},
		{"order of names counts too", `{"bash":"deny","*":"allow"}`, "bash", "ls", Allow},
		{"wildcard in the name", `{"*":"allow","my_srv_*":"deny"}`, "my_srv_query", "*", Deny},
		{"write is edit", `{"edit":"deny"}`, "write", "a.go", Deny},
		{"apply_patch is edit", `{"*":"allow","edit":{"secret/*":"deny"}}`, "apply_patch", "secret/k", Deny},
		{"a rule for write counts for write", `{"edit":"allow","write":"deny"}`, "write", "a.go", Deny},
		{"a rule for write leaves edit", `{"edit":"allow","write":"deny"}`, "edit", "a.go", Allow},
		{"patch is apply_patch", `{"*":"allow","patch":"deny"}`, "apply_patch", "a.go", Deny},
		{"apply_patch is patch", `{"*":"allow","apply_patch":"deny"}`, "patch", "a.go", Deny},
		{"ls is list", `{"*":"allow","list":"deny"}`, "ls", "src", Deny},
		{"todo covers both", `{"*":"allow","todo":"deny"}`, "todowrite", "*", Deny},
		{"duplicate keys stay in order", `{"bash":{"a":"allow","a":"deny"}}`, "bash", "a", Deny},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := rules(t, c.config).Evaluate(c.permission, c.pattern); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestJudgeReadOnlyCommands(t *testing.T) {
	ls := Request{Permission: "bash", Patterns: []string{"ls -la"}, ReadOnly: []string{"ls -la"}}
	for _, c := range []struct {
		name, config string
		want         Action
	}{
		{"on by default", `{}`, Allow},
		{"a general ask for bash leaves them", `{"bash":"ask"}`, Allow},
		{"switched off", `{"bash_readonly":"ask"}`, Ask},
		{"an ask for everything asks", `"ask"`, Ask},
		{"a rule naming the command stays", `{"bash":{"ls *":"ask"}}`, Ask},
		{"a deny stays", `{"bash":"deny"}`, Deny},
		{"a deny with the table after it", `{"bash":"deny","bash_readonly":"allow"}`, Allow},
		{"a deny with a table after it that only asks", `{"bash":"deny","bash_readonly":"ask"}`, Deny},
		{"only some", `{"bash_readonly":{"*":"ask","ls *":"allow"}}`, Allow},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := append(Default(), rules(t, c.config)...)
			if got, _ := rs.Judge(ls, "ls -la"); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		permission, pattern string
		want                Action
	}{
		{"edit", "a.go", Ask},
		{"bash", "make", Ask},
		{"read", "main.go", Allow},
		{"read", ".env", Ask},
		{"read", "config/prod.env", Ask},
		{"read", ".env.local", Ask},
		{"read", ".env.example", Allow},
		{"external_directory", "/etc/*", Ask},
		{"doom_loop", "read", Ask},
		{"grep", "x", Allow},
	} {
		if got, _ := Default().Evaluate(c.permission, c.pattern); got != c.want {
			t.Errorf("Default: %s %s = %s", c.permission, c.pattern, got)
		}
	}
}

func TestToolNameCountsOnlyForItsOwnFamily(t *testing.T) {
	rs := rules(t, `{"external_directory":"ask","bash":"allow","write":"deny","edit":"allow"}`)
	if a, _ := rs.Judge(Request{Permission: "external_directory", Tool: "bash"}, "/etc/*"); a != Ask {
		t.Errorf("external_directory by bash: %s", a)
	}
	rs = rules(t, `{"edit":"allow","write":"deny"}`)
	if a, _ := rs.Judge(Request{Permission: "edit", Tool: "write"}, "x"); a != Deny {
		t.Errorf("edit by write: %s", a)
	}
}

func TestJudgeAskIf(t *testing.T) {
	rs := rules(t, `{"edit":{"*":"ask","docs/*":"ask","secret/*":"deny"}}`)
	for _, c := range []struct {
		askIf   AskIf
		pattern string
		want    Action
	}{
		{AskIfAny, "a.go", Ask}, {AskIfSpecific, "a.go", Allow}, {AskIfSpecific, "docs/x", Ask}, {AskIfNone, "docs/x", Allow},
		{AskIfSpecific, "secret/k", Deny}, {AskIfNone, "secret/k", Deny},
	} {
		if got, _ := rs.Judge(Request{Permission: "edit", AskIf: c.askIf}, c.pattern); got != c.want {
			t.Errorf("%q %s: %s", c.askIf, c.pattern, got)
		}
	}
}

func TestANamedRequestIsAllowedByItsOwnNameOnly(t *testing.T) {
	for _, c := range []struct {
		rules Ruleset
		want  Action
	}{
		{Ruleset{}, Ask},
		{Default(), Ask},
		{Ruleset{{Permission: "bash*", Pattern: "*", Action: Allow, Origin: ""}}, Ask},
		{Ruleset{{Permission: "bash_input", Pattern: "*", Action: Allow, Origin: ""}}, Allow},
		{Ruleset{{Permission: "bash_input", Pattern: "cat < *", Action: Allow, Origin: ""}}, Allow},
		{Ruleset{{Permission: "bash_input", Pattern: "dog < *", Action: Allow, Origin: ""}}, Ask},
		{Ruleset{{Permission: "bash_input", Pattern: "*", Action: Allow, Origin: ""}, {Permission: "*", Pattern: "*", Action: Deny, Origin: ""}}, Deny},
	} {
		if got, _ := c.rules.Judge(Request{Permission: "bash_input", Named: true}, "cat < x"); got != c.want {
			t.Errorf("%v: %s, want %s", c.rules, got, c.want)
		}
	}
}

func TestAnAddedToolIsAllowedByWrittenRulesOnly(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules Ruleset
		want  Action
	}{
		{"defaults", Default(), Ask},
		{"its name", append(Default(), Rule{Permission: "github_search", Pattern: "*", Action: Allow, Origin: "pillion.jsonc:3:4"}), Allow},
		{"its server", append(Default(), Rule{Permission: "github_*", Pattern: "*", Action: Allow, Origin: "pillion.jsonc:3:4"}), Allow},
		{"everything, written", append(Default(), Rule{Permission: "*", Pattern: "*", Action: Allow, Origin: "pillion.jsonc:3:4"}), Allow},
		{"denied", append(Default(), Rule{Permission: "github_*", Pattern: "*", Action: Deny, Origin: "pillion.jsonc:3:4"}), Deny},
	} {
		if got, _ := c.rules.Judge(Request{Permission: "github_search", Added: true}, "*"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLetterCaseHidesNoSecret(t *testing.T) {
	for name, want := range map[string]Action{".env": Ask, ".ENV": Ask, "web/.Env.Local": Ask, ".ENV.example": Allow, "environment.go": Allow} {
		if got, _ := Default().Evaluate("read", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A grant does not answer for a managed rule, and a session of its own rules cannot either.
func TestAManagedAskIsNotGranted(t *testing.T) {
	rules := Ruleset{{Permission: "bash", Pattern: "*", Action: Ask, Origin: "/etc/pillion/pillion.jsonc:1:1", Managed: true}, {Permission: "bash", Pattern: "*", Action: Allow}}
	asked := 0
	g := NewGate(GateOptions{Rules: func() Ruleset { return rules }, Asker: askerFunc(func(context.Context, Request) (Reply, error) {
		asked++
		return Reply{Kind: Always, Scope: ScopeSession}, nil
	})})
	for range 2 {
		if _, err := g.Ask(t.Context(), Request{SessionID: "s", Permission: "bash", Patterns: []string{"make"}, Always: []string{"make"}}); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
}

// The rule is what the person reads as the reason, so a floor that says the same as the person's own rule is not named in its place.
func TestAnEquallyStrictFloorIsNotTheReason(t *testing.T) {
	rs := Ruleset{{Permission: "bash", Pattern: "*", Action: Deny, Origin: "floor", Managed: true}, {Permission: "bash", Pattern: "*", Action: Deny, Origin: "mine"}}
	if action, rule := rs.Evaluate("bash", "make"); action != Deny || rule == nil || rule.Origin != "mine" {
		t.Errorf("%s by %v", action, rule)
	}
}

// A machine's rule that names commands asks about those that only read as well; one about everything does not.
func TestAManagedRuleThatNamesCommandsInsists(t *testing.T) {
	git := Request{Permission: "bash", Patterns: []string{"git log"}, ReadOnly: []string{"git log"}}
	table := Rule{Permission: ReadOnlyCommands, Pattern: "*", Action: Allow}
	for pattern, want := range map[string]bool{"git *": true, "git log": true, "*": false, "ls *": false} {
		managed := Rule{Permission: "bash", Pattern: pattern, Action: Ask, Managed: true}
		if rule := (Ruleset{table, managed}).insists(git, "git log"); (rule != nil) != want {
			t.Errorf("an ask about %q: %v", pattern, rule)
		}
	}
}
