package change

import (
	"fmt"
	"slices"
	"strings"
)

// Evidence is a command that was run on a change set before it was proposed, and how it ended. A command that did not run is
// evidence too: a reader must not assume that it passed.
type Evidence struct {
	Command  string         `json:"command"` // its name for people; the command line itself may be long
	Status   EvidenceStatus `json:"status"`
	ExitCode int            `json:"exitCode,omitempty"`
	Seconds  float64        `json:"seconds,omitempty"`
	Reason   string         `json:"reason,omitempty"` // why it did not run
	Output   string         `json:"output,omitempty"` // its end, where failures stand
	Stale    bool           `json:"stale,omitempty"`  // the files have changed since it ran
	Tests    []TestResult   `json:"tests,omitempty"`  // where the command tells of each test
}

// EvidenceStatus says how a command, or a test, ended.
type EvidenceStatus string

// A command passed, failed or did not run; a test passed, failed or was skipped.
const (
	EvidencePassed  EvidenceStatus = "passed"
	EvidenceFailed  EvidenceStatus = "failed"
	EvidenceNotRun  EvidenceStatus = "notRun"
	EvidenceSkipped EvidenceStatus = "skipped"
)

// TestResult is one test of a command that ran.
type TestResult struct {
	Name    string         `json:"name"`
	Suite   string         `json:"suite,omitempty"` // package or file
	Status  EvidenceStatus `json:"status"`
	Seconds float64        `json:"seconds,omitempty"`
	Output  string         `json:"output,omitempty"` // its end, of a test that failed
	Before  EvidenceStatus `json:"before,omitempty"` // how it ended without the change; empty: not known
}

// String is a line of an approval request: "FAILED: go test ./... (exit 1, 2.3 s, 1 of 14 tests)".
func (e Evidence) String() string {
	var in []string
	head := "Passed: "
	switch e.Status {
	case EvidencePassed:
	case EvidenceFailed:
		head = "FAILED: "
		if e.ExitCode != 0 {
			in = append(in, fmt.Sprintf("exit %d", e.ExitCode))
		}
	default:
		// Anything unknown counts as not run: a status of a later version must not read as a success.
		return "Not run: " + e.Command + because(e.Reason) + "."
	}
	in = append(in, fmt.Sprintf("%.1f s", e.Seconds))
	if n := len(e.Tests); n > 0 {
		failed := 0
		for _, t := range e.Tests {
			if t.Status == EvidenceFailed {
				failed++
			}
		}
		if failed > 0 {
			in = append(in, fmt.Sprintf("%d of %d tests failed", failed, n))
		} else {
			in = append(in, fmt.Sprintf("%d tests", n))
		}
	}
	if e.Stale {
		in = append(in, "before the last change")
	}
	return head + e.Command + " (" + strings.Join(in, ", ") + ")."
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// EvidenceText is the evidence of a set, one line a command; "" where nothing was run.
func (s *Set) EvidenceText() string {
	if s == nil {
		return ""
	}
	lines := make([]string, len(s.Evidence))
	for i, e := range s.Evidence {
		lines[i] = e.String()
	}
	return strings.Join(lines, "\n")
}

// outdated are the same commands for files that have changed since they ran.
func outdated(list []Evidence) []Evidence {
	out := slices.Clone(list)
	for i := range out {
		out[i].Stale = true
	}
	return out
}

// WithFiles is the set with other texts: what was known of its problems is not known of these, and what was run on it is outdated.
func (s Set) WithFiles(files []File) *Set {
	s.Files, s.Verdict, s.Evidence = files, nil, outdated(s.Evidence)
	return &s
}
