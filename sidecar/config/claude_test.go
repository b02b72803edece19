package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// What Claude Code's settings deny is denied, in a folder that nobody trusts and against every allow; what they
// allow waits for trust.
func TestClaudeDeniesCountAlways(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(root, ".claude", "settings.json"): `{"permissions": {"allow": ["Bash(rm:*)", "WebFetch"], "deny": [
			"Read(./secrets/**)", "Read(.env)", "Bash(curl:*)", "Edit(/vendor/**)", "WebFetch(domain:evil.example)", "mcp__db__drop", "Read(//etc/**)", "Unheard(of)"]},
			"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./evil"}]}]}}`,
		filepath.Join(root, ".claude", "settings.local.json"): `{"permissions": {"deny": ["Bash(git push *)", 7]}}`,
		filepath.Join(home, ".claude", "settings.json"):       `{"permissions": {"deny": ["WebSearch", "Read(~/.ssh/**)"]}}`,
		filepath.Join(root, "pillion.json"):                   `{"agent": {"mine": {"prompt": "x", "permission": {"read": "allow"}}}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, trusted := range []bool{false, true} {
		s := Sources{Cwd: root, Root: root, Home: home, Trusted: trusted, Editor: []byte(`{"permission": {"*": "allow"}}`)}
		before := Stamp(s)
		c, problems := Load(s)
		if len(problems) != 1 || problems[0].File != filepath.Join(root, ".claude", "settings.local.json") {
			t.Errorf("what is no rule: %v", problems)
		}
		for _, x := range [][2]string{
			{"read", "secrets/a/b.txt"}, {"read", "secrets"}, {"read", "sub/secrets/key"}, {"read", ".env"}, {"read", "sub/.env"}, {"read", "/etc/passwd"}, {"list", "secrets"},
			{"bash", "curl http://x"}, {"bash", "curl"}, {"bash", "git push origin"}, {"edit", "vendor/x.go"}, {"webfetch", "https://evil.example/x"}, {"webfetch", "https://a.evil.example/x"},
			{"websearch", "anything"}, {"db_drop", "x"}, {"unheard", "x"},
		} {
			if got, _ := c.Permission.Rules.Evaluate(x[0], x[1]); got != permission.Deny {
				t.Errorf("trusted %v: %s %s is %s", trusted, x[0], x[1], got)
			}
			if got, _ := append(c.Permission.Rules, c.Agent["mine"].Permission.Rules...).Evaluate(x[0], x[1]); got != permission.Deny {
				t.Errorf("trusted %v: %s %s is %s for an agent that may read", trusted, x[0], x[1], got)
			}
		}
		for _, x := range [][2]string{{"read", "a.go"}, {"bash", "curlew"}, {"webfetch", "https://notevil.example/"}, {"edit", "a.go"}} {
			if got, _ := c.Permission.Rules.Evaluate(x[0], x[1]); got != permission.Allow {
				t.Errorf("trusted %v: %s %s is %s", trusted, x[0], x[1], got)
			}
		}
		if err := os.WriteFile(filepath.Join(root, ".claude", "settings.local.json"), []byte(`{"permissions": {"deny": ["Bash(git push *)", 17]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if !trusted && Stamp(s) == before {
			t.Error("a changed file is not noticed")
		}
	}
	// Without trust nothing is allowed by them.
	c, _ := Load(Sources{Cwd: root, Root: root})
	if got, rule := c.Permission.Rules.Evaluate("bash", "rm -rf x"); got == permission.Allow {
		t.Errorf("an allow counted: %v", rule)
	}
}
