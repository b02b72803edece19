package provider

import (
	"math"
	"testing"
)

func TestLookup(t *testing.T) {
	tests := map[string]struct {
		provider, id string
		context      int
		priced       bool
		images       bool
	}{
		"known":              {"anthropic", "claude-opus-5-5", 1_000_000, true, true},
		"dated":              {"anthropic", "claude-haiku-4-5-20251001", 200_000, true, true},
		"dated with dashes":  {"openai", "gpt-5-2025-08-07", 400_000, true, true},
		"latest":             {"anthropic", "claude-haiku-4-5-latest", 200_000, true, true},
		"gemini's full name": {"gemini", "models/gemini-2.5-pro", 1_048_576, true, true},
		"through a gateway":  {"openrouter", "anthropic/claude-sonnet-4.5:beta", 200_000, false, true},
		"a hosted service":   {"deepseek", "deepseek-v4-pro", 1_000_000, true, false},
		"a service's maker":  {"openrouter", "anthropic/claude-opus-4.5", 200_000, true, true},
		"an older model":     {"openai", "gpt-4o", 128_000, true, true},
		"grok by its family": {"xai", "grok-4", 256_000, false, true},
		"unknown claude":     {"anthropic", "claude-next", 200_000, false, true},
		"unknown":            {"acme", "model-x", unknownContext, false, false},
		"local":              {"ollama", "qwen3:8b", localContext, false, false},
	}
	for name, tt := range tests {
		m := Lookup(tt.provider, tt.id)
		if m.Provider != tt.provider && name != "gemini's full name" || m.ID != tt.id || m.Context != tt.context || (m.CostIn > 0) != tt.priced || m.Images != tt.images {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestTheCatalogueIsWholeAndItsDefaultsAreInIt(t *testing.T) {
	if n := len(catalog()); n < 40 {
		t.Fatalf("%d models", n)
	}
	seen := map[string]bool{}
	for _, e := range catalog() {
		if e.Name == "" || e.Context < 100_000 || e.Output < 8_000 || e.CostOut < e.CostIn || seen[e.String()] || e.longAt > 0 && (e.longIn < 1 || e.longOut < 1) {
			t.Errorf("%+v", e)
		}
		seen[e.String()] = true
	}
	for _, p := range []string{"anthropic", "openai", "google"} {
		for _, id := range []string{DefaultModel(p), SmallModel(p)} {
			if !seen[p+"/"+id] {
				t.Errorf("%s/%s is not in the catalogue", p, id)
			}
		}
		if len(Models(p)) < 5 {
			t.Errorf("%s has few models", p)
		}
	}
}

// Every row of the snapshot can be used: no model without a name or a window, none twice, no price that is not one.
func TestTheSnapshotOfHostedServices(t *testing.T) {
	if n := ShippedHosted().Len(); n < 500 || ShippedHosted().Date.IsZero() {
		t.Fatalf("%d models", n)
	}
	seen := map[string]bool{}
	for _, e := range ShippedHosted().entries {
		if e.Name == "" || e.Context <= 0 || e.Output < 0 || e.CostIn < 0 || e.CostOut < 0 || seen[e.String()] {
			t.Errorf("%+v", e)
		}
		seen[e.String()] = true
	}
	for _, service := range []string{"openrouter", "groq", "xai", "deepseek", "mistral"} {
		if len(HostedModels(service)) == 0 {
			t.Errorf("%s has no models", service)
		}
	}
}

func TestIsGPT5(t *testing.T) {
	for id, want := range map[string]bool{
		"gpt-5": true, "gpt-5.2-codex": true, "gpt-6.1-sol": true, "openai/gpt-5-mini": true, "gpt-10": true,
		"gpt-4o": false, "gpt-4.1": false, "gpt-oss-120b": false, "openai/gpt-oss:20b": false, "gpt-3.5-turbo": false,
		"claude-opus-5-5": false, "gemini-3.8-flash": false, "o3": false, "gpt-neo": false, "": false,
	} {
		if isGPT5(id) != want {
			t.Error(id)
		}
	}
}

func TestCost(t *testing.T) {
	haiku := Lookup("anthropic", "claude-haiku-5-5")
	short := Cost(haiku, Usage{Input: 10_000, Output: 1_000, Reasoning: 1_000, CacheRead: 20_000, CacheWrite: 8_000})
	if want := (10_000*0.1 + 2_000*0.5 + 20_000*0.01 + 8_000*0.125) / 1e6; math.Abs(short-want) > 1e-12 {
		t.Errorf("%g, want %g", short, want)
	}
	long := Cost(haiku, Usage{Input: 100_001})
	if want := 100_001 * 0.5 / 1e6; math.Abs(long-want) > 1e-12 {
		t.Errorf("%g, want %g", long, want)
	}
	if own := Cost(Model{Provider: "anthropic", ID: "claude-haiku-5-5", CostIn: 1}, Usage{Input: 200_000}); own != 0.2 {
		t.Errorf("configured prices are multiplied: %g", own)
	}
	if Cost(Model{ID: "free"}, Usage{Input: 5}) != 0 {
		t.Error("an unknown price costs something")
	}
}

func TestALocalServerTellsItsContextSizes(t *testing.T) {
	list, err := parseModels([]byte(`{"data":[{"id":"a","max_model_len":40960},{"id":"b","meta":{"n_ctx":8192}},{"id":"c"}]}`), "vllm")
	if err != nil || len(list) != 3 || list[0].Context != 40960 || list[1].Context != 8192 || list[2].Context == 0 {
		t.Errorf("%+v %v", list, err)
	}
}
