package change

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Present gives the text that a file has now, in an open buffer or on disk; exists is false when there is none.
type Present func(path string) (text string, exists bool)

// Undo proposes to take back hunks of an applied set, as a new set with the given id. It is a three-way merge of the texts that
// were applied, the texts without those hunks and the present ones, so later edits elsewhere in a file stay. No ids means all
// hunks. It fails with a *ConflictError where later edits changed the same lines. The set may be empty: all of it is taken back
// already.
//
// Undoing an undo set brings the hunks back.
func (s *Set) Undo(id string, hunks []string, now Present) (*Set, error) {
	want := map[string]bool{}
	for _, h := range hunks {
		want[h] = true
	}
	var files []File
	var conflicts []Conflict
	for _, f := range s.Files {
		var mine []Hunk
		for _, h := range f.Hunks {
			if len(hunks) == 0 || want[h.ID] {
				mine = append(mine, h)
				delete(want, h.ID)
			}
		}
		if len(mine) == 0 {
			continue
		}
		u, cs := f.undo(mine, now)
		conflicts = append(conflicts, cs...)
		if u.Kind != "" {
			files = append(files, u)
		}
	}
	// The ids that no member has; the error names one of them.
	for h := range want {
		return nil, fmt.Errorf("no hunk %q in change set %s", h, s.ID)
	}
	if len(conflicts) > 0 {
		return nil, &ConflictError{conflicts}
	}
	u := New(id, files)
	u.Title, u.SessionID = "Undo "+s.Title, s.SessionID
	if s.Title == "" {
		u.Title = "Undo"
	}
	return u, nil
}

// undo is one member's way back: an empty Kind means that there is nothing to do. What the caller needs to restore besides
// the text (the encoding of a binary, the mode beside a link) is taken from the member, since now only gives text.
func (f File) undo(mine []Hunk, now Present) (File, []Conflict) {
	out, conflicts := f.taken(mine, now)
	if f.Binary && f.OldEncoding != "" && out.Kind != "" {
		if out.Kind != Delete {
			out.Encoding = f.OldEncoding
		}
		out.OldEncoding = f.Encoding
	}
	if f.Links() && out.Kind == Edit { // a link has no permissions to keep
		out.Mode, out.OldMode = f.OldMode, f.Mode
	}
	return out, conflicts
}

// taken works out the way back of the text and of the file operation. It never overwrites a file that took the old place, and
// never deletes a created file that was changed since: both would lose somebody's work.
func (f File) taken(mine []Hunk, now Present) (File, []Conflict) {
	at := f.Path
	if f.Kind == Rename {
		at = f.NewPath
	}
	text, exists := now(at)
	// clash is a conflict about the file as a whole.
	clash := func(why string) (File, []Conflict) {
		return File{}, []Conflict{{Path: at, HunkID: mine[0].ID, Line: 1, Base: f.New, Ours: f.Old, Theirs: text, Why: why}}
	}
	switch f.Kind {
	case Delete:
		if exists {
			if text == f.Old {
				return File{}, nil // it is back already
			}
			return clash("it was deleted, and another file is in its place now")
		}
		return File{Path: f.Path, Kind: Create, New: f.Old, Encoding: f.Encoding, Mode: f.OldMode, Binary: f.Binary}, nil
	case Create:
		if !exists {
			return File{}, nil
		}
		// Only the very text that the set created is deleted: any other has work of the person in it.
		if text == f.New {
			return File{Path: f.Path, Kind: Delete, Old: text, Encoding: f.Encoding, Binary: f.Binary, OldMode: f.Mode, Folders: f.Folders}, nil
		}
		return clash("it was changed since it was created, so it is not deleted")
	}
	if !exists {
		return clash("it is not there any more: deleted, moved, or no file now")
	}
	// For the merge the applied text is the base: one side takes the hunks out, the other is what was done since.
	back, move := f.without(mine)
	if f.Binary && text != f.New {
		return clash("it was written to since, and is no text to merge")
	}
	merged, conflicts := Merge(f.New, back, text, false)
	if len(conflicts) > 0 {
		// The hunk's lines may have been moved as a whole; follow finds them.
		if found, ok := f.follow(mine, conflicts, text); ok {
			merged, conflicts = found, nil
		}
	}
	if len(conflicts) > 0 {
		for i := range conflicts {
			conflicts[i].Path, conflicts[i].HunkID = at, mine[0].ID
			for _, h := range mine {
				if !h.whole() && h.NewStart <= conflicts[i].Line {
					conflicts[i].HunkID = h.ID
				}
			}
		}
		return File{}, conflicts
	}
	out := File{Path: at, Kind: Edit, Old: text, New: merged, Encoding: f.Encoding, Binary: f.Binary}
	// The mode belongs to no hunk, so it goes back with the last of them only.
	if f.Mode != 0 && f.OldMode != 0 && f.Mode != f.OldMode && len(mine) == len(f.Hunks) {
		out.Mode, out.OldMode = f.OldMode, f.Mode
	}
	if move {
		if _, taken := now(f.Path); taken {
			return clash("it cannot go back to " + f.Path + ", where another file is now")
		}
		out.Kind, out.NewPath = Rename, f.Path
	} else if merged == text && out.Mode == 0 {
		return File{}, nil
	}
	return out, nil
}

// without is the applied text with some hunks taken back; move says that the rename is one of them.
func (f File) without(mine []Hunk) (text string, move bool) {
	lines := diff.Lines(f.New)
	var sb strings.Builder
	at := 0
	for _, h := range mine {
		if h.whole() {
			move = f.Kind == Rename // else it stands for the mode, or for an empty file
			continue
		}
		from := h.NewStart
		if h.NewLines > 0 {
			from--
		}
		sb.WriteString(strings.Join(lines[at:from], ""))
		sb.WriteString(h.OldText)
		at = from + h.NewLines
	}
	sb.WriteString(strings.Join(lines[at:], ""))
	return sb.String(), move
}
