package lspbridge

import (
	"regexp"
	"slices"
	"sort"
	"strings"
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
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	var out []run
	compareLines(a, b, 0, func(r run) {
		if r.last < r.first { // only new lines: what they stand in changes
			if r.first == 0 || r.first >= len(a)-1 && strings.TrimSpace(a[len(a)-1]) == "" {
				return
			}
			r = run{r.first - 1, r.first, true}
		}
		out = append(out, r)
	})
	return out
}

// gone reports that a line of the text is among those that are no longer there.
func gone(runs []run, line int) bool {
	return slices.ContainsFunc(runs, func(r run) bool { return !r.added && r.first <= line && line <= r.last })
}

// compareLines says the runs of a (which begins at line from) that are not in b; an empty one where b has lines more. Lines
// that both have just once, in the same order, hold the texts together.
func compareLines(a, b []string, from int, changed func(run)) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, from = a[1:], b[1:], from+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 && len(b) == 0 {
		return
	}
	pairs := inOrder(a, b)
	if len(pairs) == 0 {
		changed(run{first: from, last: from + len(a) - 1})
		return
	}
	i, j := 0, 0
	for _, p := range append(pairs, [2]int{len(a), len(b)}) {
		compareLines(a[i:p[0]], b[j:p[1]], from+i, changed)
		i, j = min(p[0]+1, len(a)), min(p[1]+1, len(b))
	}
}

// inOrder pairs the lines that a and b both have exactly once: as many as come in the same order.
func inOrder(a, b []string) [][2]int {
	type seen struct{ inA, inB, a, b int }
	lines := make(map[string]seen, len(a))
	for i, l := range a {
		s := lines[l]
		s.inA, s.a = s.inA+1, i
		lines[l] = s
	}
	for j, l := range b {
		if s, ok := lines[l]; ok {
			s.inB, s.b = s.inB+1, j
			lines[l] = s
		}
	}
	var both [][2]int
	for i, l := range a {
		if s := lines[l]; s.inA == 1 && s.inB == 1 {
			both = append(both, [2]int{i, s.b})
		}
	}
	// The longest increasing sequence: ends holds the smallest end of those of each length, before what each one follows.
	var ends []int
	before := make([]int, len(both))
	for k, p := range both {
		n := sort.Search(len(ends), func(n int) bool { return both[ends[n]][1] >= p[1] })
		if before[k] = -1; n > 0 {
			before[k] = ends[n-1]
		}
		ends = append(ends[:n], append([]int{k}, ends[min(n+1, len(ends)):]...)...)
	}
	if len(ends) == 0 {
		return nil
	}
	var out [][2]int
	for k := ends[len(ends)-1]; k >= 0; k = before[k] {
		out = append(out, both[k])
	}
	slices.Reverse(out)
	return out
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
