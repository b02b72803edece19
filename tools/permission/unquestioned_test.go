package permission

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What Unquestioned lets through, Judge allows; and where the rules allow without a grant, it lets through.
func TestUnquestionedAgreesWithTheRules(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	part := func() string {
		return pick(".env", "a", "web", ".ENV", "*", "?", "key.pem", "**", ".env.*", "b c", "\\", "~", "é", "")
	}
	allowed, refused := 0, 0
	for range 20_000 {
		var sets []Ruleset
		for range 1 + r.IntN(2) {
			rules := Default()
			if r.IntN(4) == 0 {
				rules = nil // no rule matches: asked
			}
			for range r.IntN(5) {
				var parts []string
				for range 1 + r.IntN(3) {
					parts = append(parts, part())
				}
				pattern := strings.Join(parts, pick("/", "", " "))
				rules = append(rules, Rule{Permission: pick("read", "*", "edit", "re*", "grep"), Pattern: pattern, Action: Action(pick("allow", "ask", "deny")), Origin: pick("", "default", "f:1"), Managed: r.IntN(4) == 0})
			}
			sets = append(sets, rules)
		}
		quiet := Unquestioned(sets, "read", "read")
		var parts []string
		for range 1 + r.IntN(4) {
			parts = append(parts, strings.NewReplacer("*", "x", "?", "y").Replace(part()))
		}
		path := strings.Join(parts, "/")
		want := true
		for _, rules := range sets {
			if a, _ := rules.Judge(Request{Permission: "read", Tool: "read"}, path); a != Allow {
				want = false
			}
		}
		if quiet(path) != want {
			t.Fatalf("%q: %v, and the rules say %v: %+v", path, !want, want, sets)
		}
		if want {
			allowed++
		} else {
			refused++
		}
	}
	if allowed < 1000 || refused < 1000 {
		t.Errorf("%d allowed, %d refused: too few of one kind to show anything", allowed, refused)
	}
}

func BenchmarkUnquestioned(b *testing.B) {
	quiet := Unquestioned([]Ruleset{Default()}, "read", "read")
	for b.Loop() {
		quiet("packages/web/src/components/button.tsx", "/home/someone/work/project/packages/web/src/components/button.tsx")
	}
}
