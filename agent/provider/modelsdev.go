package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// The bounds of a catalogue that comes over a network. What is beyond them is a mistake or an attack.
const (
	MaxModelsDev = 32 << 20    // bytes of the answer; it had 1 MB in February 2026
	maxTokens    = 100_000_000 // of a model's window or output
	maxPrice     = 10_000      // USD per million tokens
	maxNameLen   = 200         // bytes of an id or a name
)

// modelsDevModel is what is read of a model in https://models.dev/api.json; the names are those of its schema.
type modelsDevModel struct {
	Name      string
	Status    string
	Reasoning bool
	ToolCall  bool `json:"tool_call"`
	Cost      struct {
		Input, Output float64
		Read          float64 `json:"cache_read"`
		Write         float64 `json:"cache_write"`
	}
	Limit      struct{ Context, Output float64 }
	Modalities struct{ Input, Output []string }
}

// ParseModelsDev makes a table of hosted models from the text of https://models.dev/api.json. Only models that can call tools and answer in
// text are kept: an agent can use no others. A text with one value that cannot be true is refused whole, since it says that the rest is not
// to be trusted either; so is one with less than half of the models of the program's own table. A service that is missing keeps the
// rows of that table.
func ParseModelsDev(text []byte) (string, error) {
	if len(text) > MaxModelsDev {
		return "", fmt.Errorf("it is longer than %d MiB", MaxModelsDev>>20)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return "", fmt.Errorf("it is not the catalogue: %w", err)
	}
	own := ShippedHosted()
	var out strings.Builder
	n := 0
	for _, service := range HostedServices {
		var x struct{ Models map[string]modelsDevModel }
		if raw, ok := all[service]; ok {
			if err := json.Unmarshal(raw, &x); err != nil {
				return "", fmt.Errorf("%s: %w", service, err)
			}
		}
		var rows []string
		for _, id := range slices.Sorted(maps.Keys(x.Models)) {
			m := x.Models[id]
			if !m.ToolCall || len(m.Modalities.Output) > 0 && !slices.Contains(m.Modalities.Output, "text") || m.Status == "deprecated" || m.Limit.Context == 0 {
				continue
			}
			if err := m.check(id); err != nil {
				return "", fmt.Errorf("%s: %w", service, err)
			}
			rows = append(rows, HostedRow(Model{
				Provider: service, ID: id, Name: strings.TrimSpace(m.Name), Context: int(m.Limit.Context), Output: int(m.Limit.Output),
				Images: slices.Contains(m.Modalities.Input, "image"), PDF: slices.Contains(m.Modalities.Input, "pdf"), Thinking: m.Reasoning,
				CostIn: m.Cost.Input, CostOut: m.Cost.Output, CostRead: m.Cost.Read, CostWrite: m.Cost.Write,
			}))
		}
		n += len(rows)
		if len(rows) == 0 {
			for _, e := range own.by[service] {
				rows = append(rows, HostedRow(e.Model))
			}
		}
		for _, row := range rows {
			out.WriteString(row + "\n")
		}
	}
	if n < own.Len()/2 {
		return "", fmt.Errorf("it has only %d of these services' models, and %d are known", n, own.Len())
	}
	return out.String(), nil
}

// check says what of a model cannot be true.
func (m modelsDevModel) check(id string) error {
	for _, s := range []string{id, m.Name} {
		// A name goes to screens and into a table whose columns end at tabs.
		if s == "" || len(s) > maxNameLen || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
			return fmt.Errorf("the id or name %.60q cannot be one", s)
		}
	}
	if strings.ContainsAny(id, " #") {
		return fmt.Errorf("the id %.60q cannot be one", id)
	}
	for _, price := range []float64{m.Cost.Input, m.Cost.Output, m.Cost.Read, m.Cost.Write} {
		if price < 0 || price > maxPrice || math.IsNaN(price) {
			return fmt.Errorf("%s has a price of %g", id, price)
		}
	}
	for _, tokens := range []float64{m.Limit.Context, m.Limit.Output} {
		if tokens < 0 || tokens > maxTokens || tokens != math.Trunc(tokens) {
			return fmt.Errorf("%s has a limit of %g tokens", id, tokens)
		}
	}
	if m.Limit.Context < 1 {
		return errors.New(id + " has no window")
	}
	return nil
}
