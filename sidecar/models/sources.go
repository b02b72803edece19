package models

import (
	"context"
	"slices"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/keys"
)

// Source is a provider and where its key is from; never the key.
type Source struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Source  string   `json:"source"`           // none, environment, file, keyring, editor or config
	Origin  string   `json:"origin,omitempty"` // the variable, the file's place, the address
	Env     []string `json:"env,omitempty"`
	Local   bool     `json:"local,omitempty"` // a server on this machine; needs no key
	Missing string   `json:"missing,omitempty"`
}

var titles = map[string]string{"anthropic": "Anthropic", "openai": "OpenAI", "google": "Google Gemini", "azure": "Azure OpenAI", "bedrock": "Amazon Bedrock"}

// Sources are a directory's providers, in the order in which they are asked.
func (m *Models) Sources(cwd string) []Source {
	c := m.config(cwd)
	var out []Source
	for _, s := range m.providers(cwd) {
		x := Source{ID: s.id, Name: titles[s.id], Source: "none", Origin: s.origin}
		if named := c.Provider[s.id].Name; named != "" {
			x.Name = named
		}
		if x.Name == "" {
			x.Name = s.id
		}
		if i := slices.IndexFunc(native, func(n nativeProvider) bool { return n.id == s.id }); i >= 0 {
			x.Env = native[i].keys
		}
		switch {
		case s.stored != "":
			x.Source, x.Origin = string(s.stored), ""
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
	return out
}

// LocalServers are the model servers on this machine, as they answer now.
func (m *Models) LocalServers(ctx context.Context) []provider.LocalServer { return m.findLocal(ctx) }

// storedSource is where a kept key is; empty: none was used.
type storedSource = keys.Source
