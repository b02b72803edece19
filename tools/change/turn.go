package change

import (
	"sort"
	"strconv"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Together is the sum of several changes of one file, against the text before the first of them. A person reviews it after a
// turn: ten edits of a file are one diff. What the person wrote in between is in none of its hunks.
type Together struct {
	Path    string // before the first change
	NewPath string // after the last one, when it is another
	Kind    Kind   // of the sum; empty when the changes cancel each other
	Base    string // text before the first change
	Text    string // Base with the changes, without what the person wrote
	Binary  bool
	Hunks   []TurnHunk
}

// TurnHunk is a hunk of the sum. NewStart and NewLines are in the file as it is now, so that an editor can show it there.
type TurnHunk struct {
	Hunk
	Members []Ref // the hunks of the sets that it comes from, oldest first: undoing it undoes these
}

// Part is a member of an applied set.
type Part struct {
	Set  string
	File File
}

// Sum adds up the parts of one file, oldest first. now is the file's present text, in which the hunks are located. The id of a
// hunk is that of the oldest hunk in it, so that it stays the same when more changes follow in the turn.
func Sum(parts []Part, now string) Together {
	if len(parts) == 0 {
		return Together{}
	}
	first, last := parts[0].File, parts[len(parts)-1].File
	t := Together{Path: first.Path, Base: first.Old, Text: first.Old}
	at, exists := first.Path, first.Kind != Create
	for _, p := range parts {
		f := p.File
		t.Binary = t.Binary || f.Binary
		// What the person wrote between two changes is in f.Old and f.New alike, so the merge leaves it out.
		merged, clash := Merge(f.Old, f.New, t.Text, false)
		if len(clash) > 0 || f.Binary {
			merged = f.New // the agent changed lines that the person wrote; they cannot be told apart, so both are shown
		}
		t.Text, exists = merged, f.Kind != Delete
		if f.Kind == Rename {
			at = f.NewPath
		}
	}
	if at != first.Path {
		t.NewPath = at
	}
	switch was := first.Kind != Create; {
	case was && !exists:
		t.Kind = Delete
	case !was && exists:
		t.Kind = Create
		if t.NewPath != "" {
			t.Path, t.NewPath = t.NewPath, ""
		}
	case was && t.NewPath != "":
		t.Kind = Rename
	case was && (t.Base != t.Text || last.Mode != 0):
		t.Kind = Edit
	default:
		return t
	}
	t.cut(parts, now)
	return t
}

// cut makes the hunks of the sum and finds the members of each.
func (t *Together) cut(parts []Part, now string) {
	whole := New("", []File{{Path: t.Path, NewPath: t.NewPath, Kind: t.Kind, Old: t.Base, New: t.Text, Binary: t.Binary, Mode: mode(parts)}})
	here := diff.Compute(t.Text, now)
	list := whole.Files[0].Hunks
	t.Hunks = make([]TurnHunk, len(list))
	for i, h := range list {
		t.Hunks[i] = TurnHunk{Hunk: place(h, here)}
	}
	for _, p := range parts {
		// The lines of a part are compared with those of the sum in two texts: its old lines in the base, its new ones in the sum.
		down, up := diff.Compute(t.Base, p.File.Old), diff.Compute(p.File.New, t.Text)
		for _, h := range p.File.Hunks {
			for i, of := range list {
				if h.whole() && of.whole() || !h.whole() && !of.whole() && (t.Binary || made(h, of, down, up)) {
					t.Hunks[i].add(p, h.ID)
				}
			}
		}
	}
	seen := map[string]int{}
	for i := range t.Hunks {
		h := &t.Hunks[i]
		if h.ID = t.Path + "#" + h.ID; len(h.Members) > 0 {
			h.ID = h.Members[0].Set + "/" + h.Members[0].Hunks[0]
		}
		seen[h.ID]++
		if n := seen[h.ID]; n > 1 {
			// A hunk of a part may be split into several in the sum, which then share their oldest member. Editors name hunks by
			// id, so ids must differ.
			h.ID += "+" + strconv.Itoa(n)
		}
	}
}

// mode is the permission bits that the newest part sets, 0 when it sets none.
func mode(parts []Part) uint32 { return parts[len(parts)-1].File.Mode }

// add records a hunk of a part as one of the members.
func (h *TurnHunk) add(p Part, id string) {
	h.Members = append(h.Members, Ref{Set: p.Set, Path: p.File.Path, Hunks: []string{id}})
}

// place moves a hunk's new lines to where they are now: here is the script from the sum to the present text.
func place(h Hunk, here *diff.Script) Hunk {
	if h.NewLines == 0 {
		h.NewStart = min(moved(here, h.NewStart, false), len(here.B))
		return h
	}
	from := moved(here, h.NewStart-1, true)
	to := max(moved(here, h.NewStart-1+h.NewLines, false), from)
	h.NewStart, h.NewLines = from+1, to-from
	if h.NewLines == 0 {
		h.NewStart = from
	}
	return h
}

// moved maps a line boundary of the old text (0-based) to the new text. Where lines were inserted exactly there, after says
// whether the result is behind them.
func moved(s *diff.Script, line int, after bool) int {
	// Edits are in order: the first one that does not end before the line.
	i := sort.Search(len(s.Edits), func(i int) bool { return s.Edits[i].A1 >= line })
	if i < len(s.Edits) && s.Edits[i].A0 < line && line < s.Edits[i].A1 {
		return s.Edits[i].B1 // inside a replaced run: after it
	}
	shift := 0
	for _, e := range s.Edits[:i] {
		shift = e.B1 - e.A1
	}
	if i < len(s.Edits) && s.Edits[i].A1 == line && (after || s.Edits[i].A0 < line) {
		shift = s.Edits[i].B1 - s.Edits[i].A1
	}
	return line + shift
}

// made reports whether a part's hunk h went into the sum's hunk of: their lines overlap in the base or in the sum. down leads from
// the base to the part's old text, up from its new text to the sum.
func made(h, of Hunk, down, up *diff.Script) bool {
	oldFrom, oldTo := of.old()
	newFrom, newTo := of.new()
	a, b := h.old()
	// moved maps from old to new only, and h is to be mapped back to the base.
	inverse := &diff.Script{A: down.B, B: down.A, Edits: make([]diff.Edit, len(down.Edits))}
	for i, e := range down.Edits {
		inverse.Edits[i] = diff.Edit{A0: e.B0, A1: e.B1, B0: e.A0, B1: e.A1}
	}
	if x, y := moved(inverse, a, false), moved(inverse, b, false); overlaps(x, max(x, y), oldFrom, oldTo) {
		return true
	}
	a, b = h.new()
	x, y := moved(up, a, false), moved(up, b, false)
	return overlaps(x, max(x, y), newFrom, newTo)
}

// overlaps reports whether two half-open runs share a line. An empty one, an insertion or a deletion, overlaps what it is in or
// touches.
func overlaps(a0, a1, b0, b1 int) bool {
	if a0 == a1 || b0 == b1 {
		return a0 <= b1 && b0 <= a1
	}
	return a0 < b1 && b0 < a1
}

// new gives the hunk's new lines, 0-based and half-open.
func (h Hunk) new() (from, to int) {
	if h.NewLines == 0 {
		return h.NewStart, h.NewStart
	}
	return h.NewStart - 1, h.NewStart - 1 + h.NewLines
}
