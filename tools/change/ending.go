package change

import "strings"

// ending is how the lines of a text end. It is one property of the whole text and is merged separately from the lines. Otherwise
// converting a file to CRLF would conflict with every other change of it, and a line added after one without a newline
// would be joined to it.
type ending struct {
	crlf  bool // at least one line ends in CRLF
	mixed bool // some lines end in CRLF and some in LF: no one property, so the endings stay part of the lines
	known bool // false: no line has ended yet
	last  bool // the last line ends too; an empty text counts as one
}

// endingOf looks at every line. A lone CR is not a line ending here, as in Git.
func endingOf(text string) ending {
	ends, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	return ending{crlf: crlf > 0, mixed: crlf > 0 && crlf != ends, known: ends > 0, last: text == "" || strings.HasSuffix(text, "\n")}
}

// plain is the text with a line ending after every line, and with "\n" for "\r\n" where all lines end in that. of reverses both.
func (e ending) plain(text string) string {
	if e.crlf && !e.mixed {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if !e.last {
		text += "\n"
	}
	return text
}

// of gives a text made by plain the endings of e, which may be those of another side of the merge.
func (e ending) of(plain string) string {
	if !e.last {
		plain = strings.TrimSuffix(plain, "\n")
	}
	if e.crlf && !e.mixed {
		plain = strings.ReplaceAll(plain, "\n", "\r\n")
	}
	return plain
}

// mergeEndings merges the endings of three texts separately from their lines, so that a conversion to CRLF on one side and edits
// on the other do not conflict.
func mergeEndings(base, ours, theirs string, strict bool) (string, []Conflict) {
	b, o, t := endingOf(base), endingOf(ours), endingOf(theirs)
	if b.mixed || o.mixed || t.mixed { // then they belong to the lines
		b.mixed, o.mixed, t.mixed = true, true, true
	}
	// A side without any line end (an emptied file) has not chosen an ending: it takes the base's.
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
	// A three-way merge of the endings too: if ours did not change them, those of theirs are used.
	if b.crlf == o.crlf || !b.known {
		o.crlf = t.crlf
	}
	if b.last == o.last {
		o.last = t.last
	}
	return o.of(text), nil
}
