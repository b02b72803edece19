package replace

import "strings"

// inLongLiterals has true for each line that is, in part or whole, in a literal of several lines: a docstring, a text block, a template string, a
// raw string in backquotes. It is nil where the text has no marks of such literals. Package replace does not know the language: where the marks
// mean something else, as in prose, lines are compared more strictly, which at worst refuses an edit.
func (s *source) inLongLiterals() []bool {
	if !strings.Contains(s.text, "`") && !strings.Contains(s.text, `"""`) && !strings.Contains(s.text, "'''") {
		return nil
	}
	out := make([]bool, s.count())
	closing := "" // of the literal that the line begins in
	for i := range out {
		line := s.line(i)
		out[i] = closing != ""
		var short literals
		for at := 0; at < len(line); {
			rest := line[at:]
			switch {
			case closing != "" && rest[0] == '\\':
				at += 2
			case closing != "" && strings.HasPrefix(rest, closing):
				at += len(closing)
				closing = ""
			case closing != "":
				at++
			case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, "'''"):
				closing = rest[:3]
				at += 3
			default:
				if end := short.end(line, at); end > 0 {
					at = end
				} else if at++; rest[0] == '`' {
					closing = "`"
				}
			}
		}
		out[i] = out[i] || closing != ""
	}
	return out
}

// rewritesLiteral reports the place in which new changes a quoted line for which the file has one with other blanks in a literal of several
// lines, where they are text: it is not the line that was quoted.
func (q *query) rewritesLiteral(hits []place, new string) (place, bool) {
	long := q.src.inLongLiterals()
	if long == nil {
		return place{}, false
	}
	kept := map[string]bool{}
	for line := range strings.SplitSeq(new, "\n") {
		kept[trim(line)] = true
	}
	quoted, changed := map[string]bool{}, map[string]bool{}
	for _, line := range q.lines {
		quoted[Fold(trim(line))] = true
		if !kept[trim(line)] {
			changed[key(line)] = true
		}
	}
	for _, p := range hits {
		for i := q.src.lineAt(p.start); i < len(long) && q.src.starts[i] < p.end; i++ {
			part := trim(q.src.text[max(p.start, q.src.starts[i]):min(p.end, q.src.lineEnd(i))])
			if long[i] && part != "" && !quoted[Fold(part)] && changed[key(part)] {
				return p, true
			}
		}
	}
	return place{}, false
}
