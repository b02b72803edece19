package gofix

import "strings"

// syntaxRepairs returns candidates that insert or remove a single token near a syntax error. The parser reports a missing bracket
// only where the text no longer makes sense, often a line or more after the place where it belongs; so the ends of the lines before
// are tried too. Each candidate is parsed before it is checked, so many guesses are affordable. All are deep, because closing a
// bracket may turn a body into a declaration.
func (m *module) syntaxRepairs(t trouble) (out []candidate) {
	out = m.layoutRepairs(t)
	text := t.file.text
	at := m.offset(t.pos)
	// start and end are bytes of the text; if they are equal, the token is inserted.
	add := func(cost, start, end int, new, title string) {
		out = append(out, candidate{title: title, cost: cost, edits: []edit{{t.file.path, start, end, new}}, deep: true, syntax: true})
	}
	start, _ := lineOf(text, at)
	// The line of the error and the three before it.
	var ends []int // ends of lines, the nearest first
	for line := start; len(ends) < 4; {
		_, next := lineOf(text, line)
		end := next
		// before trailing blanks and the line end, where a person would type it
		for end > line && (text[end-1] == '\n' || text[end-1] == '\r' || text[end-1] == ' ' || text[end-1] == '\t') {
			end--
		}
		ends = append(ends, end)
		if line == 0 {
			break
		}
		line, _ = lineOf(text, line-1)
	}
	for i, end := range ends {
		for j, token := range []string{")", "}", "]", ",", " {", "\"", "`", "(", "()"} { // the last: defer mu.Unlock
			add(i+j+1, end, end, token, "Insert "+strings.TrimSpace(token))
		}
	}
	// at the error itself; tokens earlier in the list have a lower cost
	for j, token := range []string{")", "(", ",", "]", "}", "{ ", "[", ":", ";", "\""} {
		add(j+2, at, at, token, "Insert "+strings.TrimSpace(token))
	}
	for i, end := range append([]int{at, at + 1}, ends...) {
		// a surplus token may be at the error, before it, or at the end of a line
		for _, from := range []int{end, end - 1} {
			if from >= 0 && from < len(text) && strings.IndexByte("()[]{},;:\"=.+", text[from]) >= 0 {
				add(i+4, from, from+1, "", "Remove "+text[from:from+1])
			}
		}
	}
	if _, end := lineOf(text, len(text)-1); end == len(text) && len(text) > 0 {
		for _, token := range []string{"}\n", ")\n"} {
			add(20, len(text), len(text), "\n"+token, "Close the last block")
		}
		// After a block that was not closed, the declarations that follow are read as part of it: close it before the next one. The
		// search goes back at most 4000 bytes and stops at 90 candidates, because a long file has a hundred functions.
		for i := at; i > 0; {
			j := strings.LastIndex(text[:i], "\nfunc ")
			if j < 0 || at-j > 4000 {
				break
			}
			add(12, j, j, "\n}\n", "Close the block before it")
			i = j
			if len(out) > 90 {
				break
			}
		}
	}
	// Misspelled keywords.
	word := wordAt(text, at)
	// the word at the error, and the words in the 80 bytes from the beginning of its line
	for _, w := range append([]string{word}, strings.Fields(text[start:min(len(text), start+80)])...) {
		for _, k := range []string{"func", "return", "range", "struct", "interface", "import", "package", "type", "switch", "case", "default", "const", "var", "else", "for", "if", "defer", "select", "continue", "break", "map", "chan"} {
			if w != k && near(w, k) {
				if i := strings.Index(text[start:], w); i >= 0 {
					add(3, start+i, start+i+len(w), k, "Change "+w+" to "+k)
				}
			}
		}
	}
	return out
}

// wordAt is the name at an offset. It compares bytes, because keywords are ASCII.
func wordAt(text string, at int) string {
	is := func(c byte) bool {
		return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	a, b := min(at, len(text)), min(at, len(text))
	for a > 0 && is(text[a-1]) {
		a--
	}
	for b < len(text) && is(text[b]) {
		b++
	}
	return text[a:b]
}
