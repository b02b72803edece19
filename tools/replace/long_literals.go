package replace

import (
	"sort"
	"strings"
)

// Literals finds the literals of a text that reach over several lines, as half-open ranges of bytes. ok is false where there may be others: the
// language is not known, or the text is broken.
type Literals func(text string) (literals [][2]int, ok bool)

// RewritesLiteral reports whether a change of quoted into wanted lines rewrites a line in a literal of several lines that was quoted with other
// blanks. The n lines of text from first on, 0-based, are those that were found for the quoted ones.
func RewritesLiteral(literals Literals, text string, quoted, wanted []string, first, n int) bool {
	q := newQuery(text, strings.Join(quoted, "\n"))
	q.lines, q.ended, q.literals = quoted, false, literals
	q.src.split()
	_, ok := q.rewritesLiteral([]place{q.block(first, n)}, strings.Join(wanted, "\n"))
	return ok
}

// rewritesLiteral reports the place in which new changes a quoted line for which the file has one with other blanks in a literal of several
// lines, where they are text: it is not the line that was quoted.
func (q *query) rewritesLiteral(hits []place, new string) (place, bool) {
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
	var long []bool
	for _, p := range hits {
		for i := q.src.lineAt(p.start); i < q.src.count() && q.src.starts[i] < p.end; i++ {
			part := trim(q.src.text[max(p.start, q.src.starts[i]):min(p.end, q.src.lineEnd(i))])
			if part == "" || quoted[Fold(part)] || !changed[key(part)] {
				continue
			}
			if long == nil {
				long = q.src.inLongLiterals(q.literals)
			}
			if long[i] {
				return p, true
			}
		}
	}
	return place{}, false
}

// inLongLiterals has true for each line that is, in part or whole, in a literal of several lines. Where no grammar knows all of them, it is also
// true for lines that may be in one.
func (s *source) inLongLiterals(literals Literals) []bool {
	in := make([]bool, s.count())
	var known [][2]int
	ok := false
	if literals != nil {
		known, ok = literals(s.text)
	}
	for _, l := range known {
		for i := s.lineAt(l[0]); i < len(in) && s.starts[i] < l[1]; i++ {
			in[i] = true
		}
	}
	if !ok {
		s.mayBeLong(in)
	}
	return in
}

// mayBeLong marks lines that are in a literal of several lines in one language or another: a docstring, a text block, a template with the code
// in it, a raw string, a here document, a string up to the end of the text that nothing closes. Where the marks mean something else, as in
// prose, lines are compared more strictly, which at worst refuses an edit.
func (s *source) mayBeLong(in []bool) {
	if !strings.ContainsAny(s.text, "`\"'<") {
		return
	}
	lastBackquote := strings.LastIndexByte(s.text, '`') // it opens nothing
	var alone map[string][]int                          // see wordsAlone; made for the first here document
	document := -1                                      // the line at which the last one ends
	var open []opened                                   // innermost last
	for i := range in {
		line := s.line(i)
		in[i] = in[i] || len(open) > 0 || i <= document
		if len(open) > 1000 { // nested deeper than anything that is written: all of the rest may be
			continue
		}
		var short literals
		for at := 0; at < len(line); {
			rest := line[at:]
			if n := len(open); n > 0 && open[n-1].closing != "" {
				o := open[n-1]
				switch {
				case o.doubled && strings.HasPrefix(rest[1:], o.closing) && strings.HasPrefix(rest, o.closing):
					at += 2
				case strings.HasPrefix(rest, o.closing):
					at += len(o.closing)
					open = open[:n-1]
				case rest[0] == '\\' && !o.raw:
					at += 2
				case o.closing == "`" && strings.HasPrefix(rest, "${"):
					at += 2
					open = append(open, opened{})
				default:
					at++
				}
				continue
			}
			if o, n := longLiteral(line, at); n > 0 {
				open = append(open, o)
				at += n
				continue
			}
			if word, n := hereDocument(line, at); n > 0 {
				if alone == nil {
					alone = s.wordsAlone()
				}
				ends := alone[word]
				at += 2
				if k := sort.SearchInts(ends, i+1); k < len(ends) {
					document = max(document, ends[k])
					at += n - 2
				}
				continue
			}
			if n := len(open); n > 0 { // code in a template
				switch rest[0] {
				case '{':
					open[n-1].braces++
				case '}':
					if open[n-1].braces--; open[n-1].braces < 0 {
						open = open[:n-1]
						at++
						continue
					}
				}
			}
			if end := short.end(line, at); end > 0 && !(rest[0] == '`' && strings.Contains(line[at:end], "${")) {
				at = end
			} else if at++; rest[0] == '`' && s.starts[i]+at-1 < lastBackquote {
				open = append(open, opened{closing: "`"})
			}
		}
		in[i] = in[i] || len(open) > 0
	}
}

// opened is a literal of several lines that begins at or before the place of mayBeLong, or with an empty closing the code in a template.
type opened struct {
	closing string
	raw     bool // a backslash is text
	doubled bool // the closing twice is text
	braces  int  // in code: how many are open
}

// longLiteral is the literal that begins at line[at] with marks that say it may reach over several lines, and the length of these marks; 0 where
// none does.
func longLiteral(line string, at int) (o opened, n int) {
	rest := line[at:]
	switch {
	case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, "'''"):
		return opened{closing: rest[:3]}, 3
	case rest[0] == '"':
		// Rust's raw strings end in as many number signs as they begin with.
		before := strings.TrimRight(line[:at], "#")
		if hashes := line[len(before):at]; hashes != "" && strings.HasSuffix(before, "r") {
			return opened{closing: `"` + hashes, raw: true}, 1
		}
		// C#'s verbatim strings.
		if strings.HasSuffix(line[:at], "@") || strings.HasSuffix(line[:at], "@$") {
			return opened{closing: `"`, raw: true, doubled: true}, 1
		}
	case strings.HasPrefix(rest, `R"`): // C++
		const longest = 16 // bytes of a delimiter
		paren := strings.IndexByte(rest[:min(len(rest), 2+longest+1)], '(')
		if paren > 0 && !strings.ContainsAny(rest[2:paren], " )\\\t\"") {
			return opened{closing: ")" + rest[2:paren] + `"`, raw: true}, paren + 1
		}
	}
	return opened{}, 0
}

// hereDocument is the word that ends the here document which line[at:] announces, and the length of the announcement; 0 where it does not.
func hereDocument(line string, at int) (word string, n int) {
	rest, ok := strings.CutPrefix(line[at:], "<<")
	if !ok {
		return "", 0
	}
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "<"), "-~ \t")
	rest = strings.TrimLeft(rest, "'\"`\\")
	end := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(rest)
	}
	return rest[:end], len(line) - at - len(rest[end:])
}

// wordsAlone are the lines, ascending, that have nothing but a word, and marks behind it as PHP and Ruby allow.
func (s *source) wordsAlone() map[string][]int {
	out := map[string][]int{}
	for i := range s.count() {
		word := strings.TrimRight(trim(s.line(i)), ";,.)")
		if word != "" && strings.IndexFunc(word, func(r rune) bool { return !isWord(r) }) < 0 {
			out[word] = append(out[word], i)
		}
	}
	return out
}
