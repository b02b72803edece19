package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Problem is a diagnostic, in the one shape in which it goes from the language server to the model, the event log and the
// editor. Lines and columns count from 1, columns in UTF-16 units, whatever encoding the server negotiated; the end is
// exclusive. EndLine 0 means that only the start is known, as in events of earlier versions.
type Problem struct {
	Path      string   `json:"path"` // absolute and clean
	Line      int      `json:"line"`
	Column    int      `json:"column"`
	EndLine   int      `json:"endLine,omitempty"`
	EndColumn int      `json:"endColumn,omitempty"`
	Severity  Severity `json:"severity"`
	Source    string   `json:"source,omitempty"` // as published, e.g. "compiler"
	Code      string   `json:"code,omitempty"`
	Server    string   `json:"server,omitempty"` // id of the server in the table, e.g. "gopls"; "editor" for an editor's own
	Message   string   `json:"message"`

	Raw json.RawMessage `json:"-"` // as the server sent it: codeAction wants it back unchanged
}

// Severity of a problem, in LSP's words.
type Severity string

// LSP's DiagnosticSeverity 1 to 4.
const (
	SeverityError       Severity = "error"
	SeverityWarning     Severity = "warning"
	SeverityInformation Severity = "information"
	SeverityHint        Severity = "hint"
)

// severities in LSP's order: the number on the wire is the index plus one.
var severities = []Severity{SeverityError, SeverityWarning, SeverityInformation, SeverityHint}

// SeverityOf is LSP's number as a Severity. LSP lets a server omit it; such a problem counts as an error, because a missed error is
// worse than a false one.
func SeverityOf(n int) Severity {
	if n < 1 || n > len(severities) {
		return SeverityError
	}
	return severities[n-1]
}

// Number is LSP's DiagnosticSeverity: 1 for an error, 4 for a hint. An unknown word is an error.
func (s Severity) Number() int { return max(0, slices.Index(severities, s)) + 1 }

// IsError reports whether the server marked the problem as an error; warnings and hints are counted apart.
func (p Problem) IsError() bool { return p.Severity.Number() == 1 }

// Certainty says how much of the change the language servers have checked. An empty list of problems means nothing without it.
type Certainty string

// "No problems" may only be said for Fresh. Partial names in its reason what was not looked at; with Pending an answer
// may still come; with Unavailable none will.
const (
	Fresh       Certainty = "fresh"
	Partial     Certainty = "partial"
	Pending     Certainty = "pending"
	Unavailable Certainty = "unavailable"
)

// certainties has them from the most certain to the least, the order in which LeastCertain compares them.
var certainties = []Certainty{Fresh, Partial, Pending, Unavailable}

// LeastCertain is the less certain of two answers: the verdict on several servers is as certain as the least of them. An unknown
// word ranks below Unavailable.
func LeastCertain(a, b Certainty) Certainty {
	rank := func(c Certainty) int {
		if i := slices.Index(certainties, c); i >= 0 {
			return i
		}
		return len(certainties)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// Verdict is what a check says of a change set: the problems it introduces, those it fixes, and how certain that is.
type Verdict struct {
	Certainty  Certainty `json:"certainty"`
	Reason     string    `json:"reason,omitempty"` // why it is not Fresh
	Introduced []Problem `json:"introduced"`
	Fixed      []Problem `json:"fixed"`
	Unchanged  int       `json:"unchanged"` // problems of the changed files that were there before and still are

	// Unserved: no language server is known for files of these kinds. A person is told that nothing was checked; the
	// model is not, as there is nothing it could do about it.
	Unserved bool `json:"-"`
}

// Known reports whether a server has checked the change, at least in part. It may be called on nil.
func (v *Verdict) Known() bool {
	return v != nil && (v.Certainty == Fresh || v.Certainty == Partial)
}

// Errors is how many errors the change introduces and fixes. Warnings and hints are counted apart: analysers stay silent about a
// package that does not build, so a change that breaks it would seem to fix all its warnings.
func (v *Verdict) Errors() (introduced, fixed int) {
	return countErrors(v.Introduced), countErrors(v.Fixed)
}

// countErrors counts the problems that keep a project from building.
func countErrors(list []Problem) (n int) {
	for _, p := range list {
		if p.IsError() {
			n++
		}
	}
	return n
}

// Headline is the verdict in one line, without its certainty: "fixes 2 errors, introduces 0". Lesser problems follow where
// there are any: "fixes 0 errors, introduces 1; 2 warnings or hints fixed".
func (v *Verdict) Headline() string {
	introduced, fixed := v.Errors()
	s := fmt.Sprintf("fixes %d errors, introduces %d", fixed, introduced)
	if fixed == 1 {
		s = fmt.Sprintf("fixes 1 error, introduces %d", introduced)
	}
	var lesser []string
	for _, l := range []struct {
		n    int
		what string
	}{{len(v.Fixed) - fixed, "fixed"}, {len(v.Introduced) - introduced, "introduced"}} {
		switch {
		case l.n == 1:
			lesser = append(lesser, "1 warning or hint "+l.what)
		case l.n > 1:
			lesser = append(lesser, fmt.Sprintf("%d warnings or hints %s", l.n, l.what))
		}
	}
	if len(lesser) > 0 {
		s += "; " + strings.Join(lesser, ", ")
	}
	return s
}

// WithVerdict is the set with a verdict; the set itself may be shown already and is not written to. Lists are never null
// in JSON: editors iterate over them without a check.
func (s *Set) WithVerdict(v *Verdict) *Set {
	next := *s
	next.Verdict = v
	if v != nil && (v.Introduced == nil || v.Fixed == nil) {
		w := *v
		if w.Introduced == nil {
			w.Introduced = []Problem{}
		}
		if w.Fixed == nil {
			w.Fixed = []Problem{}
		}
		next.Verdict = &w
	}
	return &next
}
