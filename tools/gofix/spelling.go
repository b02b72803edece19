package gofix

import (
	"slices"
	"strings"
	"unicode"
)

// spelled reports which of two similar names is spelled like the rest of the module: positive is the first, negative the second, 0 is not
// known. A declaration and its use that differ in a letter say nothing of which was meant, but a real name or its words mostly occur elsewhere,
// also in comments, and a slip does not: newRandomFromPool stands beside NewRandom, newRandmoFromPool alone.
func (m *module) spelled(a, b string) int {
	onlyA, onlyB := without(nameWords(a), nameWords(b)), without(nameWords(b), nameWords(a))
	// A word too many or too few is no slip.
	if len(onlyA) == 0 || len(onlyB) == 0 {
		return 0
	}
	switch knowsA, knowsB := m.knowsWords(onlyA, a), m.knowsWords(onlyB, b); {
	case knowsA && !knowsB:
		return 1
	case knowsB && !knowsA:
		return -1
	}
	return 0
}

// knowsWords reports whether all these words, in lower case, occur in the module's files besides the one place of the name own.
func (m *module) knowsWords(all []string, own string) bool {
	for _, w := range all {
		left := 1 // the place of own itself
		for _, f := range m.files {
			if left -= countWord(f.text, w, own); left < 0 {
				break
			}
		}
		if left >= 0 {
			return false
		}
	}
	return true
}

// countWord counts the names in a text of which this is a word. Other names than own count twice: one of them is enough.
func countWord(text, word, own string) (n int) {
	isName := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for _, form := range []string{word, strings.ToUpper(word[:1]) + word[1:], strings.ToUpper(word)} {
		for from := 0; n < 2; {
			at := strings.Index(text[from:], form)
			if at < 0 {
				break
			}
			at += from
			from = at + len(form)
			start := strings.LastIndexFunc(text[:at], func(r rune) bool { return !isName(r) }) + 1
			end := len(text)
			if i := strings.IndexFunc(text[at:], func(r rune) bool { return !isName(r) }); i >= 0 {
				end = at + i
			}
			switch name := text[start:end]; {
			case name == own:
				n++
			case slices.Contains(nameWords(name), word):
				n += 2
			}
		}
	}
	return n
}

// nameWords are the words of a name in camel case or with underscores, in lower case and without digits: http and server of HTTPServer_2.
func nameWords(name string) (out []string) {
	letters := []rune(name)
	start := 0
	end := func(at int) {
		if at > start {
			out = append(out, strings.ToLower(string(letters[start:at])))
		}
		start = at
	}
	for i, r := range letters {
		switch {
		case !unicode.IsLetter(r):
			end(i)
			start = i + 1
		// A word begins at an upper-case letter behind a lower-case one, and at the last one of several behind an acronym.
		case i > start && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end(i)
		}
	}
	end(len(letters))
	return out
}

// without returns the strings of a that are not in b.
func without(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}
