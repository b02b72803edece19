package replace

import "unicode/utf8"

// distance is the Levenshtein distance of two lines in code points, by bit vectors (Myers 1999, in Hyyrö's
// form for patterns over 64 characters): 64 cells of the table in a handful of instructions. A byte that is
// not UTF-8 is a character of its own.
func distance(a, b string) int {
	// The shorter text becomes the pattern: its length decides how many words a column has.
	a, b = unlike(a, b)
	x, y := runes(a), runes(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) == 0 {
		return len(y)
	}
	words := (len(x) + 63) / 64
	// peq has for each character a bit vector of where the pattern has it.
	peq := make(map[rune][]uint64, len(x))
	for i, r := range x {
		v := peq[r]
		if v == nil {
			v = make([]uint64, words)
			peq[r] = v
		}
		v[i/64] |= 1 << (i % 64)
	}
	zero := make([]uint64, words)
	// pv and mv hold the vertical differences of a column: where the cell below is greater by one, and where it is less.
	pv, mv := make([]uint64, words), make([]uint64, words)
	for w := range pv {
		pv[w] = ^uint64(0)
	}
	score := len(x)
	top := uint64(1) << ((len(x) - 1) % 64)
	for _, r := range y {
		eqs := peq[r]
		if eqs == nil {
			eqs = zero
		}
		hin := 1 // the table's first row grows by one a column
		for w := range words {
			eq, p, m := eqs[w], pv[w], mv[w]
			xv := eq | m
			if hin < 0 {
				eq |= 1
			}
			xh := (((eq & p) + p) ^ p) | eq
			ph := m | ^(xh | p)
			mh := p & xh
			high := uint64(1) << 63
			if w == words-1 {
				high = top
			}
			hout := 0
			if ph&high != 0 {
				hout = 1
			} else if mh&high != 0 {
				hout = -1
			}
			ph <<= 1
			mh <<= 1
			if hin < 0 {
				mh |= 1
			} else if hin > 0 {
				ph |= 1
			}
			pv[w] = mh | ^(xv | ph)
			mv[w] = ph & xv
			hin = hout
		}
		score += hin
	}
	return score
}

// steps is the most that distance will cost, in word steps, for spend to check before. It counts bytes and not characters, so it is too
// high for text outside of ASCII.
func steps(a, b string) int {
	a, b = unlike(a, b)
	short, long := min(len(a), len(b)), max(len(a), len(b))
	return (short+63)/64*long + short + 8
}

// unlike cuts off what both begin and end with, at character boundaries. It does not change the distance, and quoted lines
// usually differ in a word, so little is left to compare.
func unlike(a, b string) (string, string) {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	a, b = a[n:], b[n:]
	n = 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return a[:len(a)-n], b[:len(b)-n]
}

// runes decodes, keeping different invalid bytes different: a byte that is not UTF-8 gets a number above all code
// points, where a plain conversion would make all of them U+FFFD and two different lines equal.
func runes(s string) []rune {
	out := make([]rune, 0, len(s))
	for i, r := range s {
		if r == utf8.RuneError && (i+3 > len(s) || s[i:i+3] != "\ufffd") {
			r = utf8.MaxRune + 1 + rune(s[i])
		}
		out = append(out, r)
	}
	return out
}
