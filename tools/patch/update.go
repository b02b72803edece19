package patch

import (
	"sort"
	"strings"
)

// update makes the hunks of op in a file's text. path is for words only.
func update(op *Op, path, old string, unified bool) (string, error) {
	if len(op.Hunks) == 0 {
		return old, nil
	}
	u := &updater{op: op, path: path, text: newText(old)}
	if unified {
		u.exact = true
		for _, h := range op.Hunks {
			for _, l := range h.Lines {
				u.states = u.states || strings.HasSuffix(l.Text, "\r")
			}
		}
	}
	for i := range op.Hunks {
		if err := u.hunk(i); err != nil {
			return "", err
		}
	}
	return u.build(), nil
}

// updater collects the edits of one section; all positions are lines of the text as it was.
type updater struct {
	op     *Op
	path   string
	text   *text
	exact  bool // a diff: line numbers and the newline at the end are stated
	states bool // a diff that has CRs says itself which lines end in CRLF
	pos    int  // 0-based line after the last hunk's
	drift  int  // found minus stated position of the last hunk
	edits  []edit
	same   []int // see alike
	final  *bool // the diff says whether the last line ends in a newline
}

// edit replaces n lines from start.
type edit struct {
	start, n int
	lines    []made
}

// made is a line of the result.
type made struct {
	text string
	kept int  // 0-based line of the old text, -1 for a new one
	cr   bool // a CR was put at its end because its neighbours have one
}

func (u *updater) hunk(i int) error {
	h := &u.op.Hunks[i]
	context, places, err := u.context(i)
	if err != nil {
		return err
	}
	lines := h.Lines
	for {
		old := oldTexts(lines)
		if len(old) == 0 {
			return u.insert(i, lines, context, places)
		}
		start, pass, ok, err := u.place(i, old, context, places)
		if err != nil {
			return err
		}
		if ok {
			u.replace(i, start, lines, pass)
			return nil
		}
		last := lines[len(lines)-1] // an empty line at the end may be just space in the patch
		if last.Op != ' ' || last.Text != "" || len(lines) == 1 {
			return u.linesNotFound(h, oldTexts(h.Lines))
		}
		lines = lines[:len(lines)-1]
	}
}

func oldTexts(lines []Line) []string {
	var out []string
	for _, l := range lines {
		if l.Op != '+' {
			out = append(out, l.Text)
		}
	}
	return out
}

// context finds the hunk's @@ lines, each after the one before. line is the last one's, -1 without context;
// places are all the lines it might be, where only one @@ tells.
func (u *updater) context(i int) (line int, places []int, err error) {
	h := &u.op.Hunks[i]
	line = -1
	from := u.pos
	for k, c := range h.Context {
		found := u.text.seekContext(c, from)
		if len(found) == 0 && k == 0 && from > 0 { // hunks out of order
			if found = u.text.seekContext(c, 0); len(found) > 1 {
				found = nil
			}
		}
		if len(found) == 0 {
			return 0, nil, u.contextNotFound(h, c)
		}
		line, from = found[0], found[0]+1
		places = nil
		if len(h.Context) == 1 {
			places = found
		}
	}
	return line, places, nil
}

// insert places a hunk without old lines: at the end, under its context, at the stated line, else at the end.
func (u *updater) insert(i int, lines []Line, context int, places []int) error {
	h := &u.op.Hunks[i]
	at := len(u.text.lines)
	switch {
	case h.EOF:
	case context >= 0:
		if len(places) > 1 && u.alike(i) < len(places) {
			return u.ambiguous(h, places)
		}
		at = context + 1
	case h.Top:
		at = 0
	case h.OldStart > 0:
		at = min(h.OldStart+u.drift, at)
	}
	u.replace(i, at, lines, len(passes))
	return nil
}

// alike counts this hunk and the later ones that look for the same.
func (u *updater) alike(i int) int {
	if u.same == nil {
		u.same = make([]int, len(u.op.Hunks))
		seen := map[string]int{}
		for k := len(u.op.Hunks) - 1; k >= 0; k-- {
			h := &u.op.Hunks[k]
			key := strings.Join(h.Context, "\n") + "\x00" + strings.Join(oldTexts(h.Lines), "\n")
			seen[key]++
			u.same[k] = seen[key]
		}
	}
	return u.same[i]
}

// place decides where the old lines stand. Without anything to tell several places apart it refuses.
func (u *updater) place(i int, old []string, context int, contexts []int) (start, pass int, ok bool, err error) {
	h, t := &u.op.Hunks[i], u.text
	first := 1
	if u.exact {
		first = 0
	}
	from := u.pos
	if context >= 0 {
		from = context + 1
	}
	if h.EOF {
		for pass = first; pass < len(passes); pass++ {
			if start = len(t.lines) - len(old); start >= from && t.at(pass, old, start) {
				return start, pass, true, nil
			}
		}
	}
	stated := h.OldStart - 1 + u.drift
	if h.OldStart > 0 && stated >= from && t.at(first, old, stated) {
		return stated, first, true, nil
	}
	found, pass := t.seek(first, old, from)
	if len(found) == 0 && context >= 0 { // the lines may begin with the one the @@ names
		if found, pass = t.seek(first, old, context); len(found) > 0 && found[0] != context {
			found = nil
		}
	}
	ordered := len(found) > 0
	if !ordered && from > 0 {
		found, pass = t.seek(first, old, 0)
		found = u.free(found, len(old))
	}
	switch {
	case len(found) == 0:
		return 0, 0, false, nil
	case len(found) == 1:
		return found[0], pass, true, nil
	case h.OldStart > 0:
		sort.Slice(found, func(a, b int) bool { return abs(found[a]-stated) < abs(found[b]-stated) })
		if abs(found[0]-stated) < abs(found[1]-stated) {
			return found[0], pass, true, nil
		}
	case !ordered:
	case context >= 0 && (len(contexts) < 2 || !severalBlocks(found, contexts)):
		return found[0], pass, true, nil
	case u.alike(i) >= len(found):
		return found[0], pass, true, nil
	}
	return 0, 0, false, u.ambiguous(h, found)
}

// severalBlocks says that lines were found under more than one of the lines the context might be.
func severalBlocks(found, contexts []int) bool {
	n := 0
	for k, c := range contexts {
		end := int(^uint(0) >> 1)
		if k+1 < len(contexts) {
			end = contexts[k+1]
		}
		i := sort.SearchInts(found, c)
		if i < len(found) && found[i] < end {
			n++
		}
	}
	return n > 1
}

// free keeps the places that no earlier hunk has taken.
func (u *updater) free(found []int, n int) []int {
	var out []int
	for _, f := range found {
		taken := false
		for _, e := range u.edits {
			taken = taken || f < e.start+e.n && e.start < f+n
		}
		if !taken {
			out = append(out, f)
		}
	}
	return out
}

func abs(n int) int { return max(n, -n) }

// replace notes what becomes of the lines from start on. Lines that stay keep the file's bytes; new ones get the
// line ending of their neighbours unless a diff that matched to the byte says which.
func (u *updater) replace(i, start int, lines []Line, pass int) {
	h, t := &u.op.Hunks[i], u.text
	e := edit{start: start}
	at := start
	for _, l := range lines {
		switch l.Op {
		case '+':
			m := made{text: l.Text, kept: -1}
			if pass > 0 && !strings.HasSuffix(l.Text, "\r") && u.cr(start, at) && !u.states {
				m.text, m.cr = l.Text+"\r", true
			}
			e.lines = append(e.lines, m)
			continue
		case ' ':
			e.lines = append(e.lines, made{text: t.lines[at], kept: at})
		}
		at++
	}
	e.n = at - start
	u.edits = append(u.edits, e)
	u.pos = max(u.pos, at)
	if h.OldStart > 0 && len(oldTexts(lines)) > 0 {
		u.drift = start - (h.OldStart - 1)
	}
	if at == len(t.lines) {
		u.ending(h)
	}
}

// cr says whether a line put before line at should end in CRLF: as the line before, else as the one after.
func (u *updater) cr(start, at int) bool {
	t := u.text
	whole := len(t.lines) // lines with a newline
	if !t.final {
		whole--
	}
	if at > 0 && at-1 < whole && (at > start || at >= whole) {
		return strings.HasSuffix(t.lines[at-1], "\r")
	}
	if at < whole {
		return strings.HasSuffix(t.lines[at], "\r")
	}
	return whole > 0 && strings.HasSuffix(t.lines[whole-1], "\r")
}

// ending notes what a diff says of the newline at the end of the file.
func (u *updater) ending(h *Hunk) {
	stated, last := u.exact && len(u.text.lines) == 0, true
	for _, l := range h.Lines {
		stated = stated || l.NoEOL
		if l.Op != '-' {
			last = !l.NoEOL
		}
	}
	if stated {
		u.final = &last
	}
}

func (u *updater) build() string {
	sort.SliceStable(u.edits, func(a, b int) bool {
		if u.edits[a].start != u.edits[b].start {
			return u.edits[a].start < u.edits[b].start
		}
		return u.edits[a].n == 0 && u.edits[b].n > 0 // an insert comes before what replaces the line there
	})
	t := u.text
	var out []made
	done := 0
	keep := func(to int) {
		for ; done < to; done++ {
			out = append(out, made{text: t.lines[done], kept: done})
		}
	}
	for _, e := range u.edits {
		keep(e.start)
		out = append(out, e.lines...)
		done = max(done, e.start+e.n)
	}
	keep(len(t.lines))
	final := t.final
	if u.final != nil {
		final = *u.final
	}
	var b strings.Builder
	for i, m := range out {
		unended := !t.final && m.kept == len(t.lines)-1 // had no line ending at all
		switch {
		case i < len(out)-1 || final:
			if unended && m.kept > 0 && strings.HasSuffix(t.lines[m.kept-1], "\r") && !strings.HasSuffix(m.text, "\r") {
				m.text += "\r"
			}
			m.text += "\n"
		case m.cr || u.final == nil && !unended:
			m.text = strings.TrimSuffix(m.text, "\r")
		}
		b.WriteString(m.text)
	}
	return b.String()
}
