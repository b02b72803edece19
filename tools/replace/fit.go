package replace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// result replaces the hits, in the order of the text, by new, which is fitted to each of their texts once, and works out the spans in both
// texts. The error is a conflict: then nothing is replaced.
func (q *query) result(stage string, hits []place, new string) (Result, error) {
	s, first := q.src, hits[0]
	if lines := s.lines(first); first.n == 0 && len(hits) == 1 && lines > 0 &&
		(strings.Contains(q.margins(), "\n") && s.text[first.start:first.end] != q.old || q.outdented(first, new)) {
		// The match is inside lines, but covers whole ones. Either the quotation has blank lines at its ends that the file does not have,
		// which would be written as white space, or see outdented. As whole lines both are merged correctly.
		first = q.block(s.lineAt(first.start), lines)
		hits = []place{first}
	}
	if last := first.line + first.n; q.ended && first.n > 0 && len(hits) == 1 && new != "" && !strings.HasSuffix(new, "\n") && last < s.count() && trim(s.line(last)) == "" {
		// The empty text behind the last line ending is a blank line of the file, which the change removes.
		first, q.ended, q.lines = q.block(first.line, first.n+1), false, append(slices.Clip(q.lines), "")
		hits = []place{first}
	}
	// The quotation ends in a line break that the new text has not, and no blank line is there: one of the two lines is not as was meant.
	if q.ended && first.n > 0 && len(hits) == 1 && new != "" && !strings.HasSuffix(new, "\n") && stage == "similar_block" && first.line+first.n < s.count() {
		return Result{}, q.conflict(first)
	}
	if stage != Stages[0] {
		if p, ok := q.rewritesLiteral(hits, new); ok {
			return Result{}, q.conflict(p)
		}
	}
	r := Result{Stage: stage}
	fits := map[string]fitted{}
	grown := 0
	for _, h := range hits {
		matched := s.text[h.start:h.end]
		f, known := fits[matched]
		if !known {
			var ok bool
			if f, ok = q.fit(h, new); !ok {
				return Result{}, q.conflict(h)
			}
			fits[matched] = f
			r.Reworded = r.Reworded || matched != q.old && !SameWords(q.old, matched)
		}
		if len(hits) == 1 {
			at := -1
			if f.lines != nil {
				at = Doubles(strings.Split(s.text, "\n"), h.line, h.n, f.lines, false)
			} else {
				at = s.standing(h, f.text)
			}
			if at < 0 && stage != Stages[0] {
				at = q.madeElsewhere(h, new)
			}
			if at >= 0 {
				return Result{}, q.made(at)
			}
		}
		grown += max(0, len(f.text)-len(matched))
	}
	if s.text[first.start:first.end] != q.old {
		r.Replaced = s.raw[s.rawOffset(first.start):s.rawOffset(first.end)]
	}
	if f := fits[s.text[first.start:first.end]]; f.text != new {
		r.Written = f.text
	}
	// The text is built from the raw bytes, so that what is outside the hits keeps its line endings.
	var b strings.Builder
	b.Grow(len(s.raw) + grown)
	done, before := 0, 0 // ends of the last hit: in raw, in text
	for _, h := range hits {
		start, end := h.start, h.end
		f := fits[s.text[start:end]]
		if f.gone {
			start, end = s.wholeLine(start, end)
			start = max(start, before) // two hits on adjoining lines share the newline between them: it is removed once
		}
		before = end
		// Where lines go at the end, the last one that stays keeps its line ending instead of getting that of the last one that goes.
		kept := -1
		if !f.gone {
			kept = s.lastKept(start, end, f)
		}
		if kept >= 0 {
			end++
		}
		span := s.span(start, end)
		b.WriteString(s.raw[done:span.Start])
		from := b.Len()
		if f.lines != nil {
			b.WriteString(s.lineEndings(s.lineAt(h.start), h.n, f.lines))
		} else {
			b.WriteString(s.endings(h.start, h.end, f.text))
		}
		if kept >= 0 {
			b.WriteString(s.lineEnding(kept))
		}
		done = span.End
		r.Spans = append(r.Spans, span)
		r.Inside = append(r.Inside, Span{Start: from, End: b.Len()})
	}
	b.WriteString(s.raw[done:])
	r.Text = b.String()
	// Lines of Inside count in the new text; each part of it is counted once, as there may be many hits.
	line, at := 1, 0
	for i := range r.Inside {
		in := &r.Inside[i]
		line += strings.Count(r.Text[at:in.Start], "\n")
		in.StartLine = line
		line += strings.Count(r.Text[in.Start:in.End], "\n")
		in.EndLine, at = line, in.End
		if in.End > in.Start && r.Text[in.End-1] == '\n' {
			in.EndLine--
		}
	}
	return r, nil
}

// fitted is the text for a place, with LF line endings.
type fitted struct {
	text  string
	lines []Line // of whole lines: where each comes from; nil inside lines and after an exact match
	gone  bool   // the lines are deleted together with a line ending
}

// fit adapts new to a place: new unchanged where old is the place's text to the byte, else a merge of the change from old to new into what
// the place has. ok is false when the change touches words or lines that are not as quoted.
func (q *query) fit(p place, new string) (f fitted, ok bool) {
	matched := q.src.text[p.start:p.end]
	if matched == q.old {
		return fitted{text: new}, true
	}
	old := q.old
	// Where the quotation was escaped once too often, new was as well.
	if decoded := unescape(old); decoded != old && key(decoded) == key(matched) {
		// Other escapes than those of the quotation may be escaped once too often too, or meant.
		doubtful := !strings.Contains(q.old, `\\`) && strings.Contains(new, `\\`)
		if old, new = decoded, unescapeAs(q.old, new); matched == old || doubtful {
			return fitted{text: new}, !doubtful && !Undecidable(old, new)
		}
	}
	// Inside a line there is no indentation to work out: words are enough.
	if p.n == 0 {
		if isASCII(matched) {
			o, n := plain([]string{collapse(old)}, []string{collapse(matched)}, []string{new})
			if n[0] != new {
				old, new = o[0], n[0]
			}
		}
		// Lines that come before or behind it need an indentation, and that of the quotation is not the file's.
		lead := q.old[:len(q.old)-len(trimLeft(q.old))]
		in := lead[strings.LastIndexByte(lead, '\n')+1:]
		line := q.src.line(q.src.lineAt(p.start))
		if lead != "" && strings.Count(trim(new), "\n") > strings.Count(trim(old), "\n") && indent(line) != in {
			return fitted{}, false
		}
		// New lines behind a last line that is quoted in part, or before such a first line, would take the rest of it along.
		if n := strings.Count(trim(old), "\n"); n > 0 && strings.Count(trim(new), "\n") != n {
			was, is := strings.Split(trim(old), "\n"), strings.Split(trim(new), "\n")
			rest, _, _ := strings.Cut(q.src.text[p.end:], "\n")
			if trim(rest) != "" && trim(was[n]) != trim(is[len(is)-1]) || p.start > q.src.starts[q.src.lineAt(p.start)]+len(indent(line)) && trim(was[0]) != trim(is[0]) {
				return fitted{}, false
			}
		}
		// A first line at another depth than the quotation's would get that of the file's line, and the lines below it would not.
		if in != "" && new != "" && !strings.HasPrefix(new, lead) && strings.Contains(trim(old)+trim(new), "\n") && p.start == q.src.starts[q.src.lineAt(p.start)]+len(indent(line)) {
			return fitted{}, false
		}
		if trim(old) == trim(matched) {
			return fitted{text: q.unpad(new)}, true
		}
		text, ok := mergeWords(trim(old), matched, q.unpad(new))
		return fitted{text: text}, ok
	}
	theirs := strings.Split(new, "\n")
	if q.ended { // the last line's own line ending is not part of the place
		switch {
		case new == "":
			theirs = nil
		case theirs[len(theirs)-1] == "":
			theirs = theirs[:len(theirs)-1]
		}
	}
	have := make([]string, p.n)
	for i := range have {
		have[i] = q.src.line(p.line + i)
	}
	base := strings.Split(old, "\n")
	if q.ended {
		base = base[:len(base)-1]
	}
	// Line by line first: it keeps more of the file. Where that is refused, the words may still be the same with other
	// breaks.
	m := newMerger(base, have, theirs)
	m.style = styleOf(strings.Split(q.src.text, "\n"))
	lines, ok := m.merge()
	if !ok {
		if lines, ok = m.reflow(); !ok {
			return fitted{}, false
		}
	}
	f = fitted{text: strings.Join(texts(lines), "\n"), lines: lines, gone: len(lines) == 0}
	if f.lines == nil {
		f.lines = []Line{}
	}
	return f, true
}

// reflow merges lines that were quoted with other line breaks (a formatter has wrapped them since). Runs of quoted lines that have the words
// of a run of lines of the file are one unit: the change may keep or delete it as a whole. ok is false when the words differ, or the change
// touches a part of such a run.
func (m *merger) reflow() ([]Line, bool) {
	base, ours, theirs := m.base, m.ours, m.theirs
	var units [][]string // the file's lines of each run
	var starts []int     // the first line of each, in ours
	var quoted, have []string
	i, k := 0, 0
	for i < len(base) || k < len(ours) {
		switch {
		case i < len(base) && k < len(ours) && collapse(base[i]) == collapse(ours[k]):
			quoted, have = append(quoted, base[i]), append(have, ours[k])
			i, k = i+1, k+1
			continue
		case i < len(base) && trim(base[i]) == "":
			quoted = append(quoted, base[i])
			i++
			continue
		case k < len(ours) && trim(ours[k]) == "":
			have = append(have, ours[k])
			k++
			continue
		}
		// The shortest runs from here on with the same words.
		i1, k1 := i, k
		for said, is := "", ""; ; {
			switch {
			case len(said) <= len(is) && i1 < len(base):
				said = collapse(said + " " + base[i1])
				i1++
			case k1 < len(ours):
				is = collapse(is + " " + ours[k1])
				k1++
			default:
				return nil, false
			}
			if said == is && said != "" {
				break
			}
		}
		// A mark stands for the run in all three texts. No line of a file has a NUL and a newline.
		mark := fmt.Sprintf("\x00\n%d", len(units))
		units, starts = append(units, ours[k:k1]), append(starts, k)
		quoted, have = append(quoted, indent(base[i])+mark), append(have, indent(ours[k])+mark)
		var rest []string
		found := 0
		for j := 0; j < len(theirs); j++ {
			if j+i1-i <= len(theirs) && slices.EqualFunc(base[i:i1], theirs[j:j+i1-i], func(a, b string) bool { return trim(a) == trim(b) }) {
				rest, j = append(rest, indent(theirs[j])+mark), j+i1-i-1
				found++
				continue
			}
			rest = append(rest, theirs[j])
		}
		if found > 1 {
			return nil, false
		}
		theirs, i, k = rest, i1, k1
	}
	if len(units) == 0 {
		return nil, false
	}
	whole := newMerger(quoted, have, theirs)
	whole.style = m.style
	lines, ok := whole.merge()
	if !ok {
		return nil, false
	}
	var out []Line
	for _, line := range lines {
		at, n, isUnit := strings.Cut(line.Text, "\x00\n")
		if !isUnit {
			out = append(out, Line{line.Text, -1})
			continue
		}
		unit, _ := strconv.Atoi(n)
		if at != indent(units[unit][0]) {
			return nil, false // moved to another depth, and how its lines are aligned there is unknown
		}
		for k, text := range units[unit] {
			out = append(out, Line{text, starts[unit] + k})
		}
	}
	return out, true
}

// each applies f to every line and returns the results in a new slice.
func each(lines []string, f func(string) string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = f(line)
	}
	return out
}

// outdented reports whether a quotation that starts after its line's indentation is in the new text again, further down and without
// indentation. The new text was then written without the file's indentation, and only its first line would get that, by its place. result
// takes the place as whole lines instead, which the merge indents.
func (q *query) outdented(p place, new string) bool {
	s := q.src
	if p.start == s.starts[s.lineAt(p.start)] || q.lines[0] == "" || indent(q.lines[0]) != "" {
		return false
	}
	head, rest, _ := strings.Cut(new, "\n")
	return trimRight(head) != trimRight(q.lines[0]) && slices.ContainsFunc(strings.Split(rest, "\n"), func(line string) bool {
		return trimRight(line) == trimRight(q.lines[0])
	})
}

// lines is how many whole lines a place is, indentation and blanks at the ends aside; 0 when a line is there in part.
func (s *source) lines(p place) int {
	if p.end > p.start && s.text[p.end-1] == '\n' {
		p.end--
	}
	from, to := s.lineAt(p.start), s.lineAt(p.end)
	if trim(s.text[s.starts[from]:p.start]) != "" || trim(s.text[p.end:s.lineEnd(to)]) != "" {
		return 0
	}
	return to - from + 1
}

// margins is the white space that the quotation begins and ends with, both in one string.
func (q *query) margins() string {
	return q.old[:len(q.old)-len(trimLeft(q.old))] + q.old[len(trimRight(q.old)):]
}

// unpad removes from new the white space around it that old has too. The file has none there, so the model put it around both, and writing
// it would add it to the file.
func (q *query) unpad(new string) string {
	lead, tail := q.old[:len(q.old)-len(trimLeft(q.old))], q.old[len(trimRight(q.old)):]
	n := 0
	for n < len(lead) && n < len(new) && lead[n] == new[n] {
		n++
	}
	if trimLeft(new[:n]) != "" { // a blank of several bytes was cut in the middle
		n = 0
	}
	new = new[n:]
	n = 0
	for n < len(tail) && n < len(new) && tail[len(tail)-1-n] == new[len(new)-1-n] {
		n++
	}
	if trimLeft(new[len(new)-n:]) != "" {
		n = 0
	}
	return new[:len(new)-n]
}

// wholeLine widens a range of whole lines by their newline, the one before when the text ends without one: a deleted line
// must not leave an empty one behind.
func (s *source) wholeLine(start, end int) (int, int) {
	switch {
	case start > 0 && s.text[start-1] != '\n':
	case end < len(s.text) && s.text[end] == '\n':
		end++
	case end == len(s.text) && start > 0:
		start--
	}
	return start, end
}

// endings gives text, in LF, the line endings of what it replaces: CRLF if the whole file has it; where it mixes them,
// unchanged lines at both ends keep theirs and the others follow the replaced ones if those agree. A new ending for a
// line that did not change would show as a change of the line.
func (s *source) endings(start, end int, text string) string {
	if len(s.crs) == 0 || !strings.Contains(text, "\n") {
		return text
	}
	// The usual case, a file with CRLF throughout.
	if len(s.crs) == strings.Count(s.text, "\n") {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	old := strings.SplitAfter(s.text[start:end], "\n")
	var cr []bool // for each newline of old
	crs, at := 0, start
	for _, line := range old {
		if at += len(line); strings.HasSuffix(line, "\n") {
			cr = append(cr, s.rawOffset(at)-s.rawOffset(at-1) == 2)
			if cr[len(cr)-1] {
				crs++
			}
		}
	}
	rest := crs > 0
	if end < len(s.text) && s.text[end] == '\n' { // the last line's own, outside of the range
		cr = append(cr, s.rawOffset(end+1)-s.rawOffset(end) == 2)
		rest = rest || len(cr) == 1 && cr[0]
	} else if len(cr) == 0 {
		rest = true
	}
	lines := strings.SplitAfter(text, "\n")
	from := make([]int, len(lines)) // for each line the one of old that it is, -1 for none
	for i := range from {
		from[i] = -1
	}
	bare := func(s string) string { return strings.TrimSuffix(s, "\n") }
	moved := Endings{}
	for k, line := range old[:len(cr)] {
		moved.Add(bare(line), cr[k])
	}
	for k, i := range subsequence(each(old, bare), each(lines, bare)) {
		if i >= 0 {
			from[i] = k
		}
	}
	var b strings.Builder
	for i, line := range lines {
		body, ended := strings.CutSuffix(line, "\n")
		b.WriteString(body)
		if !ended {
			continue
		}
		with := rest
		if k := from[i]; k >= 0 && k < len(cr) {
			with = cr[k]
		} else if crlf, ok := moved.Of(body); ok {
			with = crlf
		} else if len(lines) == len(old) && i < len(cr) {
			with = cr[i]
		}
		if with {
			b.WriteByte('\r')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Endings are the line endings of lines that are replaced, by their texts without it: a line that moves keeps its own. Where equal lines have
// both, nothing says which of them a line is.
type Endings map[string]struct{ crlf, lf bool }

// Add notes a line.
func (e Endings) Add(line string, crlf bool) {
	has := e[line]
	has.crlf, has.lf = has.crlf || crlf, has.lf || !crlf
	e[line] = has
}

// Of is the ending of the lines with a text; ok is false where there is none, or both are.
func (e Endings) Of(line string) (crlf, ok bool) {
	has := e[line]
	return has.crlf, has.crlf != has.lf
}

// lastKept is the line of the text that the last line of what replaces start to end is, where the file mixes line endings and it is another
// line than the last one of that range; -1 otherwise.
func (s *source) lastKept(start, end int, f fitted) int {
	if len(s.crs) == 0 || len(s.crs) == strings.Count(s.text, "\n") || end >= len(s.text) || s.text[end] != '\n' {
		return -1
	}
	first, last := s.lineAt(start), s.lineAt(end)
	at := last
	if f.lines != nil {
		if n := len(f.lines); n > 0 && f.lines[n-1].From >= 0 {
			at = first + f.lines[n-1].From
		}
	} else if k := strings.Count(f.text, "\n"); k < last-first && strings.HasPrefix(s.text[start:end], f.text+"\n") {
		at = first + k
	}
	if tail := f.text[strings.LastIndexByte(f.text, '\n')+1:]; at == last && tail != s.line(last) { // a line that moves there
		moved := Endings{}
		for i := first; i < last; i++ {
			if line := s.line(i); line == tail {
				moved.Add(line, s.lineEnding(i) == "\r\n")
				at = i
			}
		}
		if _, ok := moved.Of(tail); !ok {
			at = last
		}
	}
	if at == last {
		return -1
	}
	return at
}

// lineEnding is that of a line that is not the last one.
func (s *source) lineEnding(i int) string {
	if at := s.lineEnd(i); at < len(s.text) && s.rawOffset(at+1)-s.rawOffset(at) == 2 {
		return "\r\n"
	}
	return "\n"
}

// lineEndings joins merged lines of the block of n lines that begins at a line. A line of the file keeps its own line ending, also where the
// change moves it; a new one gets that of the line before it, or after it at the top. The last line's is not part of the block. Where the
// block has no ending to go by, the line above it decides, and at last the majority in the file.
func (s *source) lineEndings(block, n int, lines []Line) string {
	end := func(from int) string { return s.lineEnding(block + from) }
	last := "\n"
	if len(s.crs)*2 > strings.Count(s.text, "\n") {
		last = "\r\n"
	}
	known := func(from int) bool { return from >= 0 && s.lineEnd(block+from) < len(s.text) }
	switch first := slices.IndexFunc(lines, func(l Line) bool { return known(l.From) }); {
	case first >= 0:
		last = end(lines[first].From)
	case known(0):
		last = end(0)
	case block > 0:
		last = end(-1)
	}
	moved := Endings{}
	for i := range n {
		if known(i) {
			moved.Add(s.line(block+i), end(i) == "\r\n")
		}
	}
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(l.Text)
		its := last
		if known(l.From) {
			last = end(l.From)
			its = last
		} else if crlf, ok := moved.Of(l.Text); ok && crlf {
			its = "\r\n"
		} else if ok {
			its = "\n"
		}
		if i < len(lines)-1 {
			b.WriteString(its)
		}
	}
	return b.String()
}
