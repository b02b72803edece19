package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// layerOf is what a plugin that changes the configuration to after makes of one that was loaded from s.
func layerOf(t *testing.T, s Sources, change func(map[string]any)) (PluginLayer, string) {
	t.Helper()
	c, _ := Load(s)
	before, err := c.ForPlugins()
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.ForPlugins()
	if err != nil {
		t.Fatal(err)
	}
	change(after)
	raw, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	text, said, err := PluginChange("/plugins/p.js", before, raw)
	if err != nil {
		t.Fatal(err)
	}
	return PluginLayer{File: "/plugins/p.js", Text: text}, said
}

func into(at map[string]any, key string) map[string]any {
	m, ok := at[key].(map[string]any)
	if !ok {
		m = map[string]any{}
		at[key] = m
	}
	return m
}

// What a plugin changes counts, below what the person has decided; what only the person decides does not.
func TestWhatPluginsChange(t *testing.T) {
	root, user := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "opencode.json"), `{"agent": {"build": {"prompt": "project"}, "gone": {"prompt": "x"}}, "mcp": {"old": {"command": ["old"]}}, "instructions": ["a.md"]}`)
	write(t, filepath.Join(user, "pillion.jsonc"), `{"agent": {"mine": {"prompt": "person"}}, "permission": {"bash": "ask", "read": {"secret": "deny"}}, "model": "a/b"}`)
	s := Sources{Cwd: root, Root: root, UserDir: user, Trusted: true, Env: env("TOK=secret")}
	layer, said := layerOf(t, s, func(c map[string]any) {
		into(into(c, "agent"), "build")["prompt"] = "plugin"
		into(into(c, "agent"), "mine")["prompt"] = "plugin"
		delete(into(c, "agent"), "gone")
		delete(into(c, "mcp"), "old")
		into(c, "agent")["new"] = map[string]any{"mode": "subagent", "prompt": "{env:TOK}", "maxSteps": 3, "permission": map[string]any{"bash": "allow", "edit": map[string]any{"*": "deny", "*.md": "ask"}}}
		into(c, "command")["go"] = map[string]any{"template": "Go $1"}
		into(c, "mcp")["docs"] = map[string]any{"type": "local", "command": []string{"docs"}}
		p := into(c, "permission")
		p["webfetch"], p["external_directory"], p["bash"] = "deny", "allow", "allow"
		into(p, "read")["secret"] = "allow"
		c["model"], c["default_agent"] = "p/q", "new"
		c["instructions"] = append(c["instructions"].([]any), "b.md")
		c["sandbox"], c["store"], c["hooks"], c["plugin"] = "off", "postgres://x", map[string]any{"Stop": []any{}}, []string{"evil"}
		c["autoupdate"] = false
	})
	s.Plugins = []PluginLayer{layer}
	c, problems := Load(s)
	if len(problems) > 0 {
		t.Error(problems)
	}
	if c.Agent["build"].Prompt != "plugin" || c.Agent["mine"].Prompt != "person" || c.Model != "a/b" || c.DefaultAgent != "new" {
		t.Errorf("%+v %s %s", c.Agent, c.Model, c.DefaultAgent)
	}
	if a := c.Agent["new"]; a.Prompt != "{env:TOK}" || a.Steps != 3 || a.Mode != "subagent" || !c.Agent["gone"].Disable || c.Command["go"].Template != "Go $1" {
		t.Errorf("%+v %+v", a, c.Command)
	}
	if off := c.MCP["old"].Enabled; len(c.MCP["docs"].Command) != 1 || off == nil || *off {
		t.Errorf("%+v", c.MCP)
	}
	if !slices.Contains(c.Instructions, "b.md") || !slices.Contains(c.Instructions, "a.md") {
		t.Error(c.Instructions)
	}
	if c.Sandbox != "" || c.Store != "" || len(c.Hooks) != 0 || len(c.Plugin) != 0 {
		t.Errorf("the plugin decided about %q %q %v %v", c.Sandbox, c.Store, c.Hooks, c.Plugin)
	}
	if at := c.Origin("command.go.template"); at != "/plugins/p.js:1:1" {
		t.Error(at)
	}
	general := append(slices.Clone(permission.Default()), c.Permission.Rules...)
	agent := append(slices.Clone(general), c.Agent["new"].Permission.Rules...)
	for _, x := range []struct {
		rules         permission.Ruleset
		name, pattern string
		want          permission.Action
	}{
		{general, "webfetch", "https://x", permission.Deny}, {general, "bash", "make", permission.Ask}, {general, "external_directory", "/x", permission.Ask}, {general, "read", "secret", permission.Deny},
		{agent, "bash", "make", permission.Ask}, {agent, "edit", "a.go", permission.Deny}, {agent, "edit", "a.md", permission.Ask}, {agent, "read", "secret", permission.Deny},
	} {
		if got, rule := x.rules.Evaluate(x.name, x.pattern); got != x.want {
			t.Errorf("%s %s is %s by %+v, want %s", x.name, x.pattern, got, rule, x.want)
		}
	}
	for _, want := range []string{"agent build", "mcp docs", "no agent gone", "no mcp old", "command go", "not used: ", "sandbox", "store", "rules that allow"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
	if Stamp(s) == Stamp(Sources{Cwd: root, Root: root, UserDir: user, Trusted: true, Env: s.Env}) {
		t.Error("a change by a plugin is not noticed")
	}

	// A plugin of the project is as good as the project.
	s.Plugins[0].Folder, s.Trusted = root, false
	if c, _ := Load(s); len(c.Command) > 0 || len(c.MCP) > 0 {
		t.Errorf("without trust: %+v %+v", c.Command, c.MCP)
	}
	s.Trusted, s.TrustedNow = true, func(string) bool { return false }
	if c, _ := Load(s); c.Reason("mcp.docs").Check() == nil {
		t.Error("a server of the project's plugin may start after the trust has ended")
	}
}

// A plugin that changes nothing makes no layer, whatever the configuration holds.
func TestAPluginThatChangesNothing(t *testing.T) {
	root := t.TempDir()
	src, err := os.ReadFile("testdata/opencode.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "opencode.jsonc"), string(src))
	if layer, said := layerOf(t, Sources{Cwd: root, Root: root, Trusted: true, Env: env()}, func(map[string]any) {}); len(layer.Text) > 0 || said != "" {
		t.Errorf("%s: %s", layer.Text, said)
	}
	for _, bad := range []string{"null", "[]", "{"} {
		if _, _, err := PluginChange("p.js", map[string]any{}, []byte(bad)); err == nil {
			t.Errorf("%q is a configuration", bad)
		}
	}
}
