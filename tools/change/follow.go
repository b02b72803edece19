package change

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// maxFollowed is how many hunks follow looks for elsewhere. Each costs a split of both texts into lines and one pass through
// them, and an editor waits for the undo.
const maxFollowed = 200

// follow undoes hunks in a text whose lines were moved since. Hunks without a conflict are merged where they were; the lines
// of the others are looked for elsewhere. ok is false when a hunk's lines are not found, or in more than one place: the
// caller then reports the conflict.
func (f File) follow(mine []Hunk, conflicts []Conflict, text string) (string, bool) {
	// A hunk that merely touches a conflict counts as moved: its lines may be part of the block that moved. Conflict lines count
	// from 1 in f.New, which was the base of the merge.
	var here, moved []Hunk
	for _, h := range mine {
		if from, to := h.new(); slices.ContainsFunc(conflicts, func(c Conflict) bool {
			return from <= c.Line-1+len(diff.Lines(c.Base)) && c.Line-1 <= to
		}) {
			moved = append(moved, h)
		} else {
			here = append(here, h)
		}
	}
	if len(moved) > maxFollowed {
		return "", false
	}
	back, move := f.without(here)
	if move {
		return "", false
	}
	text, clash := Merge(f.New, back, text, false)
	if len(clash) > 0 {
		return "", false
	}
	for _, h := range moved {
		var ok bool
		if text, ok = f.elsewhere(h, text); !ok {
			return "", false
		}
	}
	return text, true
}

// elsewhere replaces a hunk's lines where they are now. One neighbouring line on each side must be there too, two where the
// hunk only deleted lines and so has none of its own. The block must occur exactly once in the applied text and once in
// the present one: anything else would be a guess.
func (f File) elsewhere(h Hunk, text string) (string, bool) {
	was, is := diff.Lines(f.New), diff.Lines(text)
	from, to := h.new()
	around := 1
	if from == to {
		around = 2
	}
	up := max(from-around, 0)
	block := was[up:min(to+around, len(was))]
	if !telling(block) || len(places(was, block)) != 1 {
		return "", false
	}
	at := places(is, block)
	if len(at) != 1 {
		return "", false
	}
	k := at[0] + from - up
	return strings.Join(is[:k], "") + h.OldText + strings.Join(is[k+to-from:], ""), true
}

// telling reports whether lines identify a place: at least two of them hold words. Braces and blank lines occur everywhere, and
// one match of them in a file would be chance.
func telling(block []string) bool {
	n := 0
	for _, l := range block {
		if strings.ContainsFunc(l, func(r rune) bool {
			return r > 127 || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		}) {
			n++
		}
	}
	return n >= 2
}

// places are the lines (0-based) at which a block of lines occurs. It stops at two, which is already ambiguous.
func places(lines, block []string) []int {
	var at []int
	for i := 0; i+len(block) <= len(lines) && len(at) < 2; i++ {
		if slices.Equal(lines[i:i+len(block)], block) {
			at = append(at, i)
		}
	}
	return at
}
