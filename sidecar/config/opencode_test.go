package config

import (
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
		"/opencode.jsonc:5:53: agent.build.variant is not used: Pillion has no such setting",
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
