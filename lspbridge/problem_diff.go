package lspbridge

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
)

// DiffDiagnostics compares a file's problems before and after a change. Lines move when text is edited, so problems are matched by
// severity, server, code and message instead of position. Each old problem matches one new one; where one side has more, those farthest (in
// lines) from the other side are the difference.
func DiffDiagnostics(before, after []change.Problem) (introduced, fixed []change.Problem, unchanged int) {
	old := map[string][]change.Problem{}
	for _, d := range before {
		old[problemKey(d)] = append(old[problemKey(d)], d)
	}
	now := map[string][]change.Problem{}
	var order []string
	for _, d := range after {
		k := problemKey(d)
		if now[k] == nil {
			order = append(order, k)
		}
		now[k] = append(now[k], d)
	}
	for _, k := range order {
		a, b := now[k], old[k]
		delete(old, k)
		unchanged += min(len(a), len(b))
		// Unmatched are those farthest from any problem of the other side.
		introduced = append(introduced, surplus(a, b)...)
		fixed = append(fixed, surplus(b, a)...)
	}
	// A problem whose key no new problem has is fixed; keys on both sides were deleted above.
	for _, d := range before {
		k := problemKey(d)
		fixed = append(fixed, old[k]...)
		delete(old, k)
	}
	return introduced, fixed, unchanged
}

// surplus returns the len(a)-len(b) problems of a that are farthest from any of b; none when a is not longer than b.
func surplus(a, b []change.Problem) []change.Problem {
	n := max(0, len(a)-len(b))
	if len(b) == 0 {
		return a
	}
	distance := func(d change.Problem) int {
		best := math.MaxInt // b is not empty
		for _, o := range b {
			best = min(best, max(d.Line-o.Line, o.Line-d.Line))
		}
		return best
	}
	s := slices.Clone(a)
	slices.SortStableFunc(s, func(x, y change.Problem) int { return cmp.Compare(distance(y), distance(x)) })
	return s[:n]
}

// problemKey returns what identifies a problem before and after an edit.
func problemKey(d change.Problem) string {
	var b strings.Builder
	b.WriteByte(byte('0' + d.Severity.Number()))
	for _, s := range []string{d.Server, d.Source, d.Code} {
		b.WriteString(s)
		b.WriteByte(0)
	}
	b.WriteString(withoutLineNumbers(withoutFix(d.Message)))
	return b.String()
}

// withoutFix removes what clangd adds to a message that it has a fix for: whether it has one depends on how far its index is.
func withoutFix(m string) string {
	return strings.TrimSuffix(strings.TrimSuffix(m, " (fix available)"), " (fixes available)")
}

// withoutLineNumbers removes the line numbers that servers put into messages (":12:5"): they change when the text moves.
func withoutLineNumbers(m string) string {
	var b strings.Builder
	for i := 0; i < len(m); i++ {
		if m[i] == ':' && i+1 < len(m) && m[i+1] >= '0' && m[i+1] <= '9' { // :12:5
			for i+1 < len(m) && m[i+1] >= '0' && m[i+1] <= '9' {
				i++
			}
			continue
		}
		b.WriteByte(m[i])
	}
	return b.String()
}

// unique sorts problems and removes duplicates: two servers, or one with two severities, often report the same problem in the same place.
// The most severe one is kept.
func unique(list []change.Problem) []change.Problem {
	sortDiagnostics(list)
	type place struct {
		path, said string
		line       int
	}
	seen := map[place]change.Problem{}
	return slices.DeleteFunc(list, func(d change.Problem) bool {
		k := place{d.Path, strings.ToLower(strings.TrimRight(withoutLineNumbers(d.Message), ". ")), d.Line}
		had, twice := seen[k]
		// One server may report the same message at two places of one line; those are two problems.
		if twice && (samePlace(had, d) || had.Server != d.Server) {
			return true
		}
		seen[k] = d
		return false
	})
}

// sortDiagnostics sorts by severity (errors first), then by file and position.
func sortDiagnostics(list []change.Problem) {
	slices.SortStableFunc(list, func(a, b change.Problem) int {
		return cmp.Or(cmp.Compare(a.Severity.Number(), b.Severity.Number()), strings.Compare(a.Path, b.Path),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
