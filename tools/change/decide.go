package change

import (
	"fmt"
	"sort"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Decided is a set with the person's decisions applied.
type Decided struct {
	Set      *Set     // what to write: members with the accepted text; those wholly rejected are left out, so it may be empty
	Rulings  []Ruling // hunks that are not written as proposed, in order
	Accepted int      // hunks written as proposed
	Comment  string   // on the whole
}

// Ruling is a hunk that was rejected, changed or commented on; a hunk accepted without a comment has none. Hunk is as it was
// proposed.
type Ruling struct {
	Path     string
	Kind     Kind
	Hunk     Hunk
	Decision Decision // NewText as it is written
}

// Decide works out what is written. It refuses unknown hunk ids and decisions: such an answer was meant for another set, and
// using the part of it that fits would write something that the person did not approve. The set itself is not modified.
func (s *Set) Decide(d Decisions) (*Decided, error) {
	if err := s.check(d); err != nil {
		return nil, err
	}
	out := &Decided{Comment: d.Comment, Set: &Set{
		ID: s.ID, Title: s.Title, Tool: s.Tool, SessionID: s.SessionID, CallID: s.CallID, Verdict: s.Verdict, Evidence: s.Evidence,
	}}
	for i, f := range s.Files {
		n, rulings := f.decide(d)
		for _, r := range rulings {
			if r.Decision.Kind == Accept {
				out.Accepted++
			}
		}
		out.Accepted += len(f.Hunks) - len(rulings)
		out.Rulings = append(out.Rulings, rulings...)
		if n.Kind != "" {
			// A member that is accepted as a whole keeps its hunks: comparing a big file again is the expensive part.
			if n.New != f.New || n.Kind != f.Kind {
				n.Hunks = rehunk(fmt.Sprint(i+1), f.Hunks, &n)
			}
			out.Set.Files = append(out.Set.Files, n)
		}
	}
	return out, nil
}

// check refuses decisions that do not belong to this set. Ids are sorted so that the same mistake gives the same message.
func (s *Set) check(d Decisions) error {
	known := map[string]bool{}
	for _, f := range s.Files {
		for _, h := range f.Hunks {
			known[h.ID] = true
		}
	}
	verdict := func(v DecisionKind) error {
		if v != "" && v != Accept && v != Reject && v != Replace {
			return fmt.Errorf("unknown decision %q; it is accept, reject or edit", v)
		}
		return nil
	}
	// A default of edit would write the same text in place of several hunks.
	if d.Default == Replace {
		return fmt.Errorf("the default decision is accept or reject, not edit")
	}
	if err := verdict(d.Default); err != nil {
		return err
	}
	ids := make([]string, 0, len(d.Hunks))
	for id := range d.Hunks {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		if !known[id] {
			return fmt.Errorf("no hunk %q in change set %s", id, s.ID)
		}
		if err := verdict(d.Hunks[id].Kind); err != nil {
			return fmt.Errorf("hunk %s: %w", id, err)
		}
	}
	return nil
}

// decide builds a member's accepted text; an empty Kind means that nothing of it is written. Hunks are in the order of the old
// text, which is copied between them.
func (f File) decide(d Decisions) (File, []Ruling) {
	var rulings []Ruling
	if f.plainYes(d) {
		return f, nil
	}
	var sb strings.Builder
	old := f.script().A
	at := 0       // old line up to which the text is built
	moved := true // the rename was not rejected
	touched := 0  // hunks that are written, as proposed or as the person edited them
	out := f
	replaced := false
	for _, h := range f.Hunks {
		v, ok := d.Hunks[h.ID]
		if !ok || v.Kind == "" {
			v.Kind = d.Default
		}
		if v.Kind == "" {
			v.Kind = Accept
		}
		from, to := h.old()
		if v.Kind == Replace {
			v.NewText = f.fit(v.NewText, h, to == len(old))
			switch {
			case v.NewText == h.NewText:
				v.Kind = Accept
			// Editing a hunk back to the old text is a rejection, and the model must be told so. For a file that is created or
			// deleted the empty text is not the same as no file, so there it stays the person's own text.
			case v.NewText == h.OldText && f.Kind != Create && f.Kind != Delete:
				v.Kind = Reject
			}
		}
		if v.Kind != Accept || v.Comment != "" {
			rulings = append(rulings, Ruling{f.Path, f.Kind, h, v})
		}
		sb.WriteString(strings.Join(old[at:from], ""))
		at = to
		switch v.Kind {
		case Reject:
			sb.WriteString(h.OldText)
			if h.whole() {
				moved = false
			}
			continue
		case Replace:
			sb.WriteString(v.NewText)
			replaced = true
		default:
			sb.WriteString(h.NewText)
		}
		touched++
	}
	sb.WriteString(strings.Join(old[at:], ""))
	out.New = sb.String()
	switch {
	case f.Kind == Rename && !moved:
		out.Kind, out.NewPath = Edit, ""
		if out.New == out.Old {
			return File{}, rulings
		}
	case f.Kind == Delete && replaced: // the person keeps the file, with a text of their own
		out.Kind = Edit
		if out.New == out.Old {
			return File{}, rulings
		}
	case touched == 0:
		return File{}, rulings
	}
	return out, rulings
}

// plainYes reports whether every hunk is accepted without a comment. That is the usual case, and it needs no comparison of the
// texts, which takes long for big files.
func (f File) plainYes(d Decisions) bool {
	if d.Default == Reject || len(f.Hunks) == 0 {
		return false
	}
	for _, h := range f.Hunks {
		if v := d.Hunks[h.ID]; v.Comment != "" || v.Kind != "" && v.Kind != Accept {
			return false
		}
	}
	return true
}

// fit gives the person's text the hunk's line ending: editors send "\n". It adds a final newline where other lines follow,
// which would be joined to the text otherwise. last says that the hunk reaches the end of the old file; there a missing
// newline is kept where one of the hunk's sides lacks it.
func (f File) fit(text string, h Hunk, last bool) string {
	if text == "" {
		return ""
	}
	eol := "\n"
	if like := h.OldText + h.NewText; strings.Contains(like, "\r\n") {
		eol = "\r\n"
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	ends := func(s string) bool { return s == "" || strings.HasSuffix(s, "\n") }
	if !strings.HasSuffix(text, "\n") && (!last || ends(h.NewText) && ends(h.OldText)) {
		text += eol
	}
	return text
}

// Report tells the model what was not written as it proposed it, and the person's comments; "" when there is neither. Without it,
// the model continues as if the file had its text, and proposes rejected lines again. name prints a path for the model.
func (d *Decided) Report(name func(string) string) string {
	var rejected, changed, said strings.Builder
	nr, nc := 0, 0
	for _, r := range d.Rulings {
		where := name(r.Path)
		switch r.Decision.Kind {
		case Reject:
			nr++
			if r.Hunk.whole() {
				fmt.Fprintf(&rejected, "%s: the %s as such\n", where, r.Kind)
			} else {
				show(&rejected, where, r.Hunk, r.Hunk.OldText, r.Hunk.NewText)
			}
		case Replace:
			nc++
			show(&changed, where, r.Hunk, r.Hunk.NewText, r.Decision.NewText)
		}
		if r.Decision.Comment != "" {
			fmt.Fprintf(&said, "%s line %d: %s\n", where, max(r.Hunk.NewStart, 1), r.Decision.Comment)
		}
	}
	var sb strings.Builder
	total := d.Accepted + nr + nc
	if nr > 0 {
		fmt.Fprintf(&sb, "The user rejected %d of %d changes. These were NOT written; do not propose them again unchanged:\n%s", nr, total, &rejected)
	}
	if nc > 0 {
		fmt.Fprintf(&sb, "The user changed %d of %d changes before accepting them (- as you proposed, + as it was written):\n%s", nc, total, &changed)
	}
	if said.Len() > 0 {
		fmt.Fprintf(&sb, "The user's comments:\n%s", &said)
	}
	if d.Comment != "" {
		fmt.Fprintf(&sb, "The user said: %s\n", d.Comment)
	}
	return strings.TrimSuffix(sb.String(), "\n")
}

// show prints a change of some lines like a hunk of a unified diff, with the line in the old file and without line counts. Line
// endings are dropped, since the text is for the model to read, not to apply.
func show(sb *strings.Builder, where string, h Hunk, old, new string) {
	fmt.Fprintf(sb, "@@ %s line %d @@\n", where, max(h.OldStart, 1))
	s := diff.Compute(old, new)
	at := 0
	line := func(c byte, ls []string) {
		for _, l := range ls {
			sb.WriteByte(c)
			sb.WriteString(strings.TrimRight(l, "\r\n") + "\n")
		}
	}
	for _, e := range s.Edits {
		line(' ', s.A[at:e.A0])
		line('-', s.A[e.A0:e.A1])
		line('+', s.B[e.B0:e.B1])
		at = e.A1
	}
	line(' ', s.A[at:])
}
