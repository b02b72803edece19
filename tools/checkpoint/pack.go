package checkpoint

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
)

// maxInline is how many bytes of a file's hunks stay in a packed set, which is an event in the database. Beyond it, the new text is
// stored as a content and the hunks lose their texts.
const maxInline = 32 << 10

// Pack is the set as the event log stores it: old texts are contents, and new texts follow from the hunks or are contents too. A text
// that cannot be stored stays in the set. Hunks keep their places and sizes, so a list of changes can be drawn without loading a
// content. The set itself is not modified.
func (b *Blobs) Pack(set *change.Set) *change.Set {
	out := *set
	out.Files = make([]change.File, len(set.Files))
	for i, f := range set.Files {
		out.Files[i] = b.pack(f)
	}
	return &out
}

// unkept is the name of a content that was not stored. It is not a hash, so Get can tell it from one that was pruned.
const unkept = "-"

// Outline is the set as the event log stores it before it is decided: hunks without contents, since nothing can have
// to be undone yet. Load refuses it.
func Outline(set *change.Set) *change.Set {
	out := *set
	out.Files = make([]change.File, len(set.Files))
	for i, f := range set.Files {
		p := f.Bare()
		// Nothing has been decided, so nothing will have to be taken back.
		p.OldRef = unkept
		size := 0
		for _, h := range f.Hunks {
			size += len(h.OldText) + len(h.NewText)
		}
		if size > maxInline {
			p.NewRef, p.Hunks = unkept, bare(f.Hunks)
		}
		out.Files[i] = p
	}
	return &out
}

// bare copies hunks without their texts, which filled restores from the whole old and new text.
func bare(hunks []change.Hunk) []change.Hunk {
	out := make([]change.Hunk, len(hunks))
	for i, h := range hunks {
		h.OldText, h.NewText = "", ""
		out[i] = h
	}
	return out
}

// pack is Pack for one file. A content that cannot be kept leaves the file whole: a large event is better than a lost undo.
func (b *Blobs) pack(f change.File) change.File {
	// A file without texts, or one that is packed already, stays as it is.
	if f.Old == "" && f.New == "" {
		return f
	}
	p := f.Bare()
	size := 0
	for _, h := range f.Hunks {
		size += len(h.OldText) + len(h.NewText)
	}
	var err error
	if f.Old != "" {
		if p.OldRef, err = b.Put(f.Old); err != nil {
			return f
		}
	}
	if size <= maxInline {
		return p
	}
	// an empty new text needs no content
	if f.New != "" {
		if p.NewRef, err = b.Put(f.New); err != nil {
			return f
		}
	}
	p.Hunks = bare(f.Hunks)
	return p
}

// Load gives a packed set its texts; a set that was not packed keeps its own. The error wraps ErrPruned when a content is no longer
// stored.
func (b *Blobs) Load(set *change.Set) (*change.Set, error) {
	out := *set
	out.Files = make([]change.File, len(set.Files))
	for i, f := range set.Files {
		whole, err := b.load(f)
		if err != nil {
			return nil, fmt.Errorf("%s as it was in change %s %w", f.Path, set.ID, err)
		}
		out.Files[i] = whole
	}
	return &out, nil
}

// load is Load for one file; it undoes pack.
func (b *Blobs) load(f change.File) (change.File, error) {
	if f.Old != "" || f.New != "" { // not packed
		return f, nil
	}
	var err error
	if f.OldRef != "" {
		if f.Old, err = b.Get(f.OldRef); err != nil {
			return f, err
		}
	}
	// The hunks are there: the new text follows from the old one.
	if f.NewRef == "" && !stripped(f.Hunks) {
		f.New, err = rebuilt(f)
		f.OldRef = ""
		return f, err
	}
	if f.NewRef != "" {
		if f.New, err = b.Get(f.NewRef); err != nil {
			return f, err
		}
	}
	f.OldRef, f.NewRef = "", ""
	f.Hunks = filled(f)
	return f, nil
}

// stripped reports whether the hunks' texts were left out: a hunk with lines and without text was stripped, while one without lines has
// no text either way.
func stripped(hunks []change.Hunk) bool {
	for _, h := range hunks {
		if h.OldLines > 0 && h.OldText == "" || h.NewLines > 0 && h.NewText == "" {
			return true
		}
	}
	return false
}

// rebuilt makes the new text from the old one and the hunks. It fails when a hunk is outside the old text: then the event
// and the content do not belong together, and a guess would be written to a file.
func rebuilt(f change.File) (string, error) {
	if f.Kind == change.Delete {
		return "", nil
	}
	lines := diff.Lines(f.Old)
	var sb strings.Builder
	at := 0
	for _, h := range f.Hunks {
		if h.OldLines == 0 && h.NewLines == 0 {
			// A hunk without lines changes no text.
			continue
		}
		// OldStart counts from 1; where nothing is removed it is the line before the new ones, as in a unified
		// diff.
		from := h.OldStart
		if h.OldLines > 0 {
			from--
		}
		if from < at || from+h.OldLines > len(lines) {
			return "", fmt.Errorf("does not fit its hunk %s", h.ID)
		}
		sb.WriteString(strings.Join(lines[at:from], ""))
		sb.WriteString(h.NewText)
		at = from + h.OldLines
	}
	sb.WriteString(strings.Join(lines[at:], ""))
	return sb.String(), nil
}

// filled restores the texts of stripped hunks from the whole texts. A hunk that is outside of them stays empty.
func filled(f change.File) []change.Hunk {
	olds, news := diff.Lines(f.Old), diff.Lines(f.New)
	out := make([]change.Hunk, len(f.Hunks))
	// Lines count from 1.
	cut := func(lines []string, start, n int) string {
		if n == 0 || start < 1 || start-1+n > len(lines) {
			return ""
		}
		return strings.Join(lines[start-1:start-1+n], "")
	}
	for i, h := range f.Hunks {
		h.OldText, h.NewText = cut(olds, h.OldStart, h.OldLines), cut(news, h.NewStart, h.NewLines)
		out[i] = h
	}
	return out
}
