package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/shell/visible"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Limits of a printed diff. They concern the screen only: what is written does not depend on them.
const (
	contextLines  = 3    // around a hunk
	maxLine       = 2000 // bytes shown of one line
	maxShownLines = 2000 // of one set's diff; a person does not read more, and asks per hunk show each hunk whole
)

// set prints a whole change set: its head, its problems and every hunk. Callers hold mu.
func (t *sheet) set(s *change.Set) {
	t.head(s)
	lines := 0
	for i := range s.Files {
		t.fileHead(s, &s.Files[i])
		for j := range s.Files[i].Hunks {
			if lines > maxShownLines {
				t.line(t.paint(dim, "  … the rest of the diff is not shown"))
				return
			}
			lines += t.hunk(&s.Files[i], &s.Files[i].Hunks[j])
		}
	}
}

// head prints the title of a set, its files and hunks, and its verdict, then the problems that it introduces and fixes.
func (t *sheet) head(s *change.Set) {
	t.endLine()
	hunks := 0
	for _, f := range s.Files {
		hunks += len(f.Hunks)
	}
	what := textutil.Plural(hunks, "hunk")
	if len(s.Files) != 1 {
		what = textutil.Plural(len(s.Files), "file") + ", " + what
	}
	t.line("")
	t.line(t.paint(bold, Clean(t.rel(heading(s)))) + " · " + what + " · " + t.verdict(s.Verdict))
	t.problems(s.Verdict)
	t.evidence(s.Evidence)
}

// problems prints why there is no verdict yet, and the problems that a change introduces and fixes.
func (t *sheet) problems(d *change.Verdict) {
	if d == nil {
		return
	}
	if d.Certainty == change.Pending && d.Reason != "" {
		for _, l := range strings.Split(ansi.Wordwrap(Clean(d.Reason), max(t.width()-2, 20), ""), "\n") {
			t.line(t.paint(dim, "  "+l))
		}
	}
	// Five of each kind: the question must stay on the screen together with them.
	five := func(all []change.Problem, text func(change.Problem) string) {
		for _, p := range all[:min(len(all), 5)] {
			t.line(text(p))
		}
		if more := len(all) - 5; more > 0 {
			t.line(t.paint(dim, fmt.Sprintf("    … and %d more", more)))
		}
	}
	five(d.Introduced, func(p change.Problem) string { return t.paint(red, "  + ") + t.problem(p) })
	five(d.Fixed, func(p change.Problem) string { return t.paint(green, "  − ") + t.paint(dim, t.plainProblem(p)) })
}

// evidence prints what supports a change besides its verdict, and the titles of the groups that are folded.
func (t *sheet) evidence(e *change.Evidence) {
	place := func(path string, line int) string { return fmt.Sprintf("%s:%d", t.rel(path), line) }
	color := map[change.Mood]string{change.Good: green, change.Warning: yellow, change.Bad: red}
	for _, l := range e.Lines(place) {
		// Names of tests and words of the agent come from outside.
		t.line("  " + t.paint(color[l.Mood], Clean(visible.Text(l.Text))))
	}
	if e == nil {
		return
	}
	for _, g := range e.Groups {
		if g.Verified {
			t.line("  " + t.paint(cyan, Clean(visible.Text(g.Title))))
		}
	}
}

// heading is what a set is called.
func heading(s *change.Set) string {
	if s.Title == "" && len(s.Files) > 0 {
		return s.Files[0].Path
	}
	return s.Title
}

// verdict words what a change does to the problems. "not checked" is never shown as "no problems": an empty list of
// problems means nothing without its certainty. Red is for new errors and green for fixed ones.
func (t *sheet) verdict(d *change.Verdict) string {
	if d == nil || d.Certainty == change.Pending {
		return t.paint(yellow, "not checked yet")
	}
	if d.Certainty == change.Unavailable {
		s := "not checked"
		if d.Reason != "" {
			s += ": " + Clean(d.Reason)
		}
		return t.paint(dim, s)
	}
	s := d.Headline()
	switch introduced, fixed := d.Errors(); {
	case introduced > 0:
		s = t.paint(red, s)
	case fixed > 0:
		s = t.paint(green, s)
	}
	if d.Certainty == change.Partial {
		s += t.paint(yellow, " (partly checked: "+Clean(d.Reason)+")")
	}
	return s
}

// problem is one line about a problem: place, severity and the first line of its message. Line and column count from
// 1.
func (t *sheet) problem(p change.Problem) string {
	color := yellow
	if p.Severity == "error" {
		color = red
	}
	at := fmt.Sprintf("%s:%d:%d", Clean(t.rel(p.Path)), p.Line, p.Column)
	return fmt.Sprintf("%s %s %s", t.paint(cyan, at), t.paint(color, string(p.Severity)), t.fit(Clean(textutil.FirstLine(p.Message)), len(at)+len(p.Severity)+6))
}

// plainProblem is problem without colours and severity, to be inside other text.
func (t *sheet) plainProblem(p change.Problem) string {
	at := fmt.Sprintf("%s:%d:%d", Clean(t.rel(p.Path)), p.Line, p.Column)
	return at + " " + t.fit(Clean(textutil.FirstLine(p.Message)), len(at)+5)
}

// fit cuts a message to what is left of the line on a terminal; a file or a pipe gets all of it.
func (t *sheet) fit(s string, used int) string {
	if !t.fits {
		return s
	}
	return cut(s, t.width()-used)
}

// fileHead names a file, unless the set's heading has just done so.
func (t *sheet) fileHead(s *change.Set, f *change.File) {
	name := Clean(t.rel(f.Path))
	switch f.Kind {
	case change.Create:
		t.line(t.paint(bold, "new file "+name))
	case change.Delete:
		t.line(t.paint(bold, "delete "+name))
	case change.Rename:
		t.line(t.paint(bold, "move "+name+" → "+Clean(t.rel(f.NewPath))))
	default:
		if len(s.Files) > 1 || Clean(t.rel(heading(s))) != name {
			t.line(t.paint(bold, name))
		}
	}
}

// hunk prints one hunk with its context and returns the number of lines.
func (t *sheet) hunk(f *change.File, h *change.Hunk) int {
	if textless(h) {
		return 0 // the file's head says it all
	}
	old := splitLines(f.Old)
	first := h.OldStart // 1-based; of a pure insertion the line before it
	if h.OldLines == 0 {
		first++
	}
	// from and to count lines from 1; both belong to the context.
	from := max(1, first-contextLines)
	to := min(len(old), first+h.OldLines-1+contextLines)
	t.line(t.paint(cyan, fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines)))
	n := 1
	// The line break is printed apart, so that a file without one at its end can say so as diff(1) does.
	put := func(mark, style, text string, differs ...diff.Span) {
		missing := !strings.HasSuffix(text, "\n")
		if text = strings.TrimSuffix(text, "\n"); t.color && len(text) <= maxLine {
			t.line(t.paint(style, mark+stressed(text, differs)))
		} else {
			t.line(t.paint(style, mark+Clean(longLine(text))))
		}
		n++
		if missing {
			t.line(t.paint(dim, `\ No newline at end of file`))
		}
	}
	for _, l := range old[from-1 : max(from-1, min(first-1, len(old)))] {
		put(" ", "", l)
	}
	gone, come := splitLines(h.OldText), splitLines(h.NewText)
	olds, news := wordsThatDiffer(gone, come)
	for i, l := range gone {
		put("-", red, l, olds[i]...)
	}
	for i, l := range come {
		put("+", green, l, news[i]...)
	}
	if after := first - 1 + h.OldLines; after < to {
		for _, l := range old[after:to] {
			put(" ", "", l)
		}
	}
	return n
}

// wordsThatDiffer pairs the removed lines with the added lines and gives the spans of bytes that differ in each pair. A pair that
// differs as a whole gets no spans.
func wordsThatDiffer(gone, come []string) (olds, news [][]diff.Span) {
	olds, news = make([][]diff.Span, len(gone)), make([][]diff.Span, len(come))
	// With different numbers of lines it is unknown which line replaces which, and marked words would mislead.
	if len(gone) != len(come) {
		return olds, news
	}
	for i := range gone {
		o, n := strings.TrimSuffix(gone[i], "\n"), strings.TrimSuffix(come[i], "\n")
		a, b := diff.Words(o, n)
		whole := func(spans []diff.Span, s string) bool { return len(spans) == 1 && spans[0] == diff.Span{End: len(s)} }
		if !whole(a, o) && !whole(b, n) {
			olds[i], news[i] = a, b
		}
	}
	return olds, news
}

// stressed is a line, safe to print, with some of its parts in reverse video (SGR 7 and 27). The parts are cleaned
// one by one, since cleaning changes the offsets, which count bytes.
func stressed(s string, parts []diff.Span) string {
	var b strings.Builder
	at := 0
	for _, p := range parts {
		b.WriteString(Clean(s[at:p.Start]) + "\x1b[7m" + Clean(s[p.Start:p.End]) + "\x1b[27m")
		at = p.End
	}
	b.WriteString(Clean(s[at:]))
	return b.String()
}

// longLine keeps a minified file from filling the screen, and says what it leaves out.
func longLine(s string) string {
	if len(s) <= maxLine {
		return s
	}
	// The cut may be inside a character, whose first bytes are dropped.
	head := strings.ToValidUTF8(s[:maxLine], "")
	return fmt.Sprintf("%s … %d more bytes in this line", head, len(s)-len(head))
}

// splitLines keeps each line's newline.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	l := strings.SplitAfter(s, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}
