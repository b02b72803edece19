package change

import "strings"

// ending is how the lines of a text end. It is one decision for all of them, so it merges apart from the lines: a file
// that was converted to CRLF, or got the newline that its last line lacked, is not changed in every line; and what is
// added after a line without a newline is not glued to it.
type ending struct {
	crlf  bool
	mixed bool
	known bool // false: no line has ended yet
	last  bool // the last line ends too; an empty text counts as one
}

func endingOf(text string) ending {
	ends, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	return ending{crlf: crlf > 0, mixed: crlf > 0 && crlf != ends, known: ends > 0, last: text == "" || strings.HasSuffix(text, "\n")}
}

// plain is a text whose lines all end, in "\n" alone where that can be taken back.
func (e ending) plain(text string) string {
	if e.crlf && !e.mixed {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if !e.last {
		text += "\n"
	}
	return text
}

// of is plain the other way round.
func (e ending) of(plain string) string {
	if !e.last {
		plain = strings.TrimSuffix(plain, "\n")
	}
	if e.crlf && !e.mixed {
		plain = strings.ReplaceAll(plain, "\n", "\r\n")
	}
	return plain
}

// mergeEndings merges the endings of three texts, and then their lines.
func mergeEndings(base, ours, theirs string, strict bool) (string, []Conflict) {
	b, o, t := endingOf(base), endingOf(ours), endingOf(theirs)
	if b.mixed || o.mixed || t.mixed { // then they belong to the lines
		b.mixed, o.mixed, t.mixed = true, true, true
	}
	for _, e := range []*ending{&o, &t} {
		if !e.known {
			e.crlf = b.crlf
		}
	}
	if (b.crlf == o.crlf && b.crlf == t.crlf || b.mixed) && b.last == o.last && b.last == t.last {
		return mergeLines(base, ours, theirs, strict)
	}
	text, conflicts := mergeLines(b.plain(base), o.plain(ours), t.plain(theirs), strict)
	if len(conflicts) > 0 {
		return "", conflicts
	}
	if b.crlf == o.crlf || !b.known {
		o.crlf = t.crlf
	}
	if b.last == o.last {
		o.last = t.last
	}
	return o.of(text), nil
}
