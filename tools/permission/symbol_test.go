package permission

import "testing"

func TestARuleForASymbolToolDecidesItsEdits(t *testing.T) {
	rules := Ruleset{{Permission: "edit", Pattern: "*", Action: Allow}, {Permission: "symbol_delete", Pattern: "*", Action: Deny}}
	for tool, want := range map[string]Action{"symbol_delete": Deny, "symbol_replace": Allow, "edit": Allow} {
		if got, _ := rules.Judge(Request{Permission: "edit", Tool: tool, Patterns: []string{"a.go"}}, "a.go"); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
}
