package change

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Conflict is a place where two changes of one text meet. Lines count from 1, in the base text. Base, Ours and Theirs are whole
// lines of the same region, so that an editor can show the three beside each other.
type Conflict struct {
	Path   string
	HunkID string // the hunk of the set that conflicts; empty where none covers the line
	Line   int    // first base line
	Base   string
	Ours   string
	Theirs string
	Why    string // of a conflict that is not about lines: what happened to the file, for people
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

// Merge combines the changes base→ours and base→theirs. Changes of the same lines are a conflict unless they are identical. With
// strict, as in Git, so are changes without an unchanged line between them: a proposal that is rebased must not be mixed into
// lines that the person is editing. Without strict, used to undo and to add up changes, only insertions at the same place are
// ambiguous. Line endings and the newline of the last line are not changes of the lines themselves.
//
// With conflicts the text is empty and must not be used.
func Merge(base, ours, theirs string, strict bool) (string, []Conflict) {
	switch {
	case base == theirs || ours == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	return mergeEndings(base, ours, theirs, strict)
}

// mergeLines merges line by line; mergeEndings has dealt with the line endings before. It walks the two scripts together, in the
// order of the base; at is the base line (0-based) up to which the result is written.
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

// before reports whether x is wholly before y, and the order of their texts certain. For two insertions at the same place it is
// not: either order would be a guess. Without strict, x may end where y begins, if one of them replaces lines.
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

// Rebase moves a member's proposal onto the text that the file has now. Hunks keep their ids, so decisions that a person made on
// the old proposal still apply. Where the file changed on the same lines, it fails with a *ConflictError and guesses nothing.
func (f File) Rebase(now string) (File, error) {
	if now == f.Old {
		return f, nil
	}
	out := f
	switch f.Kind {
	case Create:
		return f, &ConflictError{[]Conflict{{Path: f.Path, Line: 1, Ours: f.New, Theirs: now}}}
	case Delete: // a text that the person has not seen would be deleted
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

// rehunk cuts a member again and gives its hunks the ids of the old hunks that they come from: those with the same replacement,
// in order, else with the same removed, else with the same inserted text. The others get new ids above the old numbers, never
// one that was in use: a decision on a hunk that is gone must not apply to another. file is the member's number in ids, for a
// member that has no old hunks.
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
	match(func(o, n key) bool { return o.old == n.old && o.old != "" })
	match(func(o, n key) bool { return o.new == n.new && o.new != "" })
	for i := range hunks {
		if hunks[i].ID == "" {
			top++
			hunks[i].ID = file + "." + fmt.Sprint(top)
		}
	}
	return hunks
}

// key identifies a hunk across a rebase: its texts without line endings.
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

// Git's conflict markers, seven characters and a label (git-merge(1), "How conflicts are presented"): editors recognize them and
// offer to resolve the conflict.
const (
	conflictTree  = "<<<<<<< the project\n"
	conflictMid   = "=======\n"
	conflictDraft = ">>>>>>> the draft\n"
)

// Conflicted merges base→theirs (what the project has now) and base→ours (the draft), and puts both sides between conflict
// markers where they meet. Adjacent lines belong to one conflict, as in Git. Unlike Merge it treats line endings as part of the
// lines. The text is proposed to a person, who resolves the conflicts in the review.
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

// BothSides puts every place where two texts differ between conflict markers. It is for texts without a known base: nobody can tell which
// side changed such a place, so a person decides about each.
func BothSides(theirs, ours string) string {
	script := diff.Compute(theirs, ours)
	var sb strings.Builder
	at := 0
	for _, e := range script.Edits {
		sb.WriteString(strings.Join(script.A[at:e.A0], ""))
		sb.WriteString(conflictTree + ended(script.OldText(e)) + conflictMid + ended(script.NewText(e)) + conflictDraft)
		at = e.A1
	}
	sb.WriteString(strings.Join(script.A[at:], ""))
	return sb.String()
}

// ended is the text with a newline after its last line, since a marker must begin a line.
func ended(s string) string {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
