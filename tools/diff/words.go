package diff

import (
	"unicode"
	"unicode/utf8"
)

// Span is a part of a line; byte offsets, half-open.
type Span struct{ Start, End int }

// maxWords is the largest pair of lines, in bytes, that is compared word by word. It keeps a minified file, which
// is one long line, out of the comparison.
const maxWords = 20_000

// Words compares a changed line with its replacement and returns what differs in each, word by word, ascending, for
// highlights inside a line. Lines with less than a quarter in common, or over 20,000 bytes together, differ as a whole;
// equal lines do not differ.
func Words(old, new string) (olds, news []Span) {
	whole := func() ([]Span, []Span) {
		var o, n []Span
		if old != "" {
			o = []Span{{0, len(old)}}
		}
		if new != "" {
			n = []Span{{0, len(new)}}
		}
		return o, n
	}
	if old == new {
		return nil, nil
	}
	if len(old)+len(new) > maxWords {
		return whole()
	}
	a, b := tokens(old), tokens(new)
	edits := Strings(a, b)
	// offs gives the byte offset of each token, and the length of the line at the end.
	offs := func(t []string) []int {
		o := make([]int, len(t)+1)
		for i, s := range t {
			o[i+1] = o[i] + len(s)
		}
		return o
	}
	oa, ob := offs(a), offs(b)
	changed := 0
	for _, e := range edits {
		if e.A1 > e.A0 {
			olds = append(olds, Span{oa[e.A0], oa[e.A1]})
			changed += oa[e.A1] - oa[e.A0]
		}
		if e.B1 > e.B0 {
			news = append(news, Span{ob[e.B0], ob[e.B1]})
			changed += ob[e.B1] - ob[e.B0]
		}
	}
	if changed*4 > (len(old)+len(new))*3 { // under a quarter in common: highlights would only be noise
		return whole()
	}
	return olds, news
}

// tokens cuts a line into words, runs of white space and single other characters; an invalid byte is a token of its own. Joined, they
// are the line, so their lengths add up to offsets.
func tokens(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		k := class(r)
		j := i + n
		for k != 0 && j < len(s) {
			r, n := utf8.DecodeRuneInString(s[j:])
			if class(r) != k {
				break
			}
			j += n
		}
		out = append(out, s[i:j])
		i = j
	}
	return out
}

// class is 1 for characters of a word, 2 for white space, 0 for characters that are tokens of their own. Combining marks belong to words,
// or a highlight would separate an accent from its letter.
func class(r rune) int {
	switch {
	case r == utf8.RuneError:
		return 0
	case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return 1
	case unicode.IsSpace(r):
		return 2
	}
	return 0
}
