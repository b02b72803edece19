package patch

import (
	"strings"
	"unicode"

	"github.com/pillion-dev/pillion/tools/replace"
)

// passes normalize lines before they are compared, strictest first. The first compares all bytes, CR included, and is used for diffs
// only: models do not see a CR.
var passes = [...]func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimSuffix(s, "\r") },
	func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) },
	strings.TrimSpace,
	func(s string) string { return strings.TrimSpace(replace.Fold(strings.TrimSpace(s))) },
}

// loose is the first pass that ignores white space. Lines found by it or a later one are merged and not replaced; otherwise the white
// space of the patch would be written into the file.
const loose = 2

// text is a file in lines, numbered for fast search in each pass.
type text struct {
	lines []string                      // without the newline, with the CR
	final bool                          // the last line ends with a newline
	ids   [len(passes)][]int32          // by pass: equal for lines that are equal in it; made on first use
	known [len(passes)]map[string]int32 // by pass: normalized line → its number
}

// newText splits a text into lines. final is whether the last one ends with a newline,
// which a patch can change. An empty text has no lines and counts as ended.
func newText(s string) *text {
	t := &text{final: true}
	if s == "" {
		return t
	}
	t.lines = strings.Split(s, "\n")
	if n := len(t.lines) - 1; t.lines[n] == "" {
		t.lines = t.lines[:n]
	} else {
		t.final = false
	}
	return t
}

// number numbers the lines for a pass, so that find compares integers. Most patches need the strictest pass only.
func (t *text) number(pass int) {
	if t.known[pass] != nil {
		return
	}
	known, ids := make(map[string]int32, len(t.lines)), make([]int32, len(t.lines))
	for i, line := range t.lines {
		n := passes[pass](line)
		id, ok := known[n]
		if !ok {
			id = int32(len(known))
			known[n] = id
		}
		ids[i] = id
	}
	t.known[pass], t.ids[pass] = known, ids
}

// find returns the 0-based lines at which want begins, compared as the pass says, from line from on; overlapping places
// too. Linear (Knuth, Morris and Pratt): files of repeated lines would make the plain search quadratic. When one of the
// lines is nowhere in the file it ends at once.
func (t *text) find(pass int, want []string, from int) []int {
	if len(want) == 0 || from+len(want) > len(t.lines) {
		return nil
	}
	t.number(pass)
	pattern := make([]int32, len(want))
	for i, line := range want {
		id, ok := t.known[pass][passes[pass](line)]
		if !ok {
			return nil
		}
		pattern[i] = id
	}
	border := make([]int, len(pattern)+1)
	for i, k := 1, 0; i < len(pattern); i++ {
		for k > 0 && pattern[i] != pattern[k] {
			k = border[k]
		}
		if pattern[i] == pattern[k] {
			k++
		}
		border[i+1] = k
	}
	var out []int
	ids := t.ids[pass]
	for i, k := from, 0; i < len(ids); i++ {
		// On a mismatch only k moves back, never i.
		for k > 0 && ids[i] != pattern[k] {
			k = border[k]
		}
		if ids[i] == pattern[k] {
			k++
		}
		if k == len(pattern) {
			out = append(out, i+1-k)
			k = border[k]
		}
	}
	return out
}

// at reports whether want is at 0-based line i, compared as the pass says.
func (t *text) at(pass int, want []string, i int) bool {
	if i < 0 || i+len(want) > len(t.lines) {
		return false
	}
	for k, line := range want {
		if passes[pass](t.lines[i+k]) != passes[pass](line) {
			return false
		}
	}
	return true
}

// seek is find in the first pass from first on that finds something; pass is len(passes) when none does.
func (t *text) seek(first int, want []string, from int) (places []int, pass int) {
	for pass = first; pass < len(passes); pass++ {
		if places = t.find(pass, want, from); len(places) > 0 {
			return places, pass
		}
	}
	return nil, pass
}

// seekContext finds the lines that an @@ names, from line from on: the whole line, with or without a closing @@, or else the only line
// that begins with that text. A text of one or two bytes, such as "}", is too short for a beginning.
func (t *text) seekContext(context string, from int) []int {
	for _, c := range []string{context, strings.TrimSpace(strings.TrimSuffix(context, "@@"))} {
		if places, _ := t.seek(1, []string{c}, from); len(places) > 0 {
			return places
		}
	}
	want := strings.TrimSpace(context)
	var out []int
	for i := from; i < len(t.lines) && len(want) > 2 && len(out) < 2; i++ {
		if strings.HasPrefix(strings.TrimSpace(t.lines[i]), want) {
			out = append(out, i)
		}
	}
	if len(out) == 1 {
		return out
	}
	return nil
}
