package agent

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// A limit in dollars ends the turn after the step that reaches it. Where no price is known it cannot, so no request is made; what runs on
// this machine costs nothing.
func TestALimitInDollars(t *testing.T) {
	for _, c := range []struct {
		name     string
		info     provider.Model
		limit    float64
		requests int
		stop     StopReason
	}{
		{"reached", provider.Model{Provider: "fake", ID: "m", Context: 1000, CostIn: 1, CostOut: 2}, 1e-6, 1, TurnMaxSteps},
		{"not reached", provider.Model{Provider: "fake", ID: "m", Context: 1000, CostIn: 1, CostOut: 2}, 1, 2, TurnEnd},
		{"only answers have a price", provider.Model{Provider: "fake", ID: "m", Context: 1000, CostOut: 2}, 1, 2, TurnEnd},
		{"no price", provider.Model{Provider: "fake", ID: "m", Context: 1000}, 1, 0, TurnError},
		{"no price, no limit", provider.Model{Provider: "fake", ID: "m", Context: 1000}, 0, 2, TurnEnd},
		{"on this machine", provider.Model{Provider: "ollama", ID: "m", Context: 1000}, 1, 2, TurnEnd},
	} {
		h := newHarness(t, calls(`read {"text":"x","filePath":"a.go"}`), says("done"))
		h.model.info = c.info
		p := words("go")
		p.Limits = Limits{Cost: c.limit}
		end, err := h.session().Prompt(t.Context(), p)
		if len(h.model.seen()) != c.requests || end.Stop != c.stop {
			t.Errorf("%s: %d requests, %s, %v", c.name, len(h.model.seen()), end.Stop, err)
		}
		if c.stop == TurnError && !strings.Contains(end.Error, "cost_input") {
			t.Errorf("%s: %q does not say what to do", c.name, end.Error)
		}
	}
}
