package models

import (
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
)

// hostedProvider is a service that speaks Chat Completions at a fixed address; it needs only a key.
type hostedProvider struct{ base, key string }

// hosted are the hosted services by id, under OpenCode's names. A key alone never makes one of them the default: keys for other
// programs are often in the environment.
var hosted = map[string]hostedProvider{
	"cerebras":     {"https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"},
	"deepinfra":    {"https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"},
	"deepseek":     {"https://api.deepseek.com", "DEEPSEEK_API_KEY"},
	"fireworks-ai": {"https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"},
	"groq":         {"https://api.groq.com/openai/v1", "GROQ_API_KEY"},
	"huggingface":  {"https://router.huggingface.co/v1", "HF_TOKEN"},
	"mistral":      {"https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
	"moonshotai":   {"https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"},
	"nvidia":       {"https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"},
	"openrouter":   {"https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
	"togetherai":   {"https://api.together.xyz/v1", "TOGETHER_API_KEY"},
	"xai":          {"https://api.x.ai/v1", "XAI_API_KEY"},
	"zai":          {"https://api.z.ai/api/paas/v4", "ZHIPU_API_KEY"},
}

// configuredProvider is a provider that has no wire format of its own: a hosted service, or one from the
// configuration.
func (m *Models) configuredProvider(id string, kept keys.Key, c *config.Config) settings {
	p := c.Provider[id]
	if id == "amazon-bedrock" && p.NPM == "" && p.API == "" { // OpenCode's name, which says what it is
		p.NPM = "@ai-sdk/amazon-bedrock"
	}
	if id == "google-vertex-anthropic" && p.NPM == "" && p.API == "" { // likewise; one provider of ours has both
		p.NPM = "@ai-sdk/google-vertex/anthropic"
	}
	s := settings{id: id, cfg: provider.Config{ID: id, Kind: provider.DefaultKind(id), Key: kept.Value}, stored: kept.Source, missing: "set provider." + id + ".baseURL in pillion.jsonc"}
	s = applySection(s, p, c)
	if h, ok := hosted[id]; ok && s.cfg.BaseURL == "" { // a key in the environment is for the service's own address
		s.cfg.BaseURL, s.missing = h.base, "set "+h.key+", or run: pillion auth login "+id
		switch v := m.env(h.key); {
		case s.cfg.Key == "" && v != "":
			s.cfg.Key, s.cfg.KeyFrom, s.origin = v, h.key, h.key
		case s.stored != "":
			s.cfg.KeyFrom, s.origin = "the key kept by pillion auth", keyOrigin(s.stored)
		case s.cfg.KeyFrom == "":
			s.cfg.KeyFrom = h.key
		}
		s.usable = s.cfg.Key != ""
	}
	m.cloud(&s, p, true)
	return s
}

// hostedWithKey are the hosted services for which there is a key, in no order; the caller sorts.
func (m *Models) hostedWithKey(stored map[string]keys.Key) (ids []string) {
	for id, h := range hosted {
		if stored[id].Value != "" || m.env(h.key) != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
