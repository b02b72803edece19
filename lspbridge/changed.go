package lspbridge

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// run is lines of a text, from 0, both ends included. Where lines are only added, it is the two that they come between.
type run struct {
	first, last int
	added       bool
}

func (r run) touches(s Range) bool { return s.Start.Line <= r.last && r.first <= s.End.Line }

// changedRuns are the lines of old that now no longer has, or between which it has new ones: an edit of a file's first and
// of its last line says nothing of what is between them. New lines before or after everything are in nothing.
func changedRuns(old, now string) []run {
	d := diff.Compute(old, now)
	var out []run
	for _, e := range d.Edits {
		switch {
		case e.A0 < e.A1:
			out = append(out, run{e.A0, e.A1 - 1, false})
		case e.A0 > 0 && e.A0 < len(d.A): // only new lines: what they stand in changes
			out = append(out, run{e.A0 - 1, e.A0, true})
		}
	}
	return out
}

// gone reports that a line of the text is among those that are no longer there.
func gone(runs []run, line int) bool {
	return slices.ContainsFunc(runs, func(r run) bool { return !r.added && r.first <= line && line <= r.last })
}

// module is where an import says its names come from.
var module = regexp.MustCompile(`(?m)['"][^'"]+['"]|^from\s+\S+`)

// lost are the names that old imports and now does not, or from elsewhere: what is declared with them is another thing.
func lost(path, old, now string, runs []run) map[string]bool {
	kind := inferring(path)
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
		if importing && gone(runs, n) {
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
	var fresh strings.Builder
	for line := range strings.Lines(now) {
		if !had[line] {
			fresh.WriteString(line)
		}
	}
	still := words(module.ReplaceAllString(fresh.String(), ""))
	out := map[string]bool{}
	for _, line := range was {
		from := module.FindString(line)
		for w := range words(strings.TrimPrefix(strings.Replace(line, from, "", 1), "import")) {
			if !still[w] || !strings.Contains(fresh.String(), from) {
				out[w] = true
			}
		}
	}
	return out
}

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range identifier.FindAllString(text, -1) {
		if !statementWords[w] {
			out[w] = true
		}
	}
	return out
}

// builtOf reports whether the outside of a declaration mentions one of the names.
func builtOf(path, text string, s Symbol, names map[string]bool) bool {
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
