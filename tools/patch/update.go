package patch

import (
	"slices"
	"sort"
	"strings"

	"github.com/pillion-dev/pillion/tools/replace"
)

// update returns a file's text with the hunks of op applied, all or none. Those of a diff state line numbers and the newline at the end. path
// names the file in errors, which are *Error, and tells its language.
func (t *tree) update(op *Op, path, old string) (string, []Loose, error) {
	if len(op.Hunks) == 0 {
		return old, nil, nil
	}
	u := &updater{op: op, path: path, text: newText(old)}
	if t.literals != nil {
		u.literals = func(text string) ([][2]int, bool) { return t.literals(path, text) }
	}
	if t.unified {
		u.exact = true
		// A diff with a CR in any line was made by a program and states line endings; one without may have lost them on its way
		// through a model.
		for _, h := range op.Hunks {
			for _, l := range h.Lines {
				u.states = u.states || strings.HasSuffix(l.Text, "\r")
			}
		}
	}
	for i := range op.Hunks {
		if err := u.hunk(i); err != nil {
			return "", nil, err
		}
	}
	return u.build(), u.loose, nil
}

// updater collects the edits of one section; all positions are lines of the text as it was, so a hunk does not move
// what later ones look for.
type updater struct {
	op     *Op
	path   string
	text   *text
	exact  bool // a diff: line numbers and the newline at the end are stated
	states bool // a diff that has CRs says itself which lines end in CRLF
	pos    int  // 0-based line after the last hunk's
	drift  int  // found minus stated position of the last hunk
	edits  []edit
	loose  []Loose
	same   []int // by hunk: see alike, which makes it on first use
	final  *bool // whether the last line ends in a newline, where a diff says so; nil: as it was

	literals replace.Literals // of the file
}

// edit replaces n lines of the old text from start, 0-based; with n 0 it inserts before start. Edits do not overlap.
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

// hunk places one hunk. Where its old lines are not found, it tries them without an empty last line, and then the block that is most
// like them. A hunk without old lines is an insertion.
func (u *updater) hunk(i int) error {
	h := &u.op.Hunks[i]
	context, places, err := u.context(i)
	if err != nil {
		return err
	}
	// A diff was made by a program and means every line.
	if !u.exact {
		if line := replace.Abbreviation(oldTexts(h.Lines), newTexts(h.Lines)); line != "" {
			return u.abbreviated(h, line)
		}
		if line := replace.NumberedAnew(oldTexts(h.Lines), added(h.Lines)); line != "" {
			return u.numbered(h, line)
		}
	}
	lines, atEnd := u.unnumbered(h.Lines), false
	stated := false // an empty line that was left out is quoted as a line of the file
	for {
		old := oldTexts(lines)
		if len(old) == 0 {
			return u.insert(i, lines, context, places)
		}
		start, pass, ok, err := u.place(i, old, context, places)
		if err != nil {
			return err
		}
		if end := start + len(old); ok && (!atEnd || end == len(u.text.lines)) {
			// The file has another line where the hunk quotes an empty one: do new lines come before or after that?
			if stated && end < len(u.text.lines) && growsLast(lines) {
				return u.conflict(h, start, len(old))
			}
			return u.replace(i, start, len(old), lines, pass)
		}
		// Tried only after a miss, since an empty line that the file has must be matched.
		shorter, removed, ok := withoutLastBlank(lines)
		atEnd = atEnd || removed
		if !ok {
			return u.merge(i, h.Lines, context)
		}
		if last := lines[len(lines)-1]; last.Op == ' ' && !last.Bare {
			stated = true
		}
		lines = shorter
	}
}

// unnumbered removes line numbers that were copied along from lines which the file has exactly without them; see replace.Unnumber.
func (u *updater) unnumbered(lines []Line) []Line {
	numbered := oldTexts(lines)
	old, added, ok := replace.Unnumber(numbered, added(lines))
	if !ok || len(u.text.find(1, numbered, 0)) > 0 || len(u.text.find(1, old, 0)) == 0 ||
		replace.Undecidable(strings.Join(old, "\n"), strings.Join(added, "\n")) {
		return lines
	}
	out := slices.Clone(lines)
	for i, l := range lines {
		from := &old
		if l.Op == '+' {
			from = &added
		}
		out[i].Text, *from = (*from)[0], (*from)[1:]
	}
	return out
}

// added are the lines that the hunk brings.
func added(lines []Line) []string {
	var out []string
	for _, l := range lines {
		if l.Op == '+' {
			out = append(out, l.Text)
		}
	}
	return out
}

// withoutLastBlank drops an empty last old line. As a context line it may only be space in the patch; as a removed line it may be the
// empty text after the file's last line ending, and only there. ok is false where there is none.
func withoutLastBlank(lines []Line) (shorter []Line, removed, ok bool) {
	n := len(lines) - 1
	for n > 0 && lines[n].Op == '+' {
		n--
	}
	if n <= 0 || lines[n].Text != "" || lines[n].Op == '+' || lines[n].Op == ' ' && n < len(lines)-1 {
		return nil, false, false
	}
	return slices.Concat(lines[:n], lines[n+1:]), lines[n].Op == '-', true
}

// growsLast reports whether the lines end in a change of one run of lines into a run of another length, of which there is something.
func growsLast(lines []Line) bool {
	count := map[byte]int{}
	for k := len(lines) - 1; k >= 0 && lines[k].Op != ' '; k-- {
		count[lines[k].Op]++
	}
	return count['+'] > 0 && count['+'] != count['-']
}

// merge applies a hunk whose lines are not in the file as quoted to the one block that has most of them, as far as
// what it changes is there as quoted; see replace.Merge.
func (u *updater) merge(i int, lines []Line, context int) error {
	h, old := &u.op.Hunks[i], oldTexts(lines)
	start, n, ok := replace.SimilarBlock(strings.Join(u.text.lines, "\n"), old)
	// A similar block must not contradict what the hunk states: its @@, the end of the file, and that earlier hunks have not changed
	// it.
	if !ok || h.EOF || start <= context-1 || len(u.free([]int{start}, n)) == 0 {
		return u.linesNotFound(h, old)
	}
	return u.replace(i, start, n, lines, len(passes))
}

// newTexts are the lines that are there after the hunk.
func newTexts(lines []Line) []string {
	var out []string
	for _, l := range lines {
		if l.Op != '-' {
			out = append(out, l.Text)
		}
	}
	return out
}

// oldTexts are the lines that must be there before the hunk.
func oldTexts(lines []Line) []string {
	var out []string
	for _, l := range lines {
		if l.Op != '+' {
			out = append(out, l.Text)
		}
	}
	return out
}

// context finds the hunk's @@ lines, each after the one before: several name a class and then a method in it. line is that of the last
// one, 0-based, -1 without context. places are all lines that it might be, when there is a single @@.
func (u *updater) context(i int) (line int, places []int, err error) {
	h := &u.op.Hunks[i]
	line = -1
	from := u.pos
	for k, c := range h.Context {
		found := u.text.seekContext(c, from)
		if len(found) == 0 && k == 0 && from > 0 { // hunks out of order
			// With several before the last hunk, choosing one would be a guess.
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
	// Under the line that the @@ names.
	case context >= 0:
		if len(places) > 1 && u.alike(i) < len(places) {
			return u.ambiguous(h, places)
		}
		at = context + 1
	case h.Top:
		at = 0
	// A diff states the line before the insertion, counted from 1, which is the 0-based line that it goes before.
	case h.OldStart > 0:
		at = min(h.OldStart+u.drift, at)
	}
	return u.replace(i, at, 0, lines, len(passes))
}

// alike is the number of hunks from this one on that look for the same lines. As many equal hunks as there are places mean one each, in
// order; fewer could mean any of them. All hunks are counted at the first call.
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

// place decides where the old lines are: start is 0-based, pass says how they were compared. ok is false when they are
// nowhere. When several places fit and neither a line number, @@, End of File nor equal hunks tell them apart, the
// error lists them. In this order: the end where the hunk says so, the stated line, the lines after the last hunk,
// those before it.
func (u *updater) place(i int, old []string, context int, contexts []int) (start, pass int, ok bool, err error) {
	h, t := &u.op.Hunks[i], u.text
	// An envelope says nothing of CRs, so its strictest pass ignores them.
	first := 1
	if u.exact {
		first = 0
	}
	from := u.pos
	if context >= 0 {
		from = context + 1
	}
	// The last lines of the file. If they are others, End of File is ignored, because models add it freely.
	if h.EOF {
		for pass = first; pass < len(passes); pass++ {
			if start = len(t.lines) - len(old); start >= from && t.at(pass, old, start) {
				return start, pass, true, nil
			}
		}
	}
	// The hunks of a diff against another version are all off by about the same number of lines, hence drift.
	stated := h.OldStart - 1 + u.drift
	if h.OldStart > 0 && stated >= from && t.at(first, old, stated) {
		return stated, first, true, nil
	}
	// First after the last hunk, because hunks usually come in the file's order.
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
	// The place nearest to the stated line; two that are equally near decide nothing.
	case h.OldStart > 0:
		sort.Slice(found, func(a, b int) bool { return abs(found[a]-stated) < abs(found[b]-stated) })
		if abs(found[0]-stated) < abs(found[1]-stated) {
			return found[0], pass, true, nil
		}
	// Several places before the last hunk: neither order nor context tells them apart.
	case !ordered:
	case context >= 0 && (len(contexts) < 2 || !severalBlocks(found, contexts)):
		return found[0], pass, true, nil
	case u.alike(i) >= len(found):
		return found[0], pass, true, nil
	}
	return 0, 0, false, u.ambiguous(h, found)
}

// severalBlocks reports whether lines were found after more than one of the lines that the context may name, each reaching
// to the next. Both lists ascend.
func severalBlocks(found, contexts []int) bool {
	n := 0
	for k, c := range contexts {
		// The last one reaches to the end of the file.
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

// free keeps the places that no earlier hunk has taken: edits must not overlap, see build.
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

// abs is |n|.
func abs(n int) int { return max(n, -n) }

// replace records what becomes of the n lines from start on. Lines that stay keep the file's bytes. New lines get the indentation of the
// lines that they were written beside, and the line ending of their neighbours unless a diff states it. Lines
// that were found with white space ignored are merged, because a replacement would write the patch's white space.
func (u *updater) replace(i, start, n int, lines []Line, pass int) error {
	h, t := &u.op.Hunks[i], u.text
	e := edit{start: start, n: n}
	at := start
	moved := replace.Endings{}
	for i, line := range t.lines[start : start+n] {
		if start+i == len(t.lines)-1 && !t.final {
			break // it has no line ending
		}
		moved.Add(strings.TrimSuffix(line, "\r"), strings.HasSuffix(line, "\r"))
	}
	add := func(text string) {
		m := made{text: text, kept: -1}
		// A model writes LF; in a file with CRLF its lines would be the only ones with another ending.
		if !strings.HasSuffix(text, "\r") && !u.states {
			crlf, ok := moved.Of(text)
			if !ok {
				crlf = u.cr(start, at)
			}
			if crlf {
				m.text, m.cr = text+"\r", true
			}
		}
		e.lines = append(e.lines, m)
	}
	// The lines were found as quoted: context lines are the file's own, added ones the patch's.
	if pass < loose || n == 0 {
		gone := at // the first line that went and has not come back
		// back keeps a line that goes and comes back as it was: it is the file's own, with its line ending.
		back := func(text string) bool {
			for k := gone; k < at && !u.exact; k++ {
				if strings.TrimSuffix(t.lines[k], "\r") == text {
					e.lines, gone = append(e.lines, made{text: t.lines[k], kept: k}), k+1
					return true
				}
			}
			return false
		}
		for _, l := range lines {
			switch l.Op {
			case '+':
				if back(l.Text) {
					continue
				}
				add(l.Text)
				continue
			case ' ':
				e.lines = append(e.lines, made{text: t.lines[at], kept: at})
				gone = at + 1
			}
			at++
		}
	} else {
		have := make([]string, n)
		for k := range have {
			have[k] = strings.TrimSuffix(t.lines[start+k], "\r")
		}
		// A line number, an @@ or End of File has already said which place is meant.
		if rival := replace.Rival(strings.Join(t.lines, "\n"), oldTexts(lines), start, n, pass == len(passes)); rival >= 0 && len(h.Context) == 0 && h.OldStart == 0 && !h.EOF {
			return u.ambiguous(h, []int{start, rival})
		}
		merged, ok := replace.MergeIn(t.lines, oldTexts(lines), have, newTexts(lines))
		if !ok || replace.RewritesLiteral(u.literals, strings.Join(t.lines, "\n"), oldTexts(lines), newTexts(lines), start, n) {
			return u.conflict(h, start, n)
		}
		said, is := strings.Join(oldTexts(lines), "\n"), strings.Join(have, "\n")
		u.loose = append(u.loose, Loose{First: start + 1, Last: start + n, Text: is, Reworded: !replace.SameWords(said, is)})
		for _, l := range merged {
			if l.From < 0 {
				add(l.Text)
				continue
			}
			at = start + l.From
			e.lines = append(e.lines, made{text: t.lines[at], kept: at})
			at++
		}
	}
	// The same change may be there already, beside the lines that the hunk quotes. What states its place means that very place.
	if n > 0 && h.OldStart == 0 {
		if at := replace.Doubles(t.lines, start, n, asLines(e, start), pass < loose); at >= 0 {
			return u.made(h, at)
		}
	}
	at = start + n
	u.edits = append(u.edits, e)
	u.pos = max(u.pos, at)
	// A hunk without old lines was put where it was stated, so it proves no drift.
	if h.OldStart > 0 && len(oldTexts(lines)) > 0 {
		u.drift = start - (h.OldStart - 1)
	}
	if at == len(t.lines) {
		u.ending(h)
	}
	return nil
}

// asLines are the lines of an edit as package replace has them.
func asLines(e edit, start int) []replace.Line {
	out := make([]replace.Line, len(e.lines))
	for i, m := range e.lines {
		out[i] = replace.Line{Text: strings.TrimSuffix(m.text, "\r"), From: -1}
		if m.kept >= 0 {
			out[i].From = m.kept - start
		}
	}
	return out
}

// cr reports whether a line that is put before line at should end in CRLF: as the line before it, else as the one after. start is the first
// line of the edit: at its beginning the line after decides, unless the file ends there.
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

// ending records what a diff says about the newline at the end of the file. It is called for a hunk that reaches that end.
func (u *updater) ending(h *Hunk) {
	// A diff of an empty file says by its lines how the new file ends.
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

// build writes the new text from the edits and the lines between them. Edits do not overlap, so sorting them by line is
// enough.
func (u *updater) build() string {
	// The sort is stable: of two inserts at one line, the first in the patch comes first.
	sort.SliceStable(u.edits, func(a, b int) bool {
		if u.edits[a].start != u.edits[b].start {
			return u.edits[a].start < u.edits[b].start
		}
		return u.edits[a].n == 0 && u.edits[b].n > 0 // an insert comes before what replaces the line there
	})
	t := u.text
	var out []made
	done := 0
	// Lines between the edits are the file's, to the byte.
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
		// The file's last line had no line ending. If other lines follow it in the result, it gets that of the line before it.
		unended := !t.final && m.kept == len(t.lines)-1
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
