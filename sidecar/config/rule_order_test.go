package config

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// A person who allows commands as a whole, as OpenCode does, still gets the questions and refusals of a project, as in OpenCode.
func TestAProjectsRulesCountBehindAGeneralAllow(t *testing.T) {
	for _, c := range []struct {
		name, project, person string
		permission, pattern   string
		want                  permission.Action
	}{
		{"an ask", `{"permission": {"bash": {"git push*": "ask"}}}`, `{"permission": {"bash": "allow"}}`, "bash", "git push origin", "ask"},
		{"a deny", `{"permission": {"bash": {"rm -rf *": "deny"}}}`, `{"permission": {"bash": "allow"}}`, "bash", "rm -rf /", "deny"},
		{"and the rest is allowed", `{"permission": {"bash": {"git push*": "ask"}}}`, `{"permission": {"bash": "allow"}}`, "bash", "npm test", "allow"},
		{"of everything", `{"permission": {"webfetch": "ask"}}`, `{"permission": "allow"}`, "webfetch", "https://a.b", "ask"},
		{"by a wildcard of the project", `{"permission": {"*": "ask"}}`, `{"permission": {"bash": "allow"}}`, "bash", "make", "ask"},
		{"by the name of a tool", `{"permission": {"write": "ask"}}`, `{"permission": {"edit": "allow"}}`, "write", "a.go", "ask"},
		{"what the person says more exactly counts", `{"permission": {"bash": "ask"}}`, `{"permission": {"bash": {"*": "allow", "rm *": "deny"}}}`, "bash", "rm x", "deny"},
		{"and their exact allow", `{"permission": {"bash": "deny"}}`, `{"permission": {"bash": {"*": "allow", "git push*": "allow"}}}`, "bash", "git push", "allow"},
		{"a general ask of the person stays", `{"permission": {"bash": {"npm *": "allow"}}}`, `{"permission": {"bash": "ask"}}`, "bash", "npm test", "ask"},
		{"also beside another allow", `{"permission": {"edit": "allow"}}`, `{"permission": {"edit": "ask", "write": "allow"}}`, "edit", "a.go", "ask"},
		{"of two general ones the later", `{"permission": {"bash": {"x*": "allow"}}}`, `{"permission": {"*": "allow", "bash": "ask"}}`, "bash", "xyz", "ask"},
		{"an allow of a stranger's is no ask", `{"permission": {"webfetch": "allow"}}`, `{"permission": "allow"}`, "webfetch", "https://a.b", "allow"},
		{"nor an exception a refusal", `{"permission": {"bash": {"*": "deny", "npm *": "allow"}}}`, `{"permission": {"bash": "allow"}}`, "bash", "npm test", "allow"},
		{"an outer ask does not come back", `{"permission": {"edit": "ask"}}`, `{"permission": {"*": "ask", "bash": "allow"}}`, "bash", "make", "allow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, trusted := range []bool{true, false} {
				conf := withPerson(t, c.project, c.person, trusted)
				if got, rule := append(permission.Default(), conf.Permission.Rules...).Evaluate(c.permission, c.pattern); got != c.want {
					t.Errorf("trusted %v: %s by %v, want %s; %v", trusted, got, rule, c.want, conf.Permission.Rules)
				}
			}
		})
	}
}

// Whatever is written in both, the order allows nothing that the person's rules after the project's did not allow.
func TestTheOrderOfRulesOnlyTightens(t *testing.T) {
	strict := []permission.Action{permission.Allow, permission.Ask, permission.Deny}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	some := func(from string) (out permission.Ruleset) {
		for range random.IntN(5) {
			out = append(out, permission.Rule{Permission: pick("*", "bash", "edit", "write", "m_*", "m_a"), Pattern: pick("*", "*", "a*", "ab"),
				Action: strict[random.IntN(3)], Origin: fmt.Sprint(from, len(out))})
		}
		return out
	}
	tighter := 0
	for range 30_000 {
		project, person := some("project"), some("person")
		ordered, before := orderRules(project, project, person), slices.Concat(project, person)
		for _, name := range []string{"bash", "edit", "write", "m_a", "m_b"} {
			for _, pattern := range []string{"ab", "ac", "x"} {
				now, _ := ordered.Evaluate(name, pattern)
				was, _ := before.Evaluate(name, pattern)
				switch {
				case slices.Index(strict, now) < slices.Index(strict, was):
					t.Fatalf("%s %s: %s, was %s\nproject %v\nperson %v\nordered %v", name, pattern, now, was, project, person, ordered)
				case now != was:
					tighter++
				}
			}
		}
	}
	if tighter == 0 {
		t.Error("nothing was tightened")
	}
}

// withPerson loads settings of a project and of a person.
func withPerson(t *testing.T, project, person string, trusted bool) *Config {
	t.Helper()
	s := Sources{Cwd: t.TempDir(), UserDir: t.TempDir(), Trusted: trusted}
	s.Root = s.Cwd
	write(t, filepath.Join(s.Cwd, "opencode.json"), project)
	write(t, filepath.Join(s.UserDir, "pillion.jsonc"), person)
	conf, problems := Load(s)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return conf
}
