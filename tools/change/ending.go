package change

import "strings"

// ending is how the lines of a text end. It is one decision for all of them, so it merges apart from the lines: a file
// that was converted to CRLF, or got the newline that its last line lacked, is not changed in every line.
type ending struct {
	crlf  bool
	known bool // false: no line has ended yet
	last  bool // the last line ends too; an empty text counts as one
}

// endingOf is a text's ending, and the text with "\n" at the end of every line; ok is false where endings are mixed.
func endingOf(text string) (e ending, plain string, ok bool) {
	ends, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	if crlf > 0 && crlf != ends {
		return e, text, false
	}
	e = ending{crlf: crlf > 0, known: ends > 0, last: text == "" || strings.HasSuffix(text, "\n")}
	if e.crlf {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if !e.last {
		text += "\n"
	}
	return e, text, true
}

// of puts lines back under an ending.
func (e ending) of(plain string) string {
	if !e.last {
		plain = strings.TrimSuffix(plain, "\n")
	}
	if e.crlf {
		plain = strings.ReplaceAll(plain, "\n", "\r\n")
	}
	return plain
}

// evened merges texts of which one side changed the endings; ok is false where that is not what stands in the way.
func evened(base, ours, theirs string, strict bool) (string, bool) {
	b, plainBase, ok1 := endingOf(base)
	o, plainOurs, ok2 := endingOf(ours)
	t, plainTheirs, ok3 := endingOf(theirs)
	if !ok1 || !ok2 || !ok3 {
		return "", false
	}
	for _, e := range []*ending{&o, &t} {
		if !e.known {
			e.crlf = b.crlf
		}
	}
	if b.crlf == o.crlf && b.crlf == t.crlf && b.last == o.last && b.last == t.last {
		return "", false
	}
	text, conflicts := mergeLines(plainBase, plainOurs, plainTheirs, strict)
	if len(conflicts) > 0 {
		return "", false
	}
	if b.crlf == o.crlf || !b.known {
		o.crlf = t.crlf
	}
	if b.last == o.last {
		o.last = t.last
	}
	return o.of(text), true
}
