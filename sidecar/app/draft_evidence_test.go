package app

import (
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/evidence"
)

// What an agent said it had checked stays in the evidence when its last text is short; what it has withdrawn since does not.
func TestEarlierClaimsStayBesideAShortLastText(t *testing.T) {
	run := func(line string, exit int) evidence.Ran {
		return evidence.Ran{Command: line, Checks: evidence.ChecksIn(line), Exit: exit, Version: "v"}
	}
	for name, c := range map[string]struct {
		words, earlier string
		exit           int
		want           string // the support of the claim about tests
	}{
		"short":            {"Done.", "All tests pass.", 0, change.ClaimSupported},
		"repeated":         {"The tests pass.", "All tests pass.", 0, change.ClaimSupported},
		"no longer so":     {"Done.", "All tests pass.", 1, ""},
		"still claimed":    {"The tests pass.", "All tests pass.", 1, change.ClaimFailed},
		"nothing was said": {"Done.", "Done.", 0, ""},
	} {
		l := ledger{Words: c.words, Earlier: c.earlier, Runs: []evidence.Ran{run("go test ./...", c.exit)}}
		got := ""
		e := l.evidence("v", "v", 1)
		for _, x := range e.Claims {
			got = x.Support
		}
		if got != c.want || len(e.Claims) > 1 {
			t.Errorf("%s: %+v, want %q", name, e.Claims, c.want)
		}
	}
}

// How a test ended before the change is read from the results of its suite; a file that failed as a whole passed before if its tests ran.
func TestHowATestEndedBefore(t *testing.T) {
	before := []change.TestResult{{Suite: "tests.test_a", Name: "one", Status: change.EvidencePassed}, {Suite: "tests.test_b.TestX", Name: "one", Status: change.EvidenceFailed}, {Suite: "tests.test_c", Name: change.WholeFile, Status: change.EvidenceFailed}}
	for _, c := range []struct {
		suite, name string
		results     []change.TestResult
		want        change.EvidenceStatus
	}{
		{"tests.test_a", "one", before, change.EvidencePassed},
		{"tests.test_b.TestX", "one", before, change.EvidenceFailed},
		{"tests.test_a", "two", before, change.EvidenceMissing},
		{"tests.test_a", change.WholeFile, before, change.EvidencePassed},
		{"tests.test_b", change.WholeFile, before, change.EvidencePassed},
		{"tests.test_c", change.WholeFile, before, change.EvidenceFailed},
		{"tests.test_d", change.WholeFile, before, change.EvidenceMissing},
		{"tests.test_a", "one", nil, ""},
	} {
		if got := earlier(change.TestResult{Suite: c.suite, Name: c.name, Status: change.EvidenceFailed}, c.results); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.suite, c.name, got, c.want)
		}
	}
}
