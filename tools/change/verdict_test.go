package change

import (
	"encoding/json"
	"testing"
)

func TestLeastCertain(t *testing.T) {
	for i, a := range certainties {
		for j, b := range certainties {
			if got, want := LeastCertain(a, b), certainties[max(i, j)]; got != want {
				t.Errorf("%s and %s: %s, want %s", a, b, got, want)
			}
		}
		if got := LeastCertain("sure", a); got != "sure" {
			t.Errorf("an unknown word counts as %s", got)
		}
	}
}

func TestSeverityNumbers(t *testing.T) {
	for n := 1; n <= 4; n++ {
		if got := SeverityOf(n).Number(); got != n {
			t.Errorf("%d became %d", n, got)
		}
	}
	for _, n := range []int{-1, 0, 5} {
		if SeverityOf(n) != SeverityError {
			t.Errorf("%d is %s", n, SeverityOf(n))
		}
	}
}

// Sets of earlier versions are in people's event logs, and editors of earlier versions read ours.
func TestVerdictJSON(t *testing.T) {
	old := `{"id":"c1","files":null,"diagnostics":{"certainty":"fresh","introduced":[{"path":"/p/a.go","line":3,"column":1,"severity":"error","message":"no"}],"fixed":[],"unchanged":2}}`
	var set Set
	if err := json.Unmarshal([]byte(old), &set); err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(set); string(b) != old {
		t.Errorf("%s\nbecame\n%s", old, b)
	}
	bare := (&Set{}).WithVerdict(&Verdict{Certainty: Pending})
	if b, _ := json.Marshal(bare.Verdict); string(b) != `{"certainty":"pending","introduced":[],"fixed":[],"unchanged":0}` {
		t.Errorf("lists must never be null: %s", b)
	}
}

func TestHeadline(t *testing.T) {
	e, w := Problem{Severity: SeverityError}, Problem{Severity: SeverityWarning}
	h := Problem{Severity: SeverityHint}
	for want, v := range map[string]Verdict{
		"fixes 0 errors, introduces 0":                                                        {},
		"fixes 1 error, introduces 2":                                                         {Fixed: []Problem{e}, Introduced: []Problem{e, e}},
		"fixes 0 errors, introduces 1; 2 warnings or hints fixed":                             {Fixed: []Problem{w, h}, Introduced: []Problem{e}},
		"fixes 2 errors, introduces 0; 1 warning or hint fixed, 1 warning or hint introduced": {Fixed: []Problem{e, w, e}, Introduced: []Problem{h}},
	} {
		if got := v.Headline(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
