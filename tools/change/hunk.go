package change

import (
	"fmt"
	"math"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// New makes a set of files and cuts them into hunks. A member whose text does not change (a plain rename, an empty
// file made or deleted) gets one hunk without lines, so that every member can be decided on by its hunks.
//
// Hunk ids are "<file>.<hunk>", both counted from 1 in the order given; 0 is the hunk without lines. The "0" of a
// rename is the move itself, decided apart from the edits of its text.
func New(id string, files []File) *Set {
	s := &Set{ID: id, Files: files}
	for i := range s.Files {
		f := &s.Files[i]
		f.Hunks = f.cut()
		for k := range f.Hunks {
			n := k + 1
			if f.Hunks[0].whole() {
				n = k
			}
			f.Hunks[k].ID = fmt.Sprintf("%d.%d", i+1, n)
		}
	}
	return s
}

// whole reports whether the hunk has no lines and represents the file operation itself: the move of a rename, a change of mode, an
// empty file that is created or deleted.
func (h Hunk) whole() bool { return h.OldLines == 0 && h.NewLines == 0 }

// diffed caches a comparison, which costs more than the rest of a change of a big file. It is valid for exactly these two texts.
type diffed struct {
	old, new string
	script   *diff.Script
}

// script compares the texts and caches the result in the member. A write to a published set would be a data race, so New, which
// calls it for every member, comes first; methods with a value receiver write to their own copy.
func (f *File) script() *diff.Script {
	if f.Kind == Delete {
		f.New = ""
	}
	if d := f.diffed; d.script != nil && d.old == f.Old && d.new == f.New {
		return d.script
	}
	f.diffed = diffed{f.Old, f.New, diff.Compute(f.Old, f.New)}
	return f.diffed.script
}

// cut makes the hunks of a member, without ids. A binary is one hunk of everything: its parts mean nothing to a person, and
// merging them would damage it.
func (f *File) cut() []Hunk {
	var hunks []Hunk
	if f.Kind == Rename {
		hunks = append(hunks, Hunk{OldStart: 0, NewStart: 0})
	}
	switch {
	case f.Binary && f.Old != f.New:
		a, b := len(diff.Lines(f.Old)), len(diff.Lines(f.New))
		hunks = append(hunks, Hunk{OldStart: min(a, 1), OldLines: a, OldText: f.Old, NewStart: min(b, 1), NewLines: b, NewText: f.New})
	case !f.Binary:
		s := f.script()
		for _, e := range s.Edits {
			hunks = append(hunks, hunkOf(s, e))
		}
	}
	// Every member needs a hunk, or a person could not reject it. An edit whose texts and mode are equal changes nothing.
	if len(hunks) == 0 && (f.Kind == Create || f.Kind == Delete || f.Mode != 0) {
		hunks = append(hunks, Hunk{})
	}
	return hunks
}

// hunkOf turns an edit (0-based, half-open) into a hunk (1-based).
func hunkOf(s *diff.Script, e diff.Edit) Hunk {
	start := func(from, to int) int { // git's convention for empty sides
		if from == to {
			return from
		}
		return from + 1
	}
	return Hunk{
		OldStart: start(e.A0, e.A1), OldLines: e.A1 - e.A0, OldText: s.OldText(e),
		NewStart: start(e.B0, e.B1), NewLines: e.B1 - e.B0, NewText: s.NewText(e),
	}
}

// old gives the hunk's old lines, 0-based and half-open; from equals to for an insertion, which goes before that line.
func (h Hunk) old() (from, to int) {
	if h.OldLines == 0 {
		return h.OldStart, h.OldStart
	}
	return h.OldStart - 1, h.OldStart - 1 + h.OldLines
}

// Stat counts the lines a member adds and removes.
func (f File) Stat() (added, removed int) {
	for _, h := range f.Hunks {
		added += h.NewLines
		removed += h.OldLines
	}
	return added, removed
}

// Stat counts the lines of all members.
func (s *Set) Stat() (added, removed int) {
	for _, f := range s.Files {
		a, r := f.Stat()
		added += a
		removed += r
	}
	return added, removed
}

// Unified is the member as a unified diff; name prints a path for the reader. As in Git's format, a rename has "rename from" and
// "rename to" lines above it, and /dev/null is the other side of a file that is created or deleted.
func (f File) Unified(name func(string) string) string { return f.UnifiedStart(name, math.MaxInt) }

// UnifiedStart is the beginning of Unified, to the first line after which there are more than most bytes.
func (f File) UnifiedStart(name func(string) string, most int) string {
	if f.Links() {
		return f.linkText(name(f.Path))
	}
	if f.Binary {
		return "Binary file " + name(f.Path) + " differs\n"
	}
	from, to := name(f.Path), name(f.Path)
	head := ""
	switch f.Kind {
	case Create:
		from = "/dev/null"
	case Delete:
		to = "/dev/null"
	case Rename:
		to = name(f.NewPath)
		head = "rename from " + from + "\nrename to " + to + "\n"
	}
	text := f.script().UnifiedStart(from, to, most)
	if text == "" && (f.Kind == Create || f.Kind == Delete) {
		text = "--- " + from + "\n+++ " + to + "\n"
	}
	return head + text
}

// linkText says where a symbolic link leads before and after. Shown as "Binary file differs", a link out of the project, to
// ~/.ssh for example, would be accepted unseen.
func (f File) linkText(name string) string {
	was, is := f.OldEncoding == Link || f.Kind == Delete && f.Encoding == Link, f.Encoding == Link && f.Kind != Delete
	switch {
	case f.Kind == Create:
		return fmt.Sprintf("New symbolic link %s -> %s\n", name, f.New)
	case f.Kind == Delete:
		return fmt.Sprintf("Deleted symbolic link %s -> %s\n", name, f.Old)
	case was && is:
		return fmt.Sprintf("Symbolic link %s -> %s (before: %s)\n", name, f.New, f.Old)
	case is:
		return fmt.Sprintf("File %s becomes a symbolic link -> %s\n", name, f.New)
	}
	return fmt.Sprintf("Symbolic link %s -> %s becomes a file\n", name, f.Old)
}

// Unified is the whole set as unified text.
func (s *Set) Unified(name func(string) string) string {
	var sb strings.Builder
	for _, f := range s.Files {
		sb.WriteString(f.Unified(name))
	}
	return sb.String()
}

// Paths are all places the set touches, both ends of a rename, in order and once.
func (s *Set) Paths() []string {
	var out []string
	seen := map[string]bool{}
	for _, f := range s.Files {
		for _, p := range []string{f.Path, f.NewPath} {
			if p != "" && !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// With is the member with another new text; hunks that are the same keep their ids, so that decisions already made on them
// in an open review stay theirs.
func (f File) With(text string) File {
	if text == f.New {
		return f
	}
	f.New = text
	f.Hunks = rehunk("", f.Hunks, &f)
	return f
}

// Bare is the member without its texts, for package checkpoint, which stores these under their hash. Hunks keep their lines.
func (f File) Bare() File {
	f.Old, f.New, f.diffed = "", "", diffed{}
	return f
}
