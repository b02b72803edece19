package change

import (
	"sort"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Together is what several changes of one file come to, against the text before the first of them: what a person
// reviews after a turn. What the person wrote in between is in none of its hunks.
type Together struct {
	Path    string // before the first change
	NewPath string // after the last one, when it is another
	Kind    Kind   // of all together; empty when they come to nothing
	Base    string
	Text    string // base with the changes, and nothing of the person's
	Binary  bool
	Hunks   []TurnHunk
}

// TurnHunk is a run of lines of all changes together. NewStart and NewLines are in the file as it is now.
type TurnHunk struct {
	Hunk
	Members []Ref // the hunks of the sets that made it
}

// Part is a member of an applied set.
type Part struct {
	Set  string
	File File
}

// Sum takes the parts of one file together, oldest first. now is the file as it is, to say where the hunks stand.
// The id of a hunk is that of the oldest hunk in it, so it stays the same when more changes come.
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
			merged = f.New // the agent changed what the person had: it is in there then
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

// cut makes the hunks and finds the members of each.
func (t *Together) cut(parts []Part, now string) {
	whole := New("", []File{{Path: t.Path, NewPath: t.NewPath, Kind: t.Kind, Old: t.Base, New: t.Text, Binary: t.Binary, Mode: mode(parts)}})
	here := diff.Compute(t.Text, now)
	list := whole.Files[0].Hunks
	t.Hunks = make([]TurnHunk, len(list))
	for i, h := range list {
		t.Hunks[i] = TurnHunk{Hunk: place(h, here)}
	}
	for _, p := range parts {
		// From the base to the part's old text, and from its new text to the sum: by these a part's lines are found in all together.
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
			// One hunk of a part may have come apart into several; ids must differ all the same.
			h.ID += "+" + string(rune('0'+min(n, 9)))
		}
	}
}

// mode is the permission bits that the newest part sets, 0 when it sets none.
func mode(parts []Part) uint32 { return parts[len(parts)-1].File.Mode }

// add notes a hunk of a part.
func (h *TurnHunk) add(p Part, id string) {
	h.Members = append(h.Members, Ref{Set: p.Set, Path: p.File.Path, Hunks: []string{id}})
}

// place moves a hunk's new lines to where they are now.
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

// moved is where an old line boundary (0-based) is in the new text; after says on which side of an insertion there.
func moved(s *diff.Script, line int, after bool) int {
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

// made says that a part's hunk went into one of all together: their lines touch, before or after.
func made(h, of Hunk, down, up *diff.Script) bool {
	oldFrom, oldTo := of.old()
	newFrom, newTo := of.new()
	a, b := h.old()
	// moved goes from old to new; the way back needs the script turned round.
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

// overlaps says that two runs share a line, or that an empty one stands in or at the end of the other.
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
