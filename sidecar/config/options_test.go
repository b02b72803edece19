package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const withOptions = `{
	"provider": {
		"openai": {
			"options": {"apiKey": "k", "timeout": 600000, "chunkTimeout": false, "organization": "org", "setCacheKey": true, "reasoningEffort": "low", "serviceTier": "flex", "name": "x"},
			"models": {
				"gpt-5.1": {"id": "gpt-5.1-codex", "options": {"textVerbosity": "low", "strictJsonSchema": true, "store": true}, "variants": {"fast": {"reasoningEffort": "minimal", "plugins": []}}, "headers": {"X-A": "b"},
					"limit": {"context": 400000, "input": 272000, "output": 128000}, "cost": {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 3}}
			}
		}
	},
	"agent": {"fast": {"reasoningEffort": "low", "thinking": {"type": "disabled"}, "top_k": 4, "options": {"serviceTier": "flex"}, "variant": "high", "tier": "deep"}},
	"lsp": {"rust": {"command": ["rust-analyzer"]}, "yaml-ls": {"disabled": true}, "php": {"disabled": true}, "intelephense": {"disabled": true}, "razor": {"disabled": true}},
	"mcp": {"x": {"type": "local", "command": ["x"], "envs": {"A": "b"}}}
}`

func TestOptionsOfOpenCodesFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "opencode.json"), withOptions)
	c, problems := Load(Sources{Cwd: root, Root: root, Trusted: true})
	if len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	p := c.Provider["openai"]
	m := p.Models["gpt-5.1"]
	switch {
	case p.Options.Timeout.Millis() != 10*time.Minute || p.Options.Chunk.Millis() != 24*time.Hour || p.Options.First.Millis() != 0 || p.Options.Organization != "org":
		t.Errorf("%+v", p.Options)
	case len(p.Options.Rest) != 2 || string(p.Options.Rest["reasoningEffort"]) != `"low"` || string(p.Options.Rest["serviceTier"]) != `"flex"`:
		t.Errorf("sent with every request: %s", p.Options.Rest)
	case len(m.Options) != 2 || string(m.Options["textVerbosity"]) != `"low"` || len(m.Variants["fast"]) != 2 || m.Headers["X-A"] != "b":
		t.Errorf("%+v", m)
	case m.ID != "gpt-5.1-codex" || m.Limit.Input != 272000 || m.CostRead != 0.1 || m.CostWrite != 3:
		t.Errorf("%+v", m)
	case c.Agent["fast"].Variant != "high" || len(c.Agent["fast"].Options) != 4:
		t.Errorf("%+v", c.Agent["fast"])
	case !c.LSP.By["yaml"].Disabled || c.LSP.By["rust-analyzer"].Command == nil || len(c.LSP.By) != 3:
		t.Errorf("%+v", c.LSP)
	}
	var said []string
	for _, u := range c.Unsupported() {
		said = append(said, u.Setting)
	}
	want := "provider.openai.options.setCacheKey provider.openai.options.name provider.openai.models.gpt-5.1.options.strictJsonSchema agent.fast.tier mcp.x.envs"
	if got := strings.Join(said, " "); got != want {
		t.Errorf("said: %s\nwant: %s", got, want)
	}
	shown, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(shown), `"serviceTier":"flex"`) || strings.Contains(string(shown), `"*"`) {
		t.Errorf("%s %v", shown, err)
	}
}

// Of options a project that nobody trusts keeps those that only say how a model answers.
func TestAnUntrustedProjectsOptions(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "opencode.json"), withOptions)
	write(t, filepath.Join(root, ".opencode", "agent", "a.md"), "---\nreasoningEffort: low\noptions:\n  mcp_servers: [{url: \"https://evil.example\"}]\n---\nx\n")
	c, _ := Load(Sources{Cwd: root, Root: root})
	held := map[string]string{}
	for _, h := range c.Held() {
		held[h.Setting] = h.Reason
	}
	for setting, reason := range map[string]string{
		"provider.openai.options.apiKey": redirects, "provider.openai.options.organization": redirects, "provider.openai.options.serviceTier": intoRequests,
		"provider.openai.models.gpt-5.1.options.store": intoRequests, "provider.openai.models.gpt-5.1.variants.fast.plugins": intoRequests,
		"provider.openai.models.gpt-5.1.headers": redirects, "agent.fast.options.serviceTier": intoRequests, "agent.a.options.mcp_servers": intoRequests,
	} {
		if held[setting] != reason {
			t.Errorf("%s: held because %q, want %q", setting, held[setting], reason)
		}
	}
	p := c.Provider["openai"]
	if p.Options == nil || p.Options.Timeout.Millis() != 10*time.Minute || string(p.Options.Rest["reasoningEffort"]) != `"low"` || len(p.Options.Rest) != 1 || p.Options.APIKey != "" {
		t.Errorf("%+v", p.Options)
	}
	m := p.Models["gpt-5.1"]
	if len(m.Options) != 1 || len(m.Variants["fast"]) != 1 || m.Headers != nil || len(c.Agent["fast"].Options) != 3 || len(c.Agent["a"].Options) != 1 {
		t.Errorf("%+v %+v %+v", m, c.Agent["fast"], c.Agent["a"])
	}

	// A time-out alone is nothing to hold back.
	alone := t.TempDir()
	write(t, filepath.Join(alone, "opencode.json"), `{"provider": {"anthropic": {"options": {"timeout": false, "setCacheKey": true}}}}`)
	if c, _ := Load(Sources{Cwd: alone, Root: alone}); len(c.Held()) != 0 || c.Provider["anthropic"].Options.Timeout.Millis() != 24*time.Hour {
		t.Errorf("%v %+v", c.Held(), c.Provider)
	}
}

// What other programs' Markdown says besides is a note; in Pillion's own folders it is a mistake.
func TestHeadsOfOtherPrograms(t *testing.T) {
	root := t.TempDir()
	head := "---\ndescription: d\nskills: [a]\nreasoningEffort: high\n---\nDo it.\n"
	for _, dir := range []string{".opencode", ".pillion"} {
		write(t, filepath.Join(root, dir, "agents", dir[1:]+".md"), head)
	}
	write(t, filepath.Join(root, ".opencode", "command", "c.md"), "---\nhandoffs: [x]\nsubtask: true\n---\n$ARGUMENTS\n")
	c, problems := Load(Sources{Cwd: root, Root: root, Trusted: true})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `"skills"`) || !strings.HasSuffix(problems[0].File, "pillion.md") {
		t.Errorf("%v", problems)
	}
	if len(c.Unsupported()) != 2 || string(c.Agent["opencode"].Options["reasoningEffort"]) != `"high"` || !c.Command["c"].Subtask {
		t.Errorf("%v %+v", c.Unsupported(), c.Agent)
	}
}
