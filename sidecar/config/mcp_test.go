package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mcpConfig(t *testing.T, text string, trusted bool) (*Config, []Problem) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pillion.jsonc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Sources{Cwd: dir, Root: dir, Trusted: trusted, Env: func(n string) string { return map[string]string{"TOKEN": "t0p"}[n] }})
}

func TestMCPServers(t *testing.T) {
	c, problems := mcpConfig(t, `{"mcp": {
		"git": {"type": "local", "command": ["git-mcp", "-v"], "environment": {"KEY": "{env:TOKEN}"}, "timeout": 5000},
		"web": {"type": "remote", "url": "https://mcp.example/x", "headers": {"A": "b"}, "oauth": false, "enabled": false},
		"own": {"url": "https://mcp.example/y", "oauth": {"clientId": "me", "scope": "a b"}},
	}}`, true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if g := c.MCP["git"]; strings.Join(g.Command, " ") != "git-mcp -v" || g.Environment["KEY"] != "t0p" || g.Timeout != 5000 || g.OAuth.Set {
		t.Errorf("%+v", g)
	}
	if w := c.MCP["web"]; !w.OAuth.False || w.Enabled == nil || *w.Enabled {
		t.Errorf("%+v", w)
	}
	if o := c.MCP["own"]; o.OAuth.False || o.OAuth.Value.ClientID != "me" || o.OAuth.Value.Scope != "a b" {
		t.Errorf("%+v", o)
	}
	_, problems = mcpConfig(t, `{"mcp": {"git": {"comand": ["x"], "oauth": {"clientID": "x"}, "type": "remot"}}}`, true)
	got := ""
	for _, p := range problems {
		got += p.Message + "\n"
	}
	for _, want := range []string{`"comand"`, `did you mean "command"`, `did you mean "clientId"`, `did you mean "remote"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestAnUntrustedProjectStartsNoMCPServer(t *testing.T) {
	c, _ := mcpConfig(t, `{"mcp": {"a": {"command": ["evil"]}, "b": {"url": "http://127.0.0.1:1/"}, "c": {"enabled": false}, "d": {"enabled": false, "command": ["evil"]}}}`, false)
	if len(c.MCP) != 1 || c.MCP["c"].Enabled == nil {
		t.Errorf("%+v", c.MCP)
	}
	if len(c.Held()) != 3 {
		t.Errorf("%v", c.Held())
	}
}
