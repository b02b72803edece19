package lspbridge

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/diff"
)

// run is a range of lines, 0-based, both ends included. When lines are only added, it is the two lines between which they were added.
type run struct {
	first, last int
	added       bool
}

// touches reports whether a range shares a line with the run.
func (r run) touches(s Range) bool { return s.Start.Line <= r.last && r.first <= s.End.Line }

// changedRuns returns the lines of old that now replaces or deletes, and the gaps into which it inserts. Runs are kept apart: an edit of
// the first and the last line of a file says nothing about the lines between. Lines added at the very beginning or end are inside no
// declaration and left out.
func changedRuns(old, now string) []run {
	d := diff.Compute(old, now)
	var out []run
	for _, e := range d.Edits {
		switch {
		case e.A0 < e.A1:
			out = append(out, run{e.A0, e.A1 - 1, false})
		case e.A0 > 0 && e.A0 < len(d.A): // only new lines: the declaration around them changes
			out = append(out, run{e.A0 - 1, e.A0, true})
		}
	}
	return out
}

// lineRemoved reports whether a line of the old text was replaced or deleted.
func lineRemoved(runs []run, line int) bool {
	return slices.ContainsFunc(runs, func(r run) bool { return !r.added && r.first <= line && line <= r.last })
}

// module matches the part of an import that names the module.
var module = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)['"][^'"]+['"]|^from\s+\S+`) })

// lostImports returns the names that old imports and now does not, or imports from another module. A declaration that uses such a name
// changes its meaning although its own lines stay the same.
func lostImports(path, old, now string, runs []run) map[string]bool {
	kind := inferenceFamily(path)
	if kind != "ts" && kind != "py" {
		return nil
	}
	var was []string
	importing, n := false, -1
	for line := range strings.Lines(old) {
		n++
		if !strings.ContainsAny(line[:1], " \t\r\n})") { // a statement begins here
			importing = strings.HasPrefix(line, "import") || strings.HasPrefix(line, "from ")
		}
		if importing && lineRemoved(runs, n) {
			was = append(was, line)
		}
	}
	if len(was) == 0 {
		return nil
	}
	had := map[string]bool{}
	for line := range strings.Lines(old) {
		had[line] = true
	}
	// fresh holds the added lines: a name that they import from the same module is not lost.
	var fresh strings.Builder
	for line := range strings.Lines(now) {
		if !had[line] {
			fresh.WriteString(line)
		}
	}
	still := words(module().ReplaceAllString(fresh.String(), ""))
	out := map[string]bool{}
	for _, line := range was {
		from := module().FindString(line)
		for w := range words(strings.TrimPrefix(strings.Replace(line, from, "", 1), "import")) {
			if !still[w] || !strings.Contains(fresh.String(), from) {
				out[w] = true
			}
		}
	}
	return out
}

// words returns the identifiers in a text, without keywords.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range identifier().FindAllString(text, -1) {
		if !statementWords[w] {
			out[w] = true
		}
	}
	return out
}

// signatureMentions reports whether the signature of a declaration mentions one of the names. For declarations other than functions all
// lines count.
func signatureMentions(path, text string, s Symbol, names map[string]bool) bool {
	last := s.Range.End.Line
	if s.Kind == kindFunction {
		if end, leaks := signature(path, text, s); !leaks {
			last = end
		}
	}
	from := PositionOffset(text, Position{Line: s.Range.Start.Line})
	to := max(from, PositionOffset(text, Position{Line: last + 1}))
	for w := range words(text[from:to]) {
		if names[w] {
			return true
		}
	}
	return false
}
