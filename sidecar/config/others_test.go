package config

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// What other agents' files deny counts in every folder, their servers and allows in a trusted one.
func TestFilesOfOtherAgents(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".codex/config.toml"), "approval_policy = \"untrusted\" # all\nnotify = ['x']\n[mcp_servers.docs]\ncommand = \"docs\"\nargs = [\"-v\"]\nenv = {TOKEN = \"x\"}\n[mcp_servers.far]\nurl = \"https://x.example\"\nbearer_token_env_var = \"T\"\n")
	write(t, filepath.Join(root, ".cursor/mcp.json"), `{"mcpServers": {"c": {"command": "cur"}}}`)
	write(t, filepath.Join(root, ".cursor/cli.json"), `{"permissions": {"allow": ["Shell(make)"], "deny": ["Shell(rm)", "Shell(git:push *)", "Read(.env*)", "Write(**/*.key)", "WebFetch(evil.example)", "Mcp(db:drop)"]}}`)
	write(t, filepath.Join(root, ".gemini/settings.json"), `{"mcpServers": {"g": {"httpUrl": "https://g.example"}}, "excludeTools": ["run_shell_command(curl)", "web_fetch"], "tools": {"exclude": ["google_web_search"]}}`)
	write(t, filepath.Join(root, ".vscode/mcp.json"), `{"servers": {"v": {"type": "stdio", "command": "vs"}}}`)
	write(t, filepath.Join(root, ".windsurfrules"), "x")
	for _, trusted := range []bool{false, true} {
		c, problems := Load(Sources{Cwd: root, Root: root, Trusted: trusted, Env: env("T=secret")})
		if len(problems) > 0 {
			t.Error(problems)
		}
		for _, x := range []struct{ name, pattern, want string }{
			{"bash", "rm -rf x", "deny"}, {"bash", "rm", "deny"}, {"bash", "rmdir x", "ask"}, {"bash", "git push origin", "deny"}, {"bash", "curl x", "deny"}, {"read", ".env.local", "deny"}, {"read", "a/.env", "deny"},
			{"edit", "a/b.key", "deny"}, {"webfetch", "https://evil.example/x", "deny"}, {"webfetch", "https://go.dev", "deny"}, {"websearch", "x", "deny"}, {"db_drop", "*", "deny"}, {"bash", "make x", map[bool]string{true: "allow", false: "ask"}[trusted]},
		} {
			if got, _ := append(slices.Clone(permission.Default()), c.Permission.Rules...).Evaluate(x.name, x.pattern); string(got) != x.want {
				t.Errorf("trusted %v: %s %s is %s, want %s", trusted, x.name, x.pattern, got, x.want)
			}
		}
		if !trusted {
			if len(c.MCP) > 0 {
				t.Error(c.MCP)
			}
			continue
		}
		if d := c.MCP["docs"]; strings.Join(d.Command, " ") != "docs -v" || d.Environment["TOKEN"] != "x" || c.MCP["far"].Headers["Authorization"] != "Bearer secret" || c.MCP["c"].Command[0] != "cur" || c.MCP["g"].URL != "https://g.example" || c.MCP["v"].Command[0] != "vs" {
			t.Errorf("%+v", c.MCP)
		}
		if c.Origin("mcp.docs.command") != filepath.Join(root, ".codex/config.toml")+":4:1" {
			t.Error(c.Origin("mcp.docs.command"))
		}
		said := ""
		for _, u := range c.Unsupported() {
			said += u.String() + "\n"
		}
		for _, want := range []string{"config.toml:2:1: notify", ".windsurfrules:1:1: it is not used"} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in %s", want, said)
			}
		}
	}
}

// A mistake in TOML has its place.
func TestAMistakeInTOML(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".codex/config.toml"), "a = 1\nb = = 2\n")
	_, problems := Load(Sources{Cwd: root, Root: root})
	if len(problems) != 1 || problems[0].Line != 2 {
		t.Errorf("%v", problems)
	}
}

// What is imported means the same as what it was read from, and importing once more changes nothing.
func TestImport(t *testing.T) {
	files := map[string]string{
		".claude/settings.json": `{"model": "claude-opus-5", "env": {"A": "b", "ANTHROPIC_BASE_URL": "https://gw.example"}, "permissions": {"allow": ["Bash(npm test:*)", "mcp__db"], "ask": ["Bash(git push:*)"], "deny": ["Bash(curl:*)", "mcp__db__drop", "Read(./secrets/**)"]}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo ${x}"}]}]}}`,
		".mcp.json":             `{"mcpServers": {"db": {"command": "d", "env": {"T": "${TOK}"}}}}`,
		".codex/config.toml":    "model = \"gpt-5.1\"\nmodel_provider = \"az\"\nsandbox_mode = \"workspace-write\"\napproval_policy = \"on-request\"\n[model_providers.az]\nbase_url = \"https://az.example\"\nenv_key = \"AZ\"\n[mcp_servers.m]\ncommand = \"m\"\n",
		".cursor/cli.json":      `{"permissions": {"deny": ["Shell(rm)"]}}`,
		"opencode.json":         `{"model": "anthropic/x", "mode": {"docs": {"prompt": "p", "maxSteps": 3}}, "permission": {"bash": {"*": "ask", "ls *": "allow"}}, "theme": "x"}`,
	}
	evaluate := func(c *Config, name, pattern string) permission.Action {
		a, _ := append(slices.Clone(permission.Default()), c.Permission.Rules...).Evaluate(name, pattern)
		return a
	}
	for program, own := range map[string][]string{"claude": {".claude/settings.json", ".mcp.json"}, "codex": {".codex/config.toml"}, "cursor": {".cursor/cli.json"}, "opencode": {"opencode.json"}} {
		there, here := t.TempDir(), t.TempDir()
		for _, name := range own {
			write(t, filepath.Join(there, name), files[name])
		}
		s := Sources{Cwd: there, Root: there, Env: env("TOK=secret"), Trusted: true}
		got, err := Import(s, program, false)
		if err != nil || len(got.Problems) > 0 {
			t.Fatal(program, err, got.Problems)
		}
		if strings.Contains(got.Text, "secret\"") {
			t.Errorf("%s: a value of the environment was written: %s", program, got.Text)
		}
		write(t, filepath.Join(here, "pillion.jsonc"), got.Text)
		want, _ := Load(s)
		c, problems := Load(Sources{Cwd: here, Root: here, Env: s.Env, Trusted: true})
		if len(problems) > 0 {
			t.Errorf("%s: %v in\n%s", program, problems, got.Text)
		}
		for _, x := range []string{"bash npm test", "bash npm test x", "bash git push x", "bash curl x", "bash rm x", "bash ls x", "bash other", "db_query *", "db_drop *", "read secrets/x", "read a", "edit a"} {
			name, pattern, _ := strings.Cut(x, " ")
			if evaluate(c, name, pattern) != evaluate(want, name, pattern) {
				t.Errorf("%s: %s is %s, was %s", program, x, evaluate(c, name, pattern), evaluate(want, name, pattern))
			}
		}
		a, _ := json.Marshal([]any{want.MCP, want.Env, want.Agent["docs"].Steps, len(want.Hooks)})
		b, _ := json.Marshal([]any{c.MCP, c.Env, c.Agent["docs"].Steps, len(c.Hooks)})
		if string(a) != string(b) {
			t.Errorf("%s: %s, want %s", program, b, a)
		}
		write(t, filepath.Join(there, "pillion.jsonc"), got.Text)
		if again, err := Import(s, program, false); err != nil || again.Text != got.Text || again.Old != got.Text {
			t.Errorf("%s: imported twice: %v\n%s\n%s", program, err, got.Text, again.Text)
		}
	}
	there := t.TempDir()
	write(t, filepath.Join(there, ".codex/config.toml"), files[".codex/config.toml"])
	write(t, filepath.Join(there, "pillion.jsonc"), "// mine\n{\n    \"model\": \"a/b\", // stays\n    \"mcp\": {\n        \"m\": {\"command\": [\"other\"]},\n    },\n}\n")
	got, err := Import(Sources{Cwd: there, Root: there}, "codex", false)
	if err != nil || !strings.Contains(got.Text, "    \"model\": \"a/b\", // stays\n") || !strings.Contains(got.Text, `"other"`) || !strings.Contains(got.Text, "https://az.example") || strings.Contains(got.Text, "gpt-5.1\"\n") || !strings.HasPrefix(got.Text, "// mine\n") {
		t.Errorf("%v\n%s", err, got.Text)
	}
}

// Any text is read without a panic, and with places within it.
func FuzzTOML(f *testing.F) {
	f.Add("a = 1\n[b.c]\nd = {e = [1, 2]}\n[[x]]\ny = 'z'\n[[x]]\n[x.q]\n")
	f.Add("a.b.c = 1\na.b = 2\n[a]\n")
	f.Add("a = [[1], {b = 0x1f}]\nd = 1979-05-27\ne = nan")
	f.Fuzz(func(t *testing.T, src string) {
		n, bad := parseTOML("f", []byte(src))
		if (n == nil) == (bad == nil) {
			t.Fatal("neither a tree nor a problem")
		}
		if bad != nil {
			return
		}
		n.leaves("", func(path string, v *node) {
			if v.line < 1 || v.line > 1+strings.Count(src, "\n") {
				t.Errorf("%s at line %d", path, v.line)
			}
		})
		l := loader{origins: map[string]string{}, hookPlaces: map[string][]string{}, included: map[string]string{}, Sources: Sources{Env: func(string) string { return "" }}}
		l.add(l.codexLayer(n))
		if _, problems := l.finish(); slices.ContainsFunc(problems, func(p Problem) bool { return p.Fatal }) {
			t.Errorf("%v", problems)
		}
	})
}
