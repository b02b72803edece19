// Package fuzzy ranks names by how well a typed query matches them. A word matches if the name has all its letters in order; it scores
// higher when they are adjacent, begin words of the name, or are in the last element of a path. Of several words in a query, each must
// match, in any order.
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

// List is a set of names to match against. It is immutable, so it is safe for concurrent use.
type List struct {
	names []string
	lower []string // names in lower case with the same byte offsets, see fold: a match in lower is one in names
	mask  []uint64 // the letters in each name as bits, see letters: most names are excluded without reading them
	base  []int    // byte offset at which the last element of the path begins
}

// Match is a name that matches; a higher score is better.
type Match struct {
	Index int // of the name in the list, from 0
	Score int // comparable only within one query; it may be negative
}

// New makes a list of names. It keeps the slice, which the caller must not change afterwards. Paths have slashes on every system; a
// folder's path may end with one. Names with capitals or non-ASCII letters are copied, so a list takes up to twice their memory.
func New(names []string) *List {
	l := &List{names: names, lower: make([]string, len(names)), mask: make([]uint64, len(names)), base: make([]int, len(names))}
	for i, n := range names {
		l.lower[i] = fold(n)
		l.mask[i] = letters(l.lower[i])
		l.base[i] = strings.LastIndexByte(strings.TrimSuffix(n, "/"), '/') + 1
	}
	return l
}

// Len is the number of names.
func (l *List) Len() int { return len(l.names) }

// Name is the name at index i, as New got it.
func (l *List) Name(i int) string { return l.names[i] }

// Best returns the names that match, best first, at most limit; more reports that there are others. Equal scores are ordered by
// length in bytes, then by name, so that the result does not depend on the order of the list. A query of white space matches all
// names; paths with few elements come first then.
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
		// Sorting now and then, and dropping all but limit, keeps the slice short: a query of one letter matches most names of a project.
		// From then on least is the score that a further name must reach.
		if best = append(best, Match{i, score}); len(best) >= 8*limit+64 {
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

// Positions are the offsets of the query's letters in name i, for highlighting, in UTF-16 units as in LSP positions. They ascend without
// repeats; nil if the name does not match.
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

// score is the sum of the scores of a query's terms, minus 2 for each folder above and 1 for every 8 bytes of the name, so that of equal
// matches the shallow and short one wins. ok is false if a term does not match.
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

// The points of a match. The numbers have no meaning of their own, only the order of names that they lead to, which the tests fix: a
// contiguous term beats scattered letters, and the last element of a path beats its folders.
const (
	perLetter  = 16 // for each letter of a term
	inRow      = 12 // for a letter directly after the one before
	wordStart  = 10 // for a letter that begins a word
	partStart  = 14 // for a letter that begins a path element
	perGap     = 3  // subtracted for each byte between two letters of a term
	gapMost    = 24 // at most subtracted for one such gap
	inBase     = 20 // for a term that is in the last element of the path
	baseStart  = 30 // added if the element begins with the term
	baseWhole  = 60 // added if the term is the whole element, apart from its extension
	mostPlaces = 16 // occurrences of a term that are compared; the rest of a long name is not searched
)

// term is the score of one word at its best place: in the last element of the path if it matches there, else anywhere. places are the
// byte offsets of its letters. They are collected only when want is true, as ranking thousands of names must not allocate.
func (l *List) term(t string, i int, want bool) (score int, places []int, ok bool) {
	name, lower, base := l.names[i], l.lower[i], l.base[i]
	if s, p, ok := weigh(name, lower, t, base, want); ok {
		s += inBase
		if strings.HasPrefix(lower[base:], t) {
			s += baseStart
			// Behind the term there is nothing, or only an extension such as ".go": "makefile" is the file Makefile, "fuzzy" fuzzy.go.
			rest := strings.TrimSuffix(lower[base+len(t):], "/")
			if rest == "" || strings.LastIndexByte(rest, '.') == 0 {
				s += baseWhole
			}
		}
		return s, p, true
	}
	return weigh(name, lower, t, 0, want)
}

// weigh finds a term in a name from a byte offset on: contiguous if possible, else letter by letter.
func weigh(name, lower, t string, from int, want bool) (score int, places []int, ok bool) {
	best := -1
	// Of several occurrences the one that begins a word wins. Without mostPlaces a name of one repeated letter would take quadratic time.
	for at, n := from, 0; n < mostPlaces; n++ {
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

// scattered matches the letters of a term one by one. It searches forward to the first point where all of them have occurred in order,
// and from there back, taking the last occurrence of each, so that the letters found are close together.
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
	// Backwards each letter has an occurrence before end, as the forward search has found one, so LastIndex never returns -1.
	end, back := at, len(t)
	var stack [64]int // enough for what people type, without an allocation for each name
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

// startsWord is the score for a letter that begins a word or a path element of a name, at a byte offset; 0 for any other letter. Words
// begin after a separator, at a capital behind a small letter, and at a digit behind a non-digit. ASCII is decided without decoding.
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

// fold is a name in lower case, with every letter at its old byte offset. A letter whose lower case takes another number of bytes is left
// as it is (İ), or offsets in the folded name would not be offsets in the name. A name without capitals is returned without a copy.
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

// letters has a bit for each letter, digit and path character that occurs in a folded text. A name can match a query only if it has all the
// query's bits.
func letters(s string) (m uint64) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			m |= 1 << (c - 'a')
		case c >= '0' && c <= '9':
			m |= 1 << (26 + c - '0')
		case c >= utf8.RuneSelf:
			// All non-ASCII letters share a bit: a shared bit excludes fewer names, but never a match.
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

// utf16Offsets converts ascending byte offsets in s to offsets in UTF-16 units. A character beyond U+FFFF counts as two units.
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
