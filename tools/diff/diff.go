// Package diff compares texts line by line: which blocks of lines changed, unified text that git and patch apply,
// the words that differ in a changed line, and where an old line went. It knows no files; names are only printed.
//
//	s := diff.Compute(old, new)
//	fmt.Print(s.Unified("a/x.go", "b/x.go"))
//	line, ok := s.NewLine(41) // 0-based
//
// The search is sergi/go-diff on numbered lines (never on characters: it would turn bytes that are not UTF-8 into
// U+FFFD). Lines that occur once on both sides anchor it, so that big files are cut into small problems first.
package diff

import "strings"

// Edit says that the old lines [A0,A1) became the new lines [B0,B1); 0-based, half-open. The edits of a Script are sorted, with at
// least one common line between two of them; package change relies on that when it merges. Either range may be empty, never both.
type Edit struct{ A0, A1, B0, B1 int }

// Script is the difference of two texts. It shares their memory and is not changed after Compute.
type Script struct {
	A, B  []string // lines with their "\n"; only the last may lack it
	Edits []Edit

	old, new string // the texts; "" where the script was not made by Compute
}

// Compute compares two texts of any bytes; line endings are part of the lines, so a change of CRLF to LF is a change. It
// takes at most about a third of a second: after that the rest counts as replaced, which is still a correct script, only
// a longer one.
func Compute(old, new string) *Script {
	// Callers often compare only to see whether anything changed; equal texts need no search.
	if old == new {
		l := Lines(old)
		return &Script{A: l, B: l}
	}
	a, b := Lines(old), Lines(new)
	return &Script{A: a, B: b, Edits: Strings(a, b), old: old, new: new}
}

// Lines cuts a text after each "\n". Joined, the lines are the text to the byte, and no line is empty: Unified and Apply index a line's
// first and last byte without a check. The empty text has no lines.
func Lines(s string) []string {
	if s == "" {
		return nil
	}
	l := make([]string, 0, strings.Count(s, "\n")+1)
	for {
		i := strings.IndexByte(s, '\n')
		if i < 0 || i+1 == len(s) {
			return append(l, s)
		}
		l = append(l, s[:i+1])
		s = s[i+1:]
	}
}

// Stat counts the added and the removed lines; a changed line counts in both.
func (s *Script) Stat() (added, removed int) {
	for _, e := range s.Edits {
		added += e.B1 - e.B0
		removed += e.A1 - e.A0
	}
	return added, removed
}

// OldText is the text an edit removes, with its line endings.
func (s *Script) OldText(e Edit) string { return joined(s.old, s.A, e.A0, e.A1) }

// NewText is the text an edit inserts, with its line endings.
func (s *Script) NewText(e Edit) string { return joined(s.new, s.B, e.B0, e.B1) }

// joined is the lines [from,to) as one text. whole is what the lines were cut from: all of it needs no copy, and such an edit may have
// tens of megabytes. Other parts are copied, so that a hunk that is kept does not keep a whole file in memory. whole may be "" for a
// Script that was not made by Compute.
func joined(whole string, lines []string, from, to int) string {
	if whole != "" && from == 0 && to == len(lines) {
		return whole
	}
	return strings.Join(lines[from:to], "")
}

// NewLine maps an old line (0-based) to its line in the new text; ok is false when the line was changed or removed,
// and the line given then is where its replacement begins.
func (s *Script) NewLine(old int) (line int, ok bool) {
	lo, hi := 0, len(s.Edits) // first edit with A1 > old
	for lo < hi {
		m := (lo + hi) / 2
		if s.Edits[m].A1 > old {
			hi = m
		} else {
			lo = m + 1
		}
	}
	// An insertion has A0 == A1, so it never holds an old line: A1 > old and A0 <= old is a line that went.
	if lo < len(s.Edits) && s.Edits[lo].A0 <= old {
		return s.Edits[lo].B0, false
	}
	if lo == 0 {
		return old, true
	}
	e := s.Edits[lo-1]
	return old + e.B1 - e.A1, true
}
