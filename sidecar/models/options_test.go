package models

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
)

// What a configuration says of a provider and its models is in what the session talks to.
func TestOptionsOfAProvider(t *testing.T) {
	var c config.Config
	if err := json.Unmarshal([]byte(`{"provider": {
		"work": {"npm": "@ai-sdk/openai-compatible", "headers": {"A": "b"}, "options": {"baseURL": "http://127.0.0.1:1/v1", "authToken": "t", "organization": "org", "queryParams": {"v": "1"},
			"includeUsage": false, "timeout": 60000, "headerTimeout": false, "reasoningEffort": "low", "serviceTier": "flex"},
			"models": {"m": {"options": {"reasoningEffort": "high", "serviceTier": null}, "variants": {"fast": {"seed": 1}, "low": {"disabled": true}}, "headers": {"X": "y"}, "limit": {"context": 400, "input": 270, "output": 100}, "cost_cache_read": 0.5}}}
	}}`), &c); err != nil {
		t.Fatal(err)
	}
	m := New(Options{Config: func(string) *config.Config { return &c }})
	var s settings
	for _, x := range m.providers("") {
		if x.id == "work" {
			s = x
		}
	}
	q := s.cfg
	if q.Token != "t" || q.Headers["OpenAI-Organization"] != "org" || q.Headers["A"] != "b" || q.Query["v"] != "1" || !q.Quirks.NoStreamUsage || q.Idle != time.Minute || q.First != 24*time.Hour || !s.usable {
		t.Errorf("%+v", q)
	}
	if len(c.Provider["work"].Headers) != 1 {
		t.Errorf("the configuration was changed: %v", c.Provider["work"].Headers)
	}
	model := s.model("m")
	if len(model.Options) != 1 || string(model.Options["reasoningEffort"]) != `"high"` || len(model.Variants) != 1 || string(model.Variants["fast"]["seed"]) != "1" || model.Headers["X"] != "y" {
		t.Errorf("%+v", model)
	}
	if model.Context != 370 || model.CostRead != 0.5 {
		t.Errorf("%+v", model)
	}
	if other := s.model("other"); string(other.Options["serviceTier"]) != `"flex"` {
		t.Errorf("%+v", other)
	}
	if p, err := m.provider(q); err != nil || p == provider.Provider(nil) {
		t.Error(err)
	}
}
