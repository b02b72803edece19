// Package fuzzy ranks names by what a person types to mean one of them: all letters in order, better when they stand
// together, begin words, or lie in a path's last part. Several words must all fit, in any order.
//
//	list := fuzzy.New(paths)
//	for _, m := range list.Best("srvgo", 50) { fmt.Println(list.Name(m.Index), list.Positions("srvgo", m.Index)) }
package fuzzy

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// List is names to choose from. It is never changed, and safe for concurrent use.
type List struct {
	names []string
	lower []string // names folded, at the same byte offsets: a match in lower is a match in names
	mask  []uint64 // which letters a name has, see letters: rules most names out without looking at them
	base  []int    // byte offset at which the last part of a path begins
}

// Match is a name that fits; a higher score is better.
type Match struct {
	Index int // of the name in the list, from 0
	Score int // only scores of one query can be compared; it may be negative
}

// New makes a list of names and keeps the slice, which the caller must not change. Paths have slashes on every system; a
// folder's path may end with one. Names with
// capitals or letters beyond ASCII are copied, so a list takes up to twice their memory.
func New(names []string) *List {
	l := &List{names: names, lower: make([]string, len(names)), mask: make([]uint64, len(names)), base: make([]int, len(names))}
	for i, n := range names {
		l.lower[i] = fold(n)
		l.mask[i] = letters(l.lower[i])
		l.base[i] = strings.LastIndexByte(strings.TrimSuffix(n, "/"), '/') + 1
	}
	return l
}

// Len is how many names there are.
func (l *List) Len() int { return len(l.names) }

// Name is the name at index i, as New got it.
func (l *List) Name(i int) string { return l.names[i] }

// Best are the names that fit, best first, at most limit; more reports that there are others. Equal scores are ordered by
// length, then by name, so that the answer does not depend on the order of the list. A query of white space fits all
// names: the shallowest come first.
func (l *List) Best(query string, limit int) (best []Match, more bool) {
	terms := strings.Fields(fold(strings.ToValidUTF8(query, "")))
	var need uint64
	for _, t := range terms {
		need |= letters(t)
	}
	order := func(a, b Match) int {
		if a.Score != b.Score {
			return b.Score - a.Score
		}
		if x, y := len(l.names[a.Index]), len(l.names[b.Index]); x != y {
			return x - y
		}
		return strings.Compare(l.names[a.Index], l.names[b.Index])
	}
	least := math.MinInt
	for i := range l.names {
		if l.mask[i]&need != need {
			continue
		}
		score, ok := l.score(terms, i)
		if !ok {
			continue
		}
		if score < least {
			more = true
			continue
		}
		if best = append(best, Match{i, score}); len(best) >= 8*limit+64 { // only the best are ever put in order
			slices.SortFunc(best, order)
			best, more = best[:limit], true
			if limit > 0 {
				least = best[limit-1].Score
			}
		}
	}
	slices.SortFunc(best, order)
	if len(best) > limit {
		return best[:limit:limit], true
	}
	return best, more
}

// Positions are the offsets in name i, in UTF-16 units as editors count, at which a query's letters were found: what to
// highlight. They ascend without repeats; nil when the name does not fit.
func (l *List) Positions(query string, i int) []int {
	var at []int
	for _, t := range strings.Fields(fold(strings.ToValidUTF8(query, ""))) {
		_, places, ok := l.term(t, i, true)
		if !ok {
			return nil
		}
		at = append(at, places...)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	return utf16Offsets(l.names[i], at)
}

// score adds up the terms of a query, less a little for deep and long names; false when one term does not fit.
func (l *List) score(terms []string, i int) (int, bool) {
	depth := strings.Count(strings.TrimSuffix(l.names[i], "/"), "/")
	total := -2*depth - len(l.names[i])/8
	for _, t := range terms {
		s, _, ok := l.term(t, i, false)
		if !ok {
			return 0, false
		}
		total += s
	}
	return total, true
}

// What a letter is worth, and where. Only the order that they lead to matters: a term
// in one piece beats scattered letters, the last part of a path beats its folders.
const (
	perLetter  = 16
	inRow      = 12 // beside the one before
	wordStart  = 10
	partStart  = 14 // behind a slash
	perGap     = 3
	gapMost    = 24
	inBase     = 20 // the whole term lies in the last part
	baseStart  = 30 // … and begins it
	baseWhole  = 60 // … and is it, an ending aside
	mostPlaces = 16 // occurrences of a term that are weighed
)

// term weighs the best place of one word: in the last part if it fits there, else anywhere. places are byte offsets, which
// are only collected when want is true: ranking thousands of names must not allocate.
func (l *List) term(t string, i int, want bool) (score int, places []int, ok bool) {
	name, lower, base := l.names[i], l.lower[i], l.base[i]
	if s, p, ok := weigh(name, lower, t, base, want); ok {
		s += inBase
		if strings.HasPrefix(lower[base:], t) {
			s += baseStart
			rest := strings.TrimSuffix(lower[base+len(t):], "/")
			if rest == "" || strings.LastIndexByte(rest, '.') == 0 {
				s += baseWhole
			}
		}
		return s, p, true
	}
	return weigh(name, lower, t, 0, want)
}

// weigh finds a term in a name from an offset on: in one piece where that is possible, else letter by letter.
func weigh(name, lower, t string, from int, want bool) (score int, places []int, ok bool) {
	best := -1
	for at, n := from, 0; n < mostPlaces; n++ { // a name of one repeated letter would be searched in quadratic time
		k := strings.Index(lower[at:], t)
		if k < 0 {
			break
		}
		at += k
		if s := startsWord(name, at); best < 0 || s > score {
			best, score = at, s
		}
		at++
	}
	if best >= 0 {
		letters := utf8.RuneCountInString(t)
		score += letters*perLetter + (letters-1)*inRow
		if want {
			for k := range t {
				places = append(places, best+k)
			}
		}
		return score, places, true
	}
	return scattered(name, lower, t, from, want)
}

// scattered goes forward to where the term's letters have all been seen, and back from there, so that the letters lie
// as close together as they can at that place.
func scattered(name, lower, t string, from int, want bool) (score int, places []int, ok bool) {
	at := from
	for i, r := range t {
		k, n := 0, 1
		if r < utf8.RuneSelf {
			k = strings.IndexByte(lower[at:], byte(r))
		} else {
			_, n = utf8.DecodeRuneInString(t[i:])
			k = strings.Index(lower[at:], t[i:i+n])
		}
		if k < 0 {
			return 0, nil, false
		}
		at += k + n
	}
	end, back := at, len(t)
	var stack [64]int // on the stack for all queries that people type
	found := stack[:0]
	for back > 0 {
		_, n := utf8.DecodeLastRuneInString(t[:back])
		back -= n
		if n == 1 {
			end = from + strings.LastIndexByte(lower[from:end], t[back])
		} else {
			end = from + strings.LastIndex(lower[from:end], t[back:back+n])
		}
		found = append(found, end)
	}
	slices.Reverse(found)
	for k, p := range found {
		score += perLetter + startsWord(name, p)
		if k > 0 {
			_, n := utf8.DecodeRuneInString(name[found[k-1]:])
			if gap := p - found[k-1] - n; gap == 0 {
				score += inRow
			} else {
				score -= min(gap*perGap, gapMost)
			}
		}
	}
	if want {
		places = slices.Clone(found)
	}
	return score, places, true
}

// startsWord is what a letter gains where a word begins.
func startsWord(name string, at int) int {
	if at == 0 {
		return partStart
	}
	if b, h := name[at-1], name[at]; b < utf8.RuneSelf && h < utf8.RuneSelf {
		switch {
		case b == '/':
			return partStart
		case b == '_', b == '-', b == '.', b == ' ', b >= 'a' && b <= 'z' && h >= 'A' && h <= 'Z', (b < '0' || b > '9') && h >= '0' && h <= '9':
			return wordStart
		}
		return 0
	}
	before, _ := utf8.DecodeLastRuneInString(name[:at])
	here, _ := utf8.DecodeRuneInString(name[at:])
	switch {
	case before == '/':
		return partStart
	case before == '_' || before == '-' || before == '.' || before == ' ':
		return wordStart
	case unicode.IsLower(before) && unicode.IsUpper(here), !unicode.IsDigit(before) && unicode.IsDigit(here):
		return wordStart
	}
	return 0
}

// fold is a name in small letters, letter by letter at the same byte offsets; letters whose small form has another
// length stay.
func fold(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if low := unicode.ToLower(r); low != r && utf8.RuneLen(low) == n {
			b = utf8.AppendRune(b, low)
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

// letters are the letters and digits of a folded text, a bit each.
func letters(s string) (m uint64) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			m |= 1 << (c - 'a')
		case c >= '0' && c <= '9':
			m |= 1 << (26 + c - '0')
		case c >= utf8.RuneSelf:
			// One bit for all other letters: there is no room to tell them apart, and this only rules out.
			m |= 1 << 40
		case c == '/':
			m |= 1 << 41
		case c == '.':
			m |= 1 << 42
		case c == '_':
			m |= 1 << 43
		case c == '-':
			m |= 1 << 44
		}
	}
	return m
}

// utf16Offsets turns byte offsets, in order, into UTF-16 ones.
func utf16Offsets(s string, at []int) []int {
	out := make([]int, 0, len(at))
	units, k := 0, 0
	for i, r := range s {
		for k < len(at) && at[k] == i {
			out = append(out, units)
			k++
		}
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return out
}
