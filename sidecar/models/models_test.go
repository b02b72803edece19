package models

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/sidecar/config"
)

func source(t *testing.T, text string, env map[string]string) *Models {
	t.Helper()
	dir := t.TempDir()
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, "pillion.jsonc"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	get := func(k string) string { return env[k] }
	c, problems := config.Load(config.Sources{Cwd: dir, Root: dir, Env: get, Trusted: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return New(Options{Config: func(string) *config.Config { return c }, Env: get, GoogleCredentials: func() string { return env["SIGNED_IN"] }, Local: func(context.Context) []provider.LocalServer {
		return []provider.LocalServer{{ID: "ollama", BaseURL: "http://127.0.0.1:1/v1", Models: []provider.Model{{ID: "qwen"}}}}
	}})
}

func TestTheNearestSourceOfAModelWins(t *testing.T) {
	const local = `{"provider": {"local": {"baseURL": "http://127.0.0.1:9/v1", "models": {"b": {}, "a": {"context": 1000}}}}}`
	for _, c := range []struct {
		name, config, want string
		env                map[string]string
	}{
		{"nothing configured", "", Builtin, nil},
		{"a key alone", "", "anthropic/" + provider.DefaultModel("anthropic"), map[string]string{"ANTHROPIC_API_KEY": "k"}},
		{"a key and a model", "", "openai/my-model", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_MODEL": "my-model"}},
		{"a base URL without a key", "", "openai/m", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "m"}},
		{"the configuration's provider", local, "local/a", nil},
		{"the configuration's model over a key", `{"model": "x/y"}`, "x/y", map[string]string{"OPENAI_API_KEY": "k"}},
		{"PILLION_MODEL over the configuration", `{"model": "x/y"}`, "z/w", map[string]string{"PILLION_MODEL": "z/w"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, origin := source(t, c.config, c.env).Default("/"); got != c.want || origin == "" {
				t.Errorf("got %s from %q, want %s", got, origin, c.want)
			}
		})
	}
}

func TestAnUnusableModelSaysWhatToDo(t *testing.T) {
	m := source(t, "", nil)
	for id, want := range map[string]string{
		"nonsense":    "write it as provider/model",
		"nobody/m":    "provider.nobody.baseURL",
		"anthropic/x": "ANTHROPIC_API_KEY",
		"builtin/gpt": Builtin,
	} {
		if _, _, err := m.Resolve(context.Background(), "/", id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// OpenCode's openai provider is OpenAI's own library, wherever the address leads; an address in our own place is somebody
// else's server, which speaks what everybody does.
func TestAnOpenAIAddress(t *testing.T) {
	for section, want := range map[string]provider.Kind{
		`{"options": {"baseURL": "http://127.0.0.1:9/v1"}}`:                                     provider.KindResponses,
		`{"baseURL": "http://127.0.0.1:9/v1"}`:                                                  provider.KindCompatible,
		`{"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:9/v1"}}`: provider.KindCompatible,
	} {
		m := source(t, `{"provider": {"openai": `+section+`}}`, nil)
		for _, s := range m.providers("/") {
			if s.id == "openai" && s.cfg.Kind != want {
				t.Errorf("%s speaks %s, want %s", section, s.cfg.Kind, want)
			}
		}
	}
}

func TestConfiguredLimitsAndOpenCodesNestingCount(t *testing.T) {
	m := source(t, `{"provider": {"p": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "k"},
		"models": {"short": {"id": "vendor/long-name", "limit": {"context": 5000, "output": 700}, "images": true}}}}}`, nil)
	for _, id := range []string{"p/short", "p/vendor/long-name"} {
		_, model, err := m.Resolve(context.Background(), "/", id)
		if err != nil || model.ID != "vendor/long-name" || model.Context != 5000 || model.Output != 700 || !model.Images {
			t.Errorf("%s: %+v %v", id, model, err)
		}
	}
}

func TestTheSameSettingsShareOneProvider(t *testing.T) {
	m := source(t, `{"provider": {"p": {"baseURL": "http://127.0.0.1:9/v1"}}}`, nil)
	a, _, err := m.Resolve(context.Background(), "/", "p/x")
	if err != nil {
		t.Fatal(err)
	}
	if b, _, _ := m.Resolve(context.Background(), "/", "p/y"); a != b {
		t.Error("two providers: what one encoded of a conversation is lost to the other")
	}
}

func TestAServerOnThisMachineIsListedAndUsable(t *testing.T) {
	m := source(t, "", nil)
	list := m.List(context.Background(), "/", true)
	if list[0].ID != Builtin || !list[0].Default {
		t.Errorf("the default does not come first: %+v", list)
	}
	if _, model, err := m.Resolve(context.Background(), "/", "ollama/qwen"); err != nil || model.String() != "ollama/qwen" {
		t.Errorf("%v %v", model, err)
	}
}

func TestAKeyWhoseVariableIsMissingIsNamed(t *testing.T) {
	m := New(Options{Env: func(string) string { return "" }, Config: func(string) *config.Config {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pillion.jsonc"), []byte(`{"provider":{"r":{"baseURL":"http://127.0.0.1:9/v1","key":"{env:NOT_SET_KEY}","models":["m"]}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _ := config.Load(config.Sources{Cwd: "/", Root: "/", UserDir: dir, Env: func(string) string { return "" }})
		return c
	}})
	for _, s := range m.providers("/") {
		if s.id == "r" {
			if !strings.HasSuffix(s.cfg.KeyFrom, "pillion.jsonc:1:59 (NOT_SET_KEY is not set)") {
				t.Errorf("%q", s.cfg.KeyFrom)
			}
			return
		}
	}
	t.Error("no provider r")
}

func TestQuirksOfTheConfigurationReachTheWire(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Text: "one"})
	m := source(t, `{"provider": {"p": {"baseURL": "`+srv.OpenAIURL()+`", "quirks": {"no_stream_usage": true, "system_role": "user", "max_tokens_field": "max_completion_tokens"}}}}`, nil)
	p, model, err := m.Resolve(context.Background(), "/", "p/x")
	if err != nil {
		t.Fatal(err)
	}
	req := &provider.Request{Model: model, System: []string{"S"}, MaxOutput: 9,
		Messages: []provider.Message{{ID: "1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "hi"}}}}}
	if err := p.Stream(context.Background(), req, func(provider.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	body := string(srv.Requests()[0].Body)
	if strings.Contains(body, "stream_options") || strings.Contains(body, `"system"`) || !strings.Contains(body, `"max_completion_tokens":9`) {
		t.Error(body)
	}
}

func TestCloudsAreAChoiceOnlyWhereTheyWereAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		env    map[string]string
		id     string
		want   string // in the error; empty: usable
	}{
		"azure's key and address":      {"", map[string]string{"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}, "azure/d", ""},
		"azure's key and resource":     {"", map[string]string{"AZURE_API_KEY": "k", "AZURE_RESOURCE_NAME": "x"}, "azure/d", ""},
		"azure's key without address":  {"", map[string]string{"AZURE_OPENAI_API_KEY": "k"}, "azure/d", "AZURE_OPENAI_ENDPOINT"},
		"bedrock's key":                {"", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "eu-west-1"}, "bedrock/anthropic.claude-x", ""},
		"credentials for other things": {"", map[string]string{"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"}, "bedrock/m", "AWS_BEARER_TOKEN_BEDROCK"},
		"bedrock by a section":         {`{"provider": {"bedrock": {"region": "eu-west-1"}}}`, nil, "bedrock/m", ""},
		"vertex's project and sign-in": {"", map[string]string{"GOOGLE_VERTEX_PROJECT": "p", "SIGNED_IN": "adc.json"}, "google-vertex/gemini-2.5-pro", ""},
		"vertex's project alone":       {"", map[string]string{"GOOGLE_VERTEX_PROJECT": "p"}, "google-vertex/m", "gcloud auth application-default login"},
		"a project for other things":   {"", map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "SIGNED_IN": "adc.json"}, "google-vertex/m", "GOOGLE_VERTEX_PROJECT"},
		"a sign-in without a project":  {"", map[string]string{"SIGNED_IN": "adc.json"}, "google-vertex/m", "GOOGLE_VERTEX_PROJECT"},
		"vertex by a section":          {`{"provider": {"google-vertex": {"project": "p"}}}`, nil, "google-vertex/m", ""},
		"vertex as OpenCode has it":    {`{"provider": {"google-vertex-anthropic": {"options": {"project": "p", "location": "us-east5"}}}}`, nil, "google-vertex-anthropic/claude-opus-4-8@default", ""},
		"OpenCode's name":              {`{"provider": {"amazon-bedrock": {"region": "eu-west-1"}}}`, nil, "amazon-bedrock/m", ""},
		"OpenCode's section":           {`{"provider": {"amazon-bedrock": {"npm": "@ai-sdk/amazon-bedrock", "region": "eu-west-1"}}}`, nil, "amazon-bedrock/m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := source(t, c.config, c.env)
			_, _, err := m.Resolve(context.Background(), "/", c.id)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
			if def, _ := m.Default("/"); def != Builtin {
				t.Errorf("%s became the default without being named", def)
			}
		})
	}
}

// What a key for a cloud unlocks is listed, and each model is asked in the format in which the cloud serves it.
func TestTheModelsOfClouds(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Text: "one"}, wiretest.Step{Text: "two"}, wiretest.Step{Text: "three"}, wiretest.Step{Text: "four"}, wiretest.Step{Text: "five"}, wiretest.Step{Text: "six"})
	env := map[string]string{"GOOGLE_VERTEX_PROJECT": "p", "SIGNED_IN": "adc.json", "AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com",
		"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "eu-west-1", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL": srv.URL + "/anthropic"}
	m := source(t, `{"provider": {"google-vertex": {"baseURL": "`+srv.URL+`", "options": {"authToken": "k"}}}}`, env)
	listed := map[string]bool{}
	for _, info := range m.List(context.Background(), "/", false) {
		listed[info.ID] = true
		if strings.HasPrefix(info.ID, "bedrock/") && (strings.Contains(info.ID, ":") || strings.HasPrefix(info.ID, "bedrock/us.")) {
			t.Errorf("%s is not an id of these endpoints", info.ID)
		}
	}
	for _, id := range []string{"azure/gpt-5.1", "bedrock/anthropic.claude-opus-4-8", "bedrock/openai.gpt-oss-120b", "bedrock/qwen.qwen3-coder-next",
		"google-vertex/gemini-2.5-pro", "google-vertex/claude-opus-4-8@default", "google-vertex/zai-org/glm-5-maas"} {
		if !listed[id] {
			t.Errorf("%s is not listed", id)
		}
	}
	for i, c := range []struct{ id, path string }{
		{"bedrock/anthropic.claude-opus-4-8", "/anthropic/v1/messages"},
		{"bedrock/qwen.qwen3-coder-next", "/v1/chat/completions"},
		{"bedrock/openai.gpt-5.5", "/openai/v1/responses"},
		{"google-vertex/gemini-2.5-pro", "/publishers/google/models/gemini-2.5-pro:streamGenerateContent"},
		{"google-vertex/claude-opus-4-8@default", "/publishers/anthropic/models/claude-opus-4-8@default:streamRawPredict"},
		{"google-vertex/zai-org/glm-5-maas", "/endpoints/openapi/chat/completions"},
	} {
		p, model, err := m.Resolve(context.Background(), "/", c.id)
		if err != nil {
			t.Fatal(err)
		}
		req := &provider.Request{Model: model, Messages: []provider.Message{{ID: "1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "hi"}}}}}
		if err := p.Stream(context.Background(), req, func(provider.Event) error { return nil }); err != nil {
			t.Fatalf("%s: %v", c.id, err)
		}
		if got := srv.Requests()[i]; got.Path != c.path || got.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s: %s with %v", c.id, got.Path, got.Header)
		}
	}
}

func TestAHostedServiceTakesAKeyAndNothingElse(t *testing.T) {
	env := map[string]string{"OPENROUTER_API_KEY": "or-key", "GROQ_API_KEY": "gq-key"}
	m := source(t, `{"provider": {"groq": {"baseURL": "http://127.0.0.1:9/v1", "models": ["x"]}}}`, env)
	if _, model, err := m.Resolve(context.Background(), "/", "openrouter/moonshotai/kimi-k2"); err != nil || model.ID != "moonshotai/kimi-k2" {
		t.Errorf("%+v %v", model, err)
	}
	for _, s := range m.providers("/") {
		switch s.id {
		case "openrouter":
			if s.cfg.BaseURL != "https://openrouter.ai/api/v1" || s.cfg.Key != "or-key" || s.cfg.KeyFrom != "OPENROUTER_API_KEY" {
				t.Errorf("%+v", s.cfg)
			}
		case "groq":
			if s.cfg.Key != "" {
				t.Error("the service's key goes to another address")
			}
		case "deepseek":
			t.Error("a service without a key is listed")
		}
	}
	if _, _, err := m.Resolve(context.Background(), "/", "deepseek/deepseek-chat"); err == nil || !strings.Contains(err.Error(), "DEEPSEEK_API_KEY") {
		t.Errorf("%v", err)
	}
	if def, _ := source(t, "{}", env).Default("/"); def != Builtin {
		t.Errorf("%s became the default without being named", def)
	}
}

// Every hosted service is named once, whether there is a key for it or not: a person chooses among them.
func TestSourcesNameEveryHostedService(t *testing.T) {
	m := New(Options{
		Config: func(string) *config.Config { return &config.Config{} },
		Env:    func(name string) string { return map[string]string{"GROQ_API_KEY": "k"}[name] },
		Local:  func(context.Context) []provider.LocalServer { return nil },
	})
	count := map[string]int{}
	for _, s := range m.Sources(t.TempDir()) {
		count[s.ID]++
		h, ok := hosted[s.ID]
		if !ok {
			continue
		}
		if s.BaseURL != h.base || !slices.Equal(s.Env, []string{h.key}) || s.Name == s.ID {
			t.Errorf("%s: %+v", s.ID, s)
		}
		if wanted := map[bool]string{true: "environment", false: "none"}[s.ID == "groq"]; s.Source != wanted {
			t.Errorf("%s has its key from %q, wanted %q", s.ID, s.Source, wanted)
		}
	}
	for id := range hosted {
		if count[id] != 1 {
			t.Errorf("%s is named %d times", id, count[id])
		}
	}
}

// A provider that the configuration turns off is not used with any key: not as the default, not by name, not on this machine.
func TestProvidersThatAreTurnedOff(t *testing.T) {
	keys := map[string]string{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}
	for _, x := range []struct{ config, left string }{
		{`{"disabled_providers": ["anthropic", "groq", "ollama"]}`, "openai builtin"},
		{`{"enabled_providers": ["groq"]}`, "groq builtin"},
		{`{"enabled_providers": ["groq", "openai"], "disabled_providers": ["openai"]}`, "groq builtin"},
	} {
		m := source(t, x.config, keys)
		var left []string
		for _, i := range m.List(t.Context(), "/", true) {
			if id, _, _ := strings.Cut(i.ID, "/"); !slices.Contains(left, id) {
				left = append(left, id)
			}
		}
		slices.Sort(left)
		want := strings.Fields(x.left)
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Errorf("%s: %q, want %q", x.config, left, want)
		}
		for _, id := range []string{"anthropic/claude-opus-5", "openai/gpt-5", "groq/x", "ollama/qwen"} {
			_, _, err := m.Resolve(t.Context(), "/", id)
			p, _, _ := strings.Cut(id, "/")
			if off := !slices.Contains(want, p); off != (err != nil && strings.Contains(err.Error(), "turned off by")) {
				t.Errorf("%s: %s: %v", x.config, id, err)
			}
		}
	}
}
