package replace

import "strings"

// result puts new where the hits are. first is the place that decided; the hits have its text.
func (q *query) result(stage string, first place, hits, weighed []place, new string) Result {
	s := q.src
	matched := s.text[first.start:first.end]
	written, gone := q.fit(first, new)
	r := Result{Stage: stage}
	if matched != q.old {
		r.Replaced = s.raw[s.rawOffset(first.start):s.rawOffset(first.end)]
	}
	if written != new {
		r.Written = written
	}
	var b strings.Builder
	b.Grow(len(s.raw) + len(hits)*max(0, len(written)-len(matched)))
	done, before := 0, 0 // ends of the last hit: in raw, in text
	for _, h := range hits {
		start, end := h.start, h.end
		if gone {
			start, end = s.wholeLine(start, end)
			start = max(start, before) // the newline between two hits goes once
		}
		before = end
		span := s.span(start, end)
		b.WriteString(s.raw[done:span.Start])
		from := b.Len()
		b.WriteString(s.endings(start, end, written))
		done = span.End
		r.Spans = append(r.Spans, span)
		r.Inside = append(r.Inside, Span{Start: from, End: b.Len()})
	}
	b.WriteString(s.raw[done:])
	r.Text = b.String()
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
	for _, w := range weighed {
		if s.text[w.start:w.end] != matched && len(r.Similar) < 20 {
			r.Similar = append(r.Similar, s.lineAt(w.start)+1)
		}
	}
	return r
}

// fit adapts new to a place that is not old to the byte: the file's final newline, indentation and the white
// space around it stay. gone: whole lines were quoted, newline included, and nothing comes instead.
func (q *query) fit(p place, new string) (written string, gone bool) {
	matched := q.src.text[p.start:p.end]
	if matched == q.old {
		return new, false
	}
	if p.n == 0 {
		if unescape(q.old) == matched {
			return new, false
		}
		return q.unpad(new), false
	}
	if q.ended && p.n <= len(q.lines) { // more: the blank lines around are part of the match
		if new == "" {
			return "", true
		}
		new = strings.TrimSuffix(new, "\n")
	}
	have := make([]string, p.n)
	for i := range have {
		have[i] = q.src.line(p.line + i)
	}
	return reindent(q.lines, have, new), false
}

// unpad takes off new the white space it has around it in common with old: the file has none there.
func (q *query) unpad(new string) string {
	lead, tail := q.old[:len(q.old)-len(trimLeft(q.old))], q.old[len(trimRight(q.old)):]
	n := 0
	for n < len(lead) && n < len(new) && lead[n] == new[n] {
		n++
	}
	if trimLeft(new[:n]) != "" { // the bytes of a wider blank only in part
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

// wholeLine widens a range of whole lines by their newline, the one before when the text ends without one.
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

// endings gives text, in LF, the line endings of what it replaces: CRLF if the file has any; where it mixes
// them, unchanged lines at both ends keep theirs and the others follow the replaced ones if those agree.
func (s *source) endings(start, end int, text string) string {
	if len(s.crs) == 0 || !strings.Contains(text, "\n") {
		return text
	}
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
	rest := crs > 0 || len(cr) == 0
	lines := strings.SplitAfter(text, "\n")
	head := 0
	for head < len(cr) && head < len(lines) && old[head] == lines[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(lines)-head && old[len(old)-1-tail] == lines[len(lines)-1-tail] {
		tail++
	}
	var b strings.Builder
	for i, line := range lines {
		body, ended := strings.CutSuffix(line, "\n")
		b.WriteString(body)
		if !ended {
			continue
		}
		with := rest
		if i < head {
			with = cr[i]
		} else if k := i - len(lines) + len(old); i >= len(lines)-tail && k < len(cr) {
			with = cr[k]
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
