package models

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/pillion-dev/pillion/agent/provider"
)

// Source is a provider and where its key comes from; never the key. It goes to editors and to the output of
// commands, which people paste into reports.
type Source struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Source  string   `json:"source"`           // none, environment, file, keyring, editor or config
	Origin  string   `json:"origin,omitempty"` // the variable, the file's place, the address
	Env     []string `json:"env,omitempty"`
	Local   bool     `json:"local,omitempty"`   // a server on this machine; needs no key
	BaseURL string   `json:"baseURL,omitempty"` // of a hosted service that speaks Chat Completions; GET BaseURL/models tells whether a key is good
	Missing string   `json:"missing,omitempty"`
}

// providerTitles are the names under which the services are known, by id. One without an entry is shown by its id.
var providerTitles = map[string]string{
	"anthropic": "Anthropic", "openai": "OpenAI", "google": "Google Gemini", "azure": "Azure OpenAI", "bedrock": "Amazon Bedrock", "google-vertex": "Google Vertex",
	"cerebras": "Cerebras", "deepinfra": "DeepInfra", "deepseek": "DeepSeek", "fireworks-ai": "Fireworks AI", "groq": "Groq",
	"huggingface": "Hugging Face", "mistral": "Mistral", "moonshotai": "Moonshot AI", "nvidia": "NVIDIA", "openrouter": "OpenRouter",
	"togetherai": "Together AI", "xai": "xAI", "zai": "Z.AI",
}

// Sources are the providers of a directory in the order of providers, then the hosted services that only need a key.
func (m *Models) Sources(cwd string) []Source {
	c := m.config(cwd)
	var out []Source
	for _, s := range m.providers(cwd) {
		x := Source{ID: s.id, Name: providerTitles[s.id], Source: "none", Origin: s.origin}
		if named := c.Provider[s.id].Name; named != "" {
			x.Name = named
		}
		if x.Name == "" {
			x.Name = s.id
		}
		if i := slices.IndexFunc(native, func(n nativeProvider) bool { return n.id == s.id }); i >= 0 {
			x.Env = native[i].keys
		}
		if h, ok := hosted[x.ID]; ok {
			x.Env, x.BaseURL = []string{h.key}, h.base
		}
		switch {
		case s.stored != "":
			x.Source, x.Origin = string(s.stored), ""
		// Usable without a key: a server that needs none, or credentials of the machine, as for AWS.
		case s.cfg.Key == "" && s.cfg.Token == "":
			if !s.usable {
				x.Missing = s.missing
			}
		case slices.Contains(x.Env, s.cfg.KeyFrom) || s.cfg.KeyFrom == "ANTHROPIC_AUTH_TOKEN":
			x.Source = "environment"
		default:
			x.Source = "config"
		}
		out = append(out, x)
	}
	for _, id := range slices.Sorted(maps.Keys(hosted)) {
		if !slices.ContainsFunc(out, func(x Source) bool { return x.ID == id }) {
			h := hosted[id]
			out = append(out, Source{ID: id, Name: cmp.Or(providerTitles[id], id), Source: "none", Env: []string{h.key}, BaseURL: h.base, Missing: "set " + h.key + ", or run: pillion auth login " + id})
		}
	}
	return out
}

// LocalServers are the model servers on this machine that answer now. It asks the usual ports, so it takes up to
// 0.2 s.
func (m *Models) LocalServers(ctx context.Context) []provider.LocalServer { return m.findLocal(ctx) }
