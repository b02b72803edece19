package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// loadManaged writes managed settings, settings of the person and of a trusted project, and loads them.
func loadManaged(t *testing.T, managed, person, project string, env map[string]string) (*Config, []Problem) {
	t.Helper()
	dir := t.TempDir()
	s := Sources{Cwd: filepath.Join(dir, "project"), Root: filepath.Join(dir, "project"), UserDir: filepath.Join(dir, "user"), ManagedDir: filepath.Join(dir, "managed"), Home: dir,
		Trusted: true, Env: func(name string) string { return env[name] }}
	for at, text := range map[string]string{s.ManagedDir: managed, s.UserDir: person, s.Cwd: project} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(at, "pillion.jsonc"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Load(s)
}

// A managed rule is a floor: whatever the person and a trusted project say, what happens is what the stricter of both says. All
// combinations are tried, with the managed rule about everything, about a pattern, and in an agent.
func TestManagedRulesCannotBeLoosened(t *testing.T) {
	actions := []permission.Action{permission.Allow, permission.Ask, permission.Deny}
	strict := map[permission.Action]int{permission.Allow: 0, permission.Ask: 1, permission.Deny: 2}
	for _, floor := range actions {
		for _, own := range actions {
			for _, pattern := range []string{"*", "rm *"} {
				c, problems := loadManaged(t, `{"permission": {"bash": {"`+pattern+`": "`+string(floor)+`"}}}`, `{"permission": {"*": "allow", "bash": "`+string(own)+`"}}`, "", nil)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				rules := append(permission.Default(), c.Permission.Rules...)
				want := own
				if strict[floor] > strict[own] {
					want = floor
				}
				if got, rule := rules.Evaluate("bash", "rm x"); got != want {
					t.Errorf("managed %s %q, person %s: %s by %v", pattern, floor, own, got, rule)
				}
				if got, _ := rules.Evaluate("bash", "ls"); pattern != "*" && got != own {
					t.Errorf("managed %s %q reaches ls: %s", pattern, floor, got)
				}
			}
		}
	}
	// What the managed settings allow needs no question where nobody else says anything, and later rules of their own refine earlier ones.
	c, _ := loadManaged(t, `{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`, "", "", nil)
	rules := append(permission.Default(), c.Permission.Rules...)
	for command, want := range map[string]permission.Action{"make test": permission.Allow, "rm x": permission.Ask} {
		if got, _ := rules.Evaluate("bash", command); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	c, _ = loadManaged(t, `{"agent": {"build": {"permission": {"edit": "deny"}}}}`, `{"agent": {"build": {"permission": {"edit": "allow"}}}}`, "", nil)
	if got, _ := c.Agent["build"].Permission.Rules.Evaluate("edit", "a.go"); got != permission.Deny {
		t.Errorf("the agent's edits: %s", got)
	}
}

// Values of the managed settings hold against every other place that a value can come from, and say where they stand.
func TestManagedValuesWin(t *testing.T) {
	c, problems := loadManaged(t, `{"review": "preview", "model": "openai/ours", "sandbox": "on"}`,
		`{"review": "follow", "model": "openai/mine", "sandbox": "off", "permission": "auto"}`, `{"review": "draft", "small_model": "openai/small"}`,
		map[string]string{"PILLION_MODEL": "openai/env", "PILLION_CONFIG_CONTENT": `{"review": "follow", "sandbox": "off"}`})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if c.Review != "preview" || c.Model != "openai/ours" || c.Sandbox != "on" || c.SmallModel != "openai/small" || !c.Permission.Auto {
		t.Errorf("%+v", c)
	}
	if at, managed := c.Managed("review"); !managed || !strings.HasSuffix(at, filepath.Join("managed", "pillion.jsonc")+":1:12") {
		t.Errorf("review is from %s, managed %v", at, managed)
	}
	if at, managed := c.Managed("small_model"); managed {
		t.Errorf("small_model is managed by %s", at)
	}
	// Commands are not let through by their effects where a managed rule wants a person.
	if c, _ := loadManaged(t, `{"permission": {"bash": "ask"}}`, `{"permission": "auto"}`, "", nil); c.Permission.Auto || !c.Permission.NoAuto {
		t.Errorf("auto %v, off %v", c.Permission.Auto, c.Permission.NoAuto)
	}
}

// Managed settings that cannot be read forbid everything: they may have forbidden anything.
func TestBrokenManagedSettings(t *testing.T) {
	c, problems := loadManaged(t, `{"permission": {"bash": "deny"`, `{"permission": "allow"}`, "", nil)
	if len(problems) != 1 || !problems[0].Fatal || !strings.HasSuffix(problems[0].File, filepath.Join("managed", "pillion.jsonc")) {
		t.Errorf("problems: %v", problems)
	}
	if got, rule := c.Permission.Rules.Evaluate("read", "a.go"); got != permission.Deny || !strings.Contains(rule.Origin, "managed") {
		t.Errorf("%s by %v", got, rule)
	}
}

// What is said of doubtful rules is about their order, which managed rules do not have.
func TestManagedRulesAreNotDoubted(t *testing.T) {
	c, _ := loadManaged(t, `{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`, `{"permission": {"*": "allow", "edit": "ask"}}`, "", nil)
	if doubts := permission.Lint(c.Permission.Rules); len(doubts) > 0 {
		t.Errorf("%q", doubts)
	}
}
