package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// What a project's Claude Code files allow, ask and start counts in a trusted folder only; what an allow means here is never more.
func TestClaudeSettings(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, ".claude/settings.json"), `{"permissions": {"allow": ["Bash(npm run test:*)", "Bash(git status)", "Edit(./docs/**)", "WebFetch(domain:go.dev)", "mcp__db__query", "mcp__all", "Magic(x)"],
		"ask": ["Bash(npm run test:e2e)"], "additionalDirectories": ["../x"]}, "hooks": {"Stop": [], "Made": []}, "made": 1}`)
	write(t, filepath.Join(root, ".claude/settings.local.json"), `{"permissions": {"allow": ["WebSearch"], "deny": ["WebSearch"]}}`)
	write(t, filepath.Join(root, ".mcp.json"), `{"mcpServers": {"db": {"command": "dbserver", "args": ["--port", "${PORT:-99}"], "env": {"TOKEN": "${TOKEN}"}}, "far": {"type": "sse", "url": "https://x.example/sse", "odd": 1}}}`)
	write(t, filepath.Join(home, ".claude/settings.json"), `{"permissions": {"allow": ["Bash(make lint)"]}}`)
	env := func(name string) string { return map[string]string{"TOKEN": "secret"}[name] }
	for _, trusted := range []bool{false, true} {
		c, problems := Load(Sources{Cwd: root, Root: root, Home: home, Trusted: trusted, Env: env})
		if len(problems) > 0 {
			t.Error(problems)
		}
		base := permission.Default()
		for _, x := range []struct{ name, pattern, trusted string }{
			{"bash", "npm run test", "allow"}, {"bash", "npm run test --watch", "allow"}, {"bash", "npm run testing", "ask"}, {"bash", "npm run test:e2e", "ask"}, {"bash", "git status", "allow"}, {"bash", "git status -s", "ask"},
			{"edit", "docs/a.md", "allow"}, {"edit", "src/docs/a.md", "ask"}, {"webfetch", "https://go.dev/doc", "allow"}, {"webfetch", "http://go.dev/doc", "ask"}, {"db_query", "*", "allow"},
			{"all_x", "*", "allow"}, {"websearch", "x", "deny"}, {"bash", "make lint", "allow"},
		} {
			got, _ := append(slices.Clone(base), c.Permission.Rules...).Evaluate(x.name, x.pattern)
			want := permission.Action(x.trusted)
			if !trusted && want == permission.Allow && x.pattern != "make lint" {
				want, _ = base.Evaluate(x.name, x.pattern)
			}
			if got != want {
				t.Errorf("trusted %v: %s %s is %s, want %s", trusted, x.name, x.pattern, got, want)
			}
		}
		if started := len(c.MCP) > 0; started != trusted {
			t.Errorf("trusted %v: %v", trusted, c.MCP)
		}
		if trusted {
			db, far := c.MCP["db"], c.MCP["far"]
			if strings.Join(db.Command, " ") != "dbserver --port 99" || db.Environment["TOKEN"] != "secret" || far.URL != "https://x.example/sse" || !far.SSE {
				t.Errorf("%+v %+v", db, far)
			}
		}
		var said []string
		for _, u := range c.Unsupported() {
			said = append(said, u.Setting)
		}
		for _, want := range []string{"hooks.Made", "made", "permissions.allow Magic(x)", "permissions.additionalDirectories", "mcpServers.far.odd"} {
			if want == "hooks.Made" && !trusted {
				continue // held back as a whole
			}
			if !slices.Contains(said, want) {
				t.Errorf("%s is not reported: %v", want, said)
			}
		}
	}
}
