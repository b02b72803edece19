package change

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Conflict is a place where two changes of one text meet. Lines count from 1, in the base text. Base, Ours and Theirs are whole lines of the
// same region, so that a person sees the three beside each other.
type Conflict struct {
	Path   string
	HunkID string // the hunk of ours, when there is one
	Line   int    // first base line
	Base   string
	Ours   string
	Theirs string
	Why    string // where it is not about lines: what happened to the file
}

// ConflictError says where a merge would have to guess. It has at least one conflict.
type ConflictError struct{ Conflicts []Conflict }

// Error names the first conflict, for people; Conflicts has all of them.
func (e *ConflictError) Error() string {
	c := e.Conflicts[0]
	if c.Why != "" {
		return c.Path + ": " + c.Why
	}
	s := fmt.Sprintf("%s: both sides changed line %d", c.Path, c.Line)
	if n := len(e.Conflicts) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more places)", n)
	}
	return s
}

// Merge takes the changes base→ours and base→theirs together. Changes of the same lines are a conflict unless they
// are identical; so are changes that touch without a line between them, when strict (git's rule). Without strict
// only insertions at one and the same place are ambiguous. Line endings and the newline of the last line are no change
// of the lines themselves. The text is valid only without conflicts.
func Merge(base, ours, theirs string, strict bool) (string, []Conflict) {
	switch {
	case base == theirs || ours == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	return mergeEndings(base, ours, theirs, strict)
}

// mergeLines merges line by line; mergeEndings has seen to the line endings. The two scripts are walked together, in the order of the base;
// at is the base line (from 0) up to which the result is written.
func mergeLines(base, ours, theirs string, strict bool) (string, []Conflict) {
	a, b := diff.Compute(base, ours), diff.Compute(base, theirs)
	var sb strings.Builder
	var conflicts []Conflict
	lines := a.A
	at := 0
	take := func(s *diff.Script, e diff.Edit) {
		sb.WriteString(strings.Join(lines[at:e.A0], ""))
		sb.WriteString(s.NewText(e))
		at = e.A1
	}
	i, j := 0, 0
	for i < len(a.Edits) || j < len(b.Edits) {
		switch {
		case j == len(b.Edits) || i < len(a.Edits) && before(a.Edits[i], b.Edits[j], strict):
			take(a, a.Edits[i])
			i++
		case i == len(a.Edits) || before(b.Edits[j], a.Edits[i], strict):
			take(b, b.Edits[j])
			j++
		// Both sides made the same change: it is taken once.
		case a.Edits[i].A0 == b.Edits[j].A0 && a.Edits[i].A1 == b.Edits[j].A1 && a.NewText(a.Edits[i]) == b.NewText(b.Edits[j]):
			take(a, a.Edits[i])
			i++
			j++
		default:
			// Widen the conflict until the next edit of either side begins after it: an edit that overlaps one side of the
			// conflict cannot be taken alone.
			i1, j1 := i+1, j+1
			lo, hi := min(a.Edits[i].A0, b.Edits[j].A0), max(a.Edits[i].A1, b.Edits[j].A1)
			for {
				if i1 < len(a.Edits) && a.Edits[i1].A0 <= hi {
					hi = max(hi, a.Edits[i1].A1)
					i1++
				} else if j1 < len(b.Edits) && b.Edits[j1].A0 <= hi {
					hi = max(hi, b.Edits[j1].A1)
					j1++
				} else {
					break
				}
			}
			conflicts = append(conflicts, Conflict{
				Line: lo + 1, Base: strings.Join(lines[lo:hi], ""),
				Ours: side(a, a.Edits[i:i1], lo, hi), Theirs: side(b, b.Edits[j:j1], lo, hi),
			})
			i, j, at = i1, j1, hi
		}
	}
	if len(conflicts) > 0 {
		return "", conflicts
	}
	sb.WriteString(strings.Join(lines[at:], ""))
	return sb.String(), nil
}

// before says that x lies wholly before y and the order of their texts is certain. Two insertions at one place are not: either order would
// be a guess.
func before(x, y diff.Edit, strict bool) bool {
	if strict {
		return x.A1 < y.A0
	}
	return x.A1 < y.A0 || x.A1 == y.A0 && (x.A0 < x.A1 || y.A0 < y.A1) && x.A0 < y.A1
}

// side is one side's text of the base lines [lo,hi).
func side(s *diff.Script, edits []diff.Edit, lo, hi int) string {
	var sb strings.Builder
	for _, e := range edits {
		sb.WriteString(strings.Join(s.A[lo:e.A0], ""))
		sb.WriteString(s.NewText(e))
		lo = e.A1
	}
	sb.WriteString(strings.Join(s.A[lo:hi], ""))
	return sb.String()
}

// Rebase moves a member's proposal onto the text the file has now. Hunks keep their ids, so decisions and cards stay right. It fails with a
// *ConflictError, and guesses nothing, when the file changed where the proposal does.
func (f File) Rebase(now string) (File, error) {
	if now == f.Old {
		return f, nil
	}
	out := f
	switch f.Kind {
	case Create:
		return f, &ConflictError{[]Conflict{{Path: f.Path, Line: 1, Ours: f.New, Theirs: now}}}
	case Delete: // what was to go is not what is there
		return f, &ConflictError{[]Conflict{{Path: f.Path, Line: 1, Base: f.Old, Theirs: now}}}
	}
	merged, conflicts := Merge(f.Old, f.New, now, true)
	if len(conflicts) > 0 {
		for i := range conflicts {
			conflicts[i].Path = f.Path
			conflicts[i].HunkID = f.hunkAt(conflicts[i].Line)
		}
		return f, &ConflictError{conflicts}
	}
	out.Old, out.New = now, merged
	out.Hunks = rehunk("", f.Hunks, &out)
	return out, nil
}

// hunkAt is the id of the hunk that covers or touches an old line (1-based); empty when none does.
func (f File) hunkAt(line int) string {
	for _, h := range f.Hunks {
		if from, to := h.old(); !h.whole() && line-1 <= to && line >= from {
			return h.ID
		}
	}
	return ""
}

// rehunk cuts a member anew and gives its hunks the ids of the old ones they come from: the same replacement in
// order, else the same removed or inserted text. Hunks without a forerunner get new ids above the old numbers.
func rehunk(file string, olds []Hunk, f *File) []Hunk {
	hunks := f.cut()
	// Each old id is given at most once, and ids are matched in order: two hunks with the same text keep their sequence.
	used := make([]bool, len(olds))
	top := 0
	for _, h := range olds {
		var a, b int
		if _, err := fmt.Sscanf(h.ID, "%d.%d", &a, &b); err == nil {
			file = fmt.Sprint(a)
			top = max(top, b)
		}
	}
	was, is := keys(olds), keys(hunks)
	// From the strictest comparison to the loosest. from only grows, so matches of one round never cross.
	match := func(same func(o, n key) bool) {
		from := 0
		for i := range hunks {
			if hunks[i].ID != "" {
				continue
			}
			for k := from; k < len(olds); k++ {
				if !used[k] && same(was[k], is[i]) {
					hunks[i].ID, used[k], from = olds[k].ID, true, k+1
					break
				}
			}
		}
	}
	match(func(o, n key) bool { return o == n })
	match(func(o, n key) bool { return !o.whole && !n.whole && o.old == n.old && o.old != "" })
	match(func(o, n key) bool { return !o.whole && !n.whole && o.new == n.new && o.new != "" })
	for i := range hunks {
		if hunks[i].ID == "" {
			top++
			hunks[i].ID = file + "." + fmt.Sprint(top)
		}
	}
	return hunks
}

// key is what a hunk is known by, whatever the file's line endings.
type key struct {
	old, new string
	whole    bool
}

// keys are compared without line endings, because a rebase onto a converted file changes those of every hunk.
func keys(hunks []Hunk) []key {
	out := make([]key, len(hunks))
	for i, h := range hunks {
		out[i] = key{endingOf(h.OldText).plain(h.OldText), endingOf(h.NewText).plain(h.NewText), h.whole()}
	}
	return out
}

// Labels of the two sides between conflict markers. Git's markers are used, so editors and people know what they see.
const (
	conflictTree  = "<<<<<<< the project\n"
	conflictMid   = "=======\n"
	conflictDraft = ">>>>>>> the draft\n"
)

// Conflicted merges base→theirs (what the project has now) and base→ours, and puts both sides between Git's conflict
// markers where they meet. Adjacent lines belong to one conflict, as in Git.
func Conflicted(base, theirs, ours string) string {
	a, b := diff.Compute(base, theirs), diff.Compute(base, ours)
	lines := a.A
	var sb strings.Builder
	at, i, j := 0, 0, 0
	for i < len(a.Edits) || j < len(b.Edits) {
		// The next region is one edit with all that touch it, from either side.
		var lo, hi int
		switch {
		case j == len(b.Edits) || i < len(a.Edits) && a.Edits[i].A0 <= b.Edits[j].A0:
			lo, hi = a.Edits[i].A0, a.Edits[i].A1
		default:
			lo, hi = b.Edits[j].A0, b.Edits[j].A1
		}
		i0, j0 := i, j
		for grown := true; grown; {
			grown = false
			for i < len(a.Edits) && a.Edits[i].A0 <= hi {
				hi, grown = max(hi, a.Edits[i].A1), true
				i++
			}
			for j < len(b.Edits) && b.Edits[j].A0 <= hi {
				hi, grown = max(hi, b.Edits[j].A1), true
				j++
			}
		}
		sb.WriteString(strings.Join(lines[at:lo], ""))
		left, right := side(a, a.Edits[i0:i], lo, hi), side(b, b.Edits[j0:j], lo, hi)
		switch {
		// Only one side changed the region, or both did the same.
		case j0 == j || left == right:
			sb.WriteString(left)
		case i0 == i:
			sb.WriteString(right)
		default:
			sb.WriteString(conflictTree + ended(left) + conflictMid + ended(right) + conflictDraft)
		}
		at = hi
	}
	sb.WriteString(strings.Join(lines[at:], ""))
	return sb.String()
}

// ended is a text whose last line has its newline, so that a marker begins a line.
func ended(s string) string {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
