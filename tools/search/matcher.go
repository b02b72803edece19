package search

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/search/trigram"
)

// matcher finds a pattern in text whose lines end in \n. A match never spans two lines. It does in Go what ripgrep does with the
// same pattern; the differences are listed at compile. It is safe for concurrent use.
type matcher struct {
	re      *regexp.Regexp
	literal []byte   // the whole pattern is this text
	needs   []needle // a matching line holds at least one of these; empty: unknown
	tree    *syntax.Regexp
}

// needle is a text that must occur in a matching line. With fold the case of ASCII letters is ignored, and the text is in lower
// case; see equalFold.
type needle struct {
	text []byte
	fold bool
}

// errMultiline is the error for patterns that would have to match across lines. Both engines return it.
var errMultiline = errors.New(`the pattern contains a line break (\n), but lines are searched one at a time; search for one of its lines, then read the file around it`)

// PatternError reports a pattern that no engine can use. Its text is the engine's.
type PatternError struct{ Message string }

func (e *PatternError) Error() string { return e.Message }

// compile builds a matcher. Known differences to Rust's regular expressions: \b and \B know ASCII words only;
// (?x), set operations in classes and the R and u flags are errors; counted repetitions end at 1,000. Go's regexp runs in
// time linear in the text (RE2), so no pattern of a model can hang a search.
func compile(pattern string) (*matcher, error) {
	if op := setOperation(pattern); op != "" {
		return nil, &PatternError{fmt.Sprintf("regex parse error: classes inside of classes, && and ~~ need ripgrep, which is not used here: `%s`; write the class out", op)}
	}
	re, err := syntax.Parse(unicodeClasses(pattern), syntax.Perl|syntax.UnicodeGroups)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) {
			return nil, &PatternError{fmt.Sprintf("regex parse error: %s: `%s`", e.Code, e.Expr)}
		}
		return nil, &PatternError{"regex parse error: " + err.Error()}
	}
	re, ok := oneLine(re, endsCRLF(pattern))
	if !ok {
		return nil, &PatternError{errMultiline.Error()}
	}
	re = re.Simplify()
	m := &matcher{tree: re}
	// For a plain text bytes.Index is many times faster than any automaton.
	if re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0 {
		m.literal = []byte(string(re.Rune))
		return m, nil
	}
	if m.re, err = regexp.Compile(re.String()); err != nil {
		return nil, &PatternError{"regex parse error: " + err.Error()}
	}
	m.needs = needles(re)
	return m, nil
}

// demand returns what an index needs: the trigrams of a match, and a matcher that finds at least what this one and ripgrep find. It is m itself unless the
// pattern looks at the edges of words, which the two see differently beyond ASCII.
func (m *matcher) demand() (*matcher, trigram.Query) {
	q := trigram.For(m.tree)
	re, changed := withoutEdges(m.tree)
	if !changed {
		return m, q
	}
	re = re.Simplify()
	loose, err := regexp.Compile(re.String())
	if err != nil {
		return m, trigram.Query{} // cannot happen: it is a part of what was compiled before
	}
	return &matcher{re: loose, needs: needles(re), tree: re}, q
}

// withoutEdges returns a copy of an expression without \b and \B, and whether there were any.
func withoutEdges(re *syntax.Regexp) (*syntax.Regexp, bool) {
	if re.Op == syntax.OpWordBoundary || re.Op == syntax.OpNoWordBoundary {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, true
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	changed := false
	for i, sub := range re.Sub {
		one, c := withoutEdges(sub)
		out.Sub[i], changed = one, changed || c
	}
	return &out, changed
}

// endsCRLF reports whether $ must also match before \r\n. It does not if the pattern contains \r itself.
func endsCRLF(pattern string) bool {
	return strings.Contains(pattern, "$") && !strings.Contains(pattern, `\r`)
}

// oneLine changes a pattern so that it cannot match a line end, and so that ^ and $ match at line ends. With crlf \r is part of the
// line end, as with ripgrep's --crlf. The result is false if the pattern demands a line end. It works on the syntax tree, because a
// line end can be written in too many ways: \n, \x0a, \s, [^a], (?s). and more.
func oneLine(re *syntax.Regexp, crlf bool) (*syntax.Regexp, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r == '\n' {
				return nil, false
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		re.Op = syntax.OpAnyCharNotNL
		if crlf {
			re = &syntax.Regexp{Op: syntax.OpCharClass, Rune: []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, unicode.MaxRune}}
		}
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText, syntax.OpEndLine:
		re = &syntax.Regexp{Op: syntax.OpEndLine}
		if crlf {
			cr := &syntax.Regexp{Op: syntax.OpQuest, Sub: []*syntax.Regexp{{Op: syntax.OpLiteral, Rune: []rune{'\r'}}}}
			return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{cr, re}}, true
		}
	case syntax.OpCharClass:
		if len(re.Rune) == 2 && re.Rune[0] == '\n' && re.Rune[1] == '\n' {
			return nil, false
		}
		re.Rune = without(re.Rune, '\n')
		if crlf {
			re.Rune = without(re.Rune, '\r')
		}
		if len(re.Rune) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	for i, sub := range re.Sub {
		one, ok := oneLine(sub, crlf)
		if !ok {
			return nil, false
		}
		re.Sub[i] = one
	}
	return re, true
}

// without removes one character from the ranges of a class, which are pairs of first and last character as in regexp/syntax.
func without(ranges []rune, r rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo > r || hi < r {
			out = append(out, lo, hi)
			continue
		}
		if lo < r {
			out = append(out, lo, r-1)
		}
		if hi > r {
			out = append(out, r+1, hi)
		}
	}
	return out
}

// needles returns a list of texts; each match contains at least one of them. It is nil if there is no such list. Data without any
// of these texts cannot match, and that is much faster to find out than with the expression. A wrong list would hide matches, so
// operators that are not understood give nil.
func needles(re *syntax.Regexp) []needle {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase == 0 {
			return []needle{{text: []byte(text)}}
		}
		if t := foldable(text); t != "" {
			return []needle{{text: []byte(t), fold: true}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needles(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needles(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range re.Sub {
			if n := needles(sub); better(n, best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range re.Sub {
			n := needles(sub)
			// Each text is searched for separately, so a longer list is slower.
			if n == nil || len(all)+len(n) > 16 {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// better prefers lists whose shortest text is longer, then shorter lists. A longer text occurs in fewer lines, so it excludes more
// of them.
func better(a, b []needle) bool {
	shortest := func(ns []needle) int {
		n := 0
		for i, x := range ns {
			if i == 0 || len(x.text) < n {
				n = len(x.text)
			}
		}
		return n
	}
	x, y := shortest(a), shortest(b)
	return x > y || x == y && len(a) < len(b)
}

// foldable returns the longest part whose letters have no case variants outside ASCII, in lower case. k and s have such variants (K
// and ſ): (?i)k also matches the Kelvin sign, which is three bytes long. Such letters cannot be part of a needle.
func foldable(text string) string {
	best, start := "", 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] < utf8.RuneSelf && !strings.ContainsRune("kKsS", rune(text[i])) {
			continue
		}
		if i-start > len(best) {
			best = text[start:i]
		}
		start = i + 1
	}
	return strings.ToLower(best)
}

// find returns the bounds of the first match at or after from, or -1. data holds whole lines. Offsets are bytes in data;
// from must be at a line's start.
func (m *matcher) find(data []byte, from int) (start, end int) {
	if m.re == nil {
		i := bytes.Index(data[from:], m.literal)
		if i < 0 {
			return -1, -1
		}
		return from + i, from + i + len(m.literal)
	}
	// With one needle only the lines that contain it are tried.
	for len(m.needs) == 1 && from <= len(data) {
		i := m.needs[0].index(data[from:])
		if i < 0 {
			return -1, -1
		}
		lineStart := from + bytes.LastIndexByte(data[from:from+i], '\n') + 1
		lineEnd := len(data)
		if j := bytes.IndexByte(data[from+i:], '\n'); j >= 0 {
			lineEnd = from + i + j
		}
		if at := m.re.FindIndex(data[lineStart:lineEnd]); at != nil {
			return lineStart + at[0], lineStart + at[1]
		}
		from = lineEnd + 1
	}
	if from > len(data) || !m.possible(data[from:]) {
		return -1, -1
	}
	// from is a line's start, so ^ matches there.
	at := m.re.FindIndex(data[from:])
	if at == nil || from+at[0] == len(data) && len(data) > 0 && data[len(data)-1] == '\n' {
		return -1, -1 // after the last \n there is no line
	}
	return from + at[0], from + at[1]
}

// possible is a quick test by the needles, which most files fail. It may return true for data without a match, but never false for
// data with one.
func (m *matcher) possible(data []byte) bool {
	if len(m.needs) == 0 {
		return true
	}
	for _, n := range m.needs {
		if n.index(data) >= 0 {
			return true
		}
	}
	return false
}

// index is the offset of the needle, or -1. It remembers where the next upper-case and the next lower-case first letter are, so
// that data without one of them is searched for it only once.
func (n needle) index(data []byte) int {
	if !n.fold {
		return bytes.Index(data, n.text)
	}
	// Jump from one candidate of the first letter to the next, in either case.
	lower, upper := n.text[0], byte(unicode.ToUpper(rune(n.text[0])))
	nextLower, nextUpper := -1, -1
	for i := 0; i+len(n.text) <= len(data); i++ {
		if nextLower < i {
			nextLower = indexFrom(data, i, lower)
		}
		if nextUpper < i {
			nextUpper = indexFrom(data, i, upper)
		}
		if i = min(nextLower, nextUpper); i+len(n.text) > len(data) {
			return -1
		}
		if equalFold(data[i:i+len(n.text)], n.text) {
			return i
		}
	}
	return -1
}

// indexFrom returns len(data) if the byte does not occur.
func indexFrom(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// equalFold compares ASCII without case; lower is in lower case and as long as data. bytes.EqualFold compares Unicode, which is
// slower and treats letters as equal that needles exclude.
func equalFold(data, lower []byte) bool {
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
