package provider

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// modelsDev is the program's own table in the form of https://models.dev/api.json.
func modelsDev(t testing.TB) map[string]map[string]map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]map[string]map[string]any{}
	for service, list := range ShippedHosted().Services() {
		models := map[string]map[string]any{}
		for _, m := range list {
			input := []string{"text"}
			if m.Images {
				input = append(input, "image")
			}
			if m.PDF {
				input = append(input, "pdf")
			}
			models[m.ID] = map[string]any{"id": m.ID, "name": m.Name, "tool_call": true, "reasoning": m.Thinking, "modalities": map[string]any{"input": input, "output": []string{"text"}},
				"limit": map[string]any{"context": m.Context, "output": m.Output}, "cost": map[string]any{"input": m.CostIn, "output": m.CostOut, "cache_read": m.CostRead, "cache_write": m.CostWrite}}
		}
		out[service] = map[string]map[string]map[string]any{"models": models}
	}
	return out
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The form of models.dev and the table say the same: what goes through both comes back.
func TestTheCatalogueOfModelsDevIsRead(t *testing.T) {
	all := modelsDev(t)
	all["groq"]["models"]["new-model"] = map[string]any{"name": "New", "tool_call": true, "modalities": map[string]any{"output": []string{"text"}}, "limit": map[string]any{"context": 1e6, "output": 2}, "cost": map[string]any{"input": 0.25}}
	all["groq"]["models"]["speech"] = map[string]any{"name": "S", "tool_call": true, "modalities": map[string]any{"output": []string{"audio"}}, "limit": map[string]any{"context": 5}}
	all["groq"]["models"]["toolless"] = map[string]any{"name": "S", "limit": map[string]any{"context": 5}}
	all["groq"]["models"]["gone"] = map[string]any{"name": "S", "tool_call": true, "status": "deprecated", "limit": map[string]any{"context": 5}}
	delete(all, "zai")
	table, err := ParseModelsDev(encoded(t, all))
	if err != nil {
		t.Fatal(err)
	}
	got, own := ParseHosted(table, time.Now()).Services(), ShippedHosted().Services()
	for service, list := range own {
		if service == "groq" {
			list = append(list, Model{Provider: "groq", ID: "new-model", Name: "New", Context: 1_000_000, Output: 2, CostIn: 0.25})
		}
		byID := map[string]Model{}
		for _, m := range got[service] {
			byID[m.ID] = m
		}
		if len(got[service]) != len(list) {
			t.Errorf("%s: %d models, want %d", service, len(got[service]), len(list))
		}
		for _, m := range list {
			if string(encoded(t, byID[m.ID])) != string(encoded(t, m)) {
				t.Errorf("%+v, want %+v", byID[m.ID], m)
			}
		}
	}
}

func TestACatalogueThatCannotBeTrueIsRefused(t *testing.T) {
	for name, change := range map[string]func(m map[string]any){
		"a negative price":          func(m map[string]any) { m["cost"] = map[string]any{"input": -1} },
		"a negative price of reads": func(m map[string]any) { m["cost"] = map[string]any{"cache_read": -0.1} },
		"a huge price":              func(m map[string]any) { m["cost"] = map[string]any{"output": 1e9} },
		"a price in words":          func(m map[string]any) { m["cost"] = map[string]any{"output": "3"} },
		"a negative window":         func(m map[string]any) { m["limit"] = map[string]any{"context": -5} },
		"a window of half a token":  func(m map[string]any) { m["limit"] = map[string]any{"context": 10.5} },
		"a huge output":             func(m map[string]any) { m["limit"] = map[string]any{"context": 5, "output": 1e15} },
		"a name for the terminal":   func(m map[string]any) { m["name"] = "evil\x1b[2J" },
		"a name with a tab":         func(m map[string]any) { m["name"] = "a\tb" },
		"a name that runs backward": func(m map[string]any) { m["name"] = "a\u202eb" },
		"a name without end":        func(m map[string]any) { m["name"] = strings.Repeat("x", 201) },
		"no name":                   func(m map[string]any) { delete(m, "name") },
		"a list of modalities":      func(m map[string]any) { m["modalities"] = []string{"text"} },
	} {
		all := modelsDev(t)
		for _, m := range all["xai"]["models"] {
			change(m)
			break
		}
		if _, err := ParseModelsDev(encoded(t, all)); err == nil || !strings.Contains(err.Error(), "xai") {
			t.Errorf("%s: %v", name, err)
		}
	}
	few := modelsDev(t)
	for id := range few {
		if id != "groq" {
			delete(few, id)
		}
	}
	whole := encoded(t, modelsDev(t))
	bad := modelsDev(t)
	bad["xai"]["models"]["an id\twith a tab"] = bad["xai"]["models"]["grok-4"]
	for name, text := range map[string][]byte{
		"nothing": nil, "a page": []byte("<html>"), "null": []byte("null"), "a list": []byte("[]"), "none": []byte("{}"), "half": whole[:len(whole)/2],
		"few": encoded(t, few), "too long": make([]byte, MaxModelsDev+1), "models are a list": []byte(`{"xai": {"models": []}}`),
	} {
		if _, err := ParseModelsDev(text); err == nil {
			t.Errorf("%s is used", name)
		}
	}
}

func FuzzModelsDev(f *testing.F) {
	f.Add([]byte(`{"xai": {"models": {"a": {"name": "A", "tool_call": true, "limit": {"context": 5}, "cost": {"input": 1e400}}}}}`))
	f.Add(encoded(f, modelsDev(f)))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := ParseModelsDev(text)
		if err != nil {
			return
		}
		for _, list := range ParseHosted(table, time.Now()).Services() {
			for _, m := range list {
				if m.CostIn < 0 || m.CostOut < 0 || m.Context <= 0 || strings.ContainsAny(m.Name, "\x1b\t\n") {
					t.Fatalf("%+v", m)
				}
			}
		}
	})
}

func TestTheLaterTableOfHostedModelsCounts(t *testing.T) {
	t.Cleanup(func() { FindHosted(func() *Hosted { return nil }) })
	row := HostedRow(Model{Provider: "xai", ID: "grok-99", Name: "Grok", Context: 77, CostIn: 3}) + "\n"
	shipped := ShippedHosted().Date
	for name, tt := range map[string]struct {
		date time.Time
		want int
	}{"later": {shipped.Add(time.Hour), 77}, "of an earlier release": {shipped.Add(-time.Hour), 256_000}} {
		FindHosted(func() *Hosted { return ParseHosted(row, tt.date) })
		if got := Lookup("xai", "grok-99").Context; name == "later" && got != 77 || name != "later" && got == 77 {
			t.Errorf("%s, found: %d", name, got)
		}
		FindHosted(func() *Hosted { return nil })
		if Lookup("xai", "grok-99").Context == 77 {
			t.Errorf("%s: no table is found, and one counts", name)
		}
		UseHosted(ParseHosted(row, tt.date))
		if got := Lookup("xai", "grok-99").Context; (got == 77) != (name == "later") {
			t.Errorf("%s, used: %d", name, got)
		}
	}
}

// Bedrock has each model under several ids; those for its older endpoints, with a version or before a region, cannot be asked for here.
func TestModelsOfACloudAreThoseOfItsAddresses(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range HostedModels("bedrock") {
		listed[m.ID] = true
		for _, part := range []string{"us.", "eu.", "jp.", "au.", "global.", "apac."} {
			if strings.HasPrefix(m.ID, part) || strings.Contains(m.ID, ":") {
				t.Errorf("%s is listed", m.ID)
			}
		}
	}
	for _, id := range []string{"anthropic.claude-opus-4-8", "openai.gpt-5.5", "openai.gpt-oss-120b", "deepseek.v3.2", "moonshotai.kimi-k2.5"} {
		if !listed[id] {
			t.Errorf("%s is not listed", id)
		}
	}
	kinds := map[Kind]bool{}
	for _, m := range HostedModels("google-vertex") {
		kinds[CloudVertex.KindOf(m.ID, "")] = true
	}
	if len(HostedModels("azure")) < 20 || len(kinds) != 3 {
		t.Errorf("azure %d, vertex %v", len(HostedModels("azure")), kinds)
	}
}
