package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A line of evidence must never read better than what happened.
func TestEvidenceInWords(t *testing.T) {
	for _, c := range []struct {
		e    Check
		want string
	}{
		{Check{Command: "make", Status: EvidencePassed, Seconds: 1.25}, "Passed: make (1.2 s)."},
		{Check{Command: "make", Status: EvidenceFailed, ExitCode: 2, Seconds: 1}, "FAILED: make (exit 2, 1.0 s)."},
		{Check{Command: "make", Status: EvidenceNotRun, Reason: "it was not allowed"}, "Not run: make (it was not allowed)."},
		{Check{Command: "make", Status: "splendid"}, "Not run: make."},
		{Check{Command: "make", Status: EvidencePassed, Stale: true}, "Passed: make (0.0 s, before the last change)."},
		{Check{Command: "make", Status: EvidencePassed, Tests: []TestResult{{Name: "A", Status: EvidencePassed}, {Name: "B", Status: EvidencePassed}}}, "Passed: make (0.0 s, 2 tests)."},
		{Check{Command: "make", Status: EvidenceFailed, ExitCode: 1, Tests: []TestResult{{Name: "A", Status: EvidenceFailed}, {Name: "B", Status: EvidenceSkipped}}}, "FAILED: make (exit 1, 0.0 s, 1 of 2 tests failed, 1 skipped)."},
		{Check{Command: "go test", Status: EvidenceFailed, ExitCode: 1, Tests: []TestResult{{Name: WholePackage, Suite: "p", Status: EvidenceFailed}, {Name: "A", Status: EvidencePassed}}}, "FAILED: go test (exit 1, 0.0 s, 1 package failed as a whole)."},
		{Check{Command: "go test", Status: EvidenceFailed, ExitCode: 1, Tests: []TestResult{{Name: WholePackage, Status: EvidenceFailed, Before: EvidenceFailed}, {Name: WholePackage, Status: EvidenceFailed}, {Name: "A", Status: EvidenceFailed}, {Name: "B", Status: EvidencePassed}}},
			"FAILED: go test (exit 1, 0.0 s, 1 of 2 tests failed, 2 packages failed as a whole, 1 of them before the change too)."},
		{Check{Command: "jest", Status: EvidenceFailed, ExitCode: 1, Tests: []TestResult{{Name: WholeFile, Status: EvidenceFailed, Before: EvidenceFailed}}}, "FAILED: jest (exit 1, 0.0 s, 1 file failed as a whole, as before the change)."},
	} {
		if got := c.e.String(); got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.e, got, c.want)
		}
	}
	if got := (*Set)(nil).EvidenceText(); got != "" {
		t.Errorf("no set: %q", got)
	}
}

// Two declarations of one name are told apart by their places, and a package that does not compile is no test.
func TestLinesNameWhatTheyAreAbout(t *testing.T) {
	e := &Evidence{
		Checks: []Check{{Command: "go test", Status: EvidenceFailed, Tests: []TestResult{{Name: WholePackage, Suite: "example.com/p", Status: EvidenceFailed}, {Name: "a › b", Suite: "/p/x.test.ts", Status: EvidenceFailed}}}},
		Uses:   []Use{{Name: "T.M", Kind: "method", Path: "/p/a.go", Line: 3, What: UseBody}, {Name: "T.M", Kind: "method", Path: "/p/b.go", Line: 4, What: UseBody}, {Name: "T.N", Kind: "method", Path: "/p/b.go", Line: 9, What: UseBody}},
	}
	for range 10 {
		e.Uses = append(e.Uses, Use{Name: "f", Kind: "function", What: UseBody})
	}
	var got []string
	for _, l := range e.Lines(func(path string, line int) string { return fmt.Sprintf("%s:%d", strings.TrimPrefix(path, "/p/"), line) }) {
		got = append(got, l.Text)
	}
	for _, want := range []string{"  failed as a whole: example.com/p", "  failed: a › b (x.test.ts)", "method T.M (a.go:3) changed inside: no other use is known in this project", "method T.M (b.go:4) changed inside: no other use is known in this project",
		"method T.N changed inside: no other use is known in this project", "… and 5 more changed declarations"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// What was run on the old texts is not known of the new ones, and the old set must stay as it was shown.
func TestOtherTextsOutdateTheEvidence(t *testing.T) {
	s := New("chg_1", []File{{Path: "/a", Kind: Edit, Old: "1\n", New: "2\n"}})
	s.Verdict, s.Evidence = &Verdict{Certainty: Fresh}, &Evidence{Checks: []Check{{Command: "make", Status: EvidencePassed}}}
	next := s.WithFiles(nil)
	if next.Verdict != nil || !next.Evidence.Checks[0].Stale || next.ID != s.ID {
		t.Errorf("%+v", next)
	}
	if s.Verdict == nil || s.Evidence.Checks[0].Stale || len(s.Files) != 1 {
		t.Errorf("the set itself was changed: %+v", s)
	}
}

// A person compares it by eye and it is stored, so its form stays.
func TestAVersionIsTwelveDigits(t *testing.T) {
	if got := Version([]File{{Path: "/a", Kind: Edit, New: "x"}}); len(got) != 12 || strings.Trim(got, "0123456789abcdef") != "" {
		t.Errorf("%q", got)
	}
}

// A tally counts packages and files that failed as a whole, not those that passed. Where it has both kinds, it calls them suites.
func TestATallyOfWholePackages(t *testing.T) {
	var n Tally
	n.Add(&Check{Tests: []TestResult{
		{Name: WholePackage, Suite: "a", Status: EvidenceFailed, Before: EvidencePassed},
		{Name: WholePackage, Suite: "b", Status: EvidencePassed},
		{Name: "TestFixed", Status: EvidencePassed, Before: EvidenceFailed},
	}})
	if n.Whole != 1 || n.WholeOld != 0 || n.Failed != 0 || n.Old != 0 || !strings.Contains(n.Failures(), "1 package") {
		t.Errorf("%+v: %s", n, n.Failures())
	}
	n.Add(&Check{Tests: []TestResult{{Name: WholeFile, Suite: "c", Status: EvidenceFailed, Before: EvidenceFailed}}})
	if n.Whole != 2 || n.WholeOld != 1 || !strings.Contains(n.Failures(), "2 suites") {
		t.Errorf("%+v: %s", n, n.Failures())
	}
}

// A command that failed before the change as well is a warning, not bad news, also where its tests have no names.
func TestACheckThatFailedBeforeIsAWarning(t *testing.T) {
	for before, want := range map[EvidenceStatus]Mood{EvidenceFailed: Warning, EvidencePassed: Bad, "": Bad} {
		e := Evidence{Checks: []Check{{Command: "make", Status: EvidenceFailed, Before: before}}}
		if lines := e.Lines(func(path string, line int) string { return path }); len(lines) == 0 || lines[0].Mood != want {
			t.Errorf("before %q: %+v", before, lines)
		}
	}
}
