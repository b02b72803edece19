package config

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

func TestOpenCodesFiles(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".config", "opencode", "opencode.json"), `{"model": "a/b", "theme": "gruvbox", "permission": {"bash": "ask"}}`)
	write(t, filepath.Join(root, "opencode.jsonc"), `{
  "$schema": "https://opencode.ai/config.json", // theirs
  "theme": "x",
  "model": "c/d",
  "mode": {"build": {"maxSteps": 7, "color": "red", "variant": "high"}},
  "agent": {"mine": {"description": "d", "mode": "subagent", "tools": {"bash": false}}},
  "mcp": {"x": {"type": "local", "command": ["y"], "enabled": false}},
  "experimental": {"batch_tool": true, "something": 1},
  "tools": {"webfetch": false},
  "nonsense": 1,
}`)
	write(t, filepath.Join(root, "pillion.jsonc"), `{"model": "e/f"}`)
	c, problems := Load(Sources{Cwd: root, Root: root, Home: home, Trusted: true})
	if len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	if c.Model != "e/f" && c.Model != "a/b" || c.Agent["build"].Steps != 7 || c.Agent["mine"].Mode != "subagent" || c.MCP["x"].Command[0] != "y" || c.Tools["webfetch"] {
		t.Errorf("%+v", c)
	}
	if !slices.ContainsFunc(c.Permission.Rules, func(r permission.Rule) bool { return r.Permission == "bash" && r.Action == "ask" }) {
		t.Errorf("%v", c.Permission.Rules)
	}
	var got []string
	for _, u := range c.Unsupported() {
		got = append(got, strings.TrimPrefix(strings.TrimPrefix(u.String(), root), home))
	}
	for _, want := range []string{
		"/opencode.jsonc:3:3: theme is not used: the editor's theme is followed",
		"/opencode.jsonc:8:40: experimental.something is not used: Pillion has no such switch",
		"/opencode.jsonc:10:3: nonsense is not used: Pillion has no such setting",
		"/.config/opencode/opencode.json:1:18: theme is not used: the editor's theme is followed",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// In our own files such a setting is a mistake, with the reason.
func TestTheirSettingsInOurFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "pillion.jsonc"), `{"theme": "x"}`)
	_, problems := Load(Sources{Cwd: root, Root: root})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "the editor's theme is followed") {
		t.Errorf("%v", problems)
	}
}

func TestAnUntrustedOpenCodeFile(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".opencode", "opencode.json"), `{"mcp": {"x": {"type": "local", "command": ["evil"]}}, "plugin": ["./evil.ts"], "permission": "allow", "mode": {"build": {"permission": {"bash": "allow"}}}}`)
	c, _ := Load(Sources{Cwd: root, Root: root})
	if len(c.MCP) != 0 || len(c.Plugin) != 0 || len(c.Permission.Rules) != 0 || len(c.Held()) < 3 {
		t.Errorf("%+v %v", c, c.Held())
	}
	for _, r := range c.Agent["build"].Permission.Rules {
		if r.Action == "allow" {
			t.Errorf("%v", r)
		}
	}
}

var update = flag.Bool("update", false, "write what is wanted anew")

// A configuration with every key that OpenCode documents: what has a place here is there, the rest is reported with its
// reason, and nothing is refused.
func TestEverythingOfOpenCodes(t *testing.T) {
	src, err := os.ReadFile("testdata/opencode.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "opencode.jsonc"), string(src))
	write(t, filepath.Join(root, "prompts", "review.txt"), "Look closely.\n")
	c, problems := Load(Sources{Cwd: root, Root: root, Trusted: true, Env: func(n string) string {
		if strings.HasPrefix(n, "PILLION_") {
			return ""
		}
		return "<" + n + ">"
	}})
	if len(problems) > 0 {
		t.Errorf("refused: %v", problems)
	}
	var b strings.Builder
	for _, u := range c.Unsupported() {
		b.WriteString(strings.TrimPrefix(u.String(), root+"/") + "\n")
	}
	if *update {
		if err := os.WriteFile("testdata/opencode.want", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, _ := os.ReadFile("testdata/opencode.want"); b.String() != string(want) {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	llama, reviewer := c.Provider["ollama"].Models["llama2"], c.Agent["code-reviewer"]
	switch {
	case llama.CostIn != 0.1 || llama.CostOut != 0.2 || llama.Images == nil || !*llama.Images || llama.Thinking == nil || *llama.Thinking || llama.Limit.Context != 4096:
		t.Errorf("%+v", llama)
	case c.Provider["my"].BaseURL != "https://api.example.com/v1" || c.Provider["anthropic"].Options.APIKey != "<MY_KEY>":
		t.Errorf("%+v", c.Provider)
	case reviewer.Prompt != "Look closely." || reviewer.Steps != 5 || !reviewer.Hidden || reviewer.Tools["write"] || len(reviewer.Permission.Rules) != 5:
		t.Errorf("%+v", reviewer)
	case c.Agent["docs"].Prompt == "" || c.LogLevel != "info" || !c.MCP["nooauth"].OAuth.False || c.MCP["remote"].OAuth.Value.Scope != "read" || len(c.Plugin) != 4 || c.Plugin[3].Options["a"] != 1.0:
		t.Errorf("%+v", c)
	}
}

func TestNamesInPaths(t *testing.T) {
	for _, c := range []struct {
		pattern string
		path    []string
		want    bool
	}{
		{"provider.*.models.*.family", []string{"provider", "a", "models", "gpt-5.1", "family"}, true},
		{"provider.*.id", []string{"provider", "a", "models", "gpt-5.1", "id"}, false},
		{"provider.*.id", []string{"provider", "a.b", "id"}, true},
		{"agent.*.variant", []string{"agent", "x", "variants"}, false},
		{"skills.urls", []string{"skills", "urls", "x"}, false},
	} {
		if got := pathMatch(c.pattern, c.path); got != c.want {
			t.Errorf("%s of %s: %v", c.path, c.pattern, got)
		}
	}
}

func TestReferencesWithinJSONAndPaths(t *testing.T) {
	user := t.TempDir()
	write(t, filepath.Join(user, "secret.txt"), "from {env:TOKEN} a file\n")
	write(t, filepath.Join(user, "pillion.json"), `{"mcp": {"notion": {"command": ["x"], "environment": {
		"HEADERS": "{\"Authorization\": \"Bearer {env:TOKEN}\", \"a\": {\"b\": 1}}", "FILE": "<{file:{env:DIR}/secret.txt}>", "OPEN": "{env:TOKEN", "OTHER": "${x} {y}"}}}}`)
	c, problems := Load(Sources{UserDir: user, Env: env("TOKEN=t-1", "DIR="+user)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[string]string{"HEADERS": `{"Authorization": "Bearer t-1", "a": {"b": 1}}`, "FILE": "<from {env:TOKEN} a file>", "OPEN": "{env:TOKEN", "OTHER": "${x} {y}"}
	if got := c.MCP["notion"].Environment; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMoreThatPeopleHaveInTheirOpenCodeFiles(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".config", "opencode", "opencode.json")
	write(t, file, "\ufeff// nothing yet\n/* at all */\n")
	if _, problems := Load(Sources{Home: home}); len(problems) > 0 {
		t.Error(problems)
	}
	write(t, file, `{"provider": {"azure": {"options": {"resourceName": "acme", "apiVersion": "2024-10-21"}}}, "mcpServers": {}}`)
	c, problems := Load(Sources{Home: home})
	if p := c.Provider["azure"]; len(problems) > 0 || p.Options.BaseURL != "https://acme.openai.azure.com" || p.Version != "2024-10-21" {
		t.Errorf("%+v %v", p, problems)
	}
	if u := c.Unsupported(); len(u) != 1 || !strings.Contains(u[0].Why, "under mcp") {
		t.Errorf("%v", u)
	}
}
