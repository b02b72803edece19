package search

import (
	"strings"
	"unicode/utf8"
)

// normalize rewrites syntax of other dialects that the two engines would read differently: a brace that begins no count becomes a
// literal (interface{}), and an escaped character that needs no escape stands for itself (\/ \" \<). Without it "interface{}", which
// models often write, is a syntax error in ripgrep and a literal in Go. Both engines get the normalized text.
func normalize(pattern string) string {
	var b strings.Builder
	class := 0 // depth of [
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			next := pattern[i]
			// An escaped letter may be a class or an anchor, and the listed characters need their backslash in one of the
			// engines.
			if next >= utf8.RuneSelf || isLetterOrDigit(next) || strings.IndexByte(`\.+*?()|[]{}^$#&-~`, next) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(next)
			if (next == 'p' || next == 'P' || next == 'x' || next == 'u' || next == 'U') && i+1 < len(pattern) && pattern[i+1] == '{' {
				if end := strings.IndexByte(pattern[i:], '}'); end > 0 {
					b.WriteString(pattern[i+1 : i+end+1])
					i += end
				}
			}
			continue
		case c == '[':
			class++
			if rest := pattern[i+1:]; class == 1 { // ] and ^] at the start are members
				for _, start := range []string{"^]", "]", "^"} {
					if strings.HasPrefix(rest, start) {
						b.WriteByte('[')
						b.WriteString(start)
						i += len(start)
						c = 0
						break
					}
				}
				if c == 0 {
					continue
				}
			}
		case c == ']' && class > 0:
			class--
		// Inside a class a brace is a character anyway.
		case c == '{' && class == 0 && !isCount(pattern[i:]):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// isLetterOrDigit is for ASCII only: an escape of any other character has no meaning of its own.
func isLetterOrDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isCount reports whether s begins with a counted repetition: {3} {3,} {3,5}. {,5} is none: only GNU grep and newer
// ripgreps read it as a count, see gnuReading.
func isCount(s string) bool {
	end := strings.IndexByte(s, '}')
	if end < 2 {
		return false
	}
	lo, hi, _ := strings.Cut(s[1:end], ",")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return lo != "" && digits(lo) && digits(hi)
}

// unicodeClasses widens \d \w \s and their opposites from ASCII to Unicode, as Rust has them. Go's classes are ASCII
// only, so \w would miss names that ripgrep finds. \W and \S inside a class cannot be written as ranges and stay ASCII.
func unicodeClasses(pattern string) string {
	if !strings.Contains(pattern, `\`) {
		return pattern
	}
	const word, space = `\p{L}\p{M}\p{Nd}\p{Pc}`, `\t\n\v\f\r \x{85}\p{Z}`
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c == '[' && !class {
			class = true
			b.WriteByte(c)
			for _, start := range []string{"^]", "]"} { // ] at the start is a member
				if strings.HasPrefix(pattern[i+1:], start) {
					b.WriteString(start)
					i += len(start)
					break
				}
			}
			continue
		}
		if c == ']' {
			class = false
		}
		if c != '\\' || i+1 == len(pattern) {
			b.WriteByte(c)
			continue
		}
		i++
		wrap := func(s string) {
			if class {
				b.WriteString(s)
			} else {
				b.WriteString("[" + s + "]")
			}
		}
		switch next := pattern[i]; {
		case next == 'd':
			b.WriteString(`\p{Nd}`)
		case next == 'D':
			b.WriteString(`\P{Nd}`)
		case next == 'w':
			wrap(word)
		case next == 's':
			wrap(space)
		case next == 'W' && !class:
			b.WriteString("[^" + word + "]")
		case next == 'S' && !class:
			b.WriteString("[^" + space + "]")
		case next == 'u' || next == 'U': // \u00e9, \u{e9}
			n := 4
			if next == 'U' {
				n = 8
			}
			b.WriteString(`\x`)
			if i+n < len(pattern) && pattern[i+1] != '{' {
				b.WriteString("{" + pattern[i+1:i+1+n] + "}")
				i += n
			}
		default:
			b.WriteByte('\\')
			b.WriteByte(next)
		}
	}
	return b.String()
}

// gnuReading is the pattern as GNU grep and newer versions of ripgrep read it, with word boundaries and counts that other dialects take
// for text: \<word\>, x{,3}, \b{start}. Grep tries it only after the pattern found nothing, because normally \< means the character.
func gnuReading(pattern string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			next := pattern[i+1]
			i++
			if class || next != '<' && next != '>' && next != 'b' {
				b.WriteByte('\\')
				b.WriteByte(next)
				continue
			}
			b.WriteString(`\b`)
			for _, side := range [...]string{"{start}", "{end}", "{start-half}", "{end-half}"} {
				if next == 'b' && strings.HasPrefix(pattern[i+1:], side) {
					i += len(side)
				}
			}
			continue
		case c == '[' && !class:
			class = true
			for _, first := range []string{"^]", "]"} { // a ] at the start is a member
				if strings.HasPrefix(pattern[i+1:], first) {
					b.WriteByte(c)
					b.WriteString(first[:len(first)-1])
					i += len(first)
					c = first[len(first)-1]
					break
				}
			}
		case c == '[' && strings.HasPrefix(pattern[i:], "[:") && strings.Contains(pattern[i:], ":]"):
			end := i + strings.Index(pattern[i:], ":]") + 1
			b.WriteString(pattern[i:end])
			i, c = end, pattern[end]
		case c == ']':
			class = false
		case c == '{' && !class && i > 0 && strings.HasPrefix(pattern[i:], "{,"):
			digits := len(pattern[i+2:]) - len(strings.TrimLeft(pattern[i+2:], "0123456789"))
			if digits > 0 && strings.HasPrefix(pattern[i+2+digits:], "}") {
				b.WriteString("{0,")
				i++
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// setOperation returns the first construct that only ripgrep knows inside a class: a nested class, an intersection or a difference; "" if
// there is none. In Go the same characters mean something else, so the search would silently find nothing.
func setOperation(pattern string) string {
	start, depth, nested := 0, 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[' && depth > 0 && strings.HasPrefix(pattern[i:], "[:") && strings.Contains(pattern[i:], ":]"):
			i += strings.Index(pattern[i:], ":]") + 1
		case c == '[':
			if depth++; depth == 1 {
				start, nested = i, false
			} else {
				nested = true
			}
			for _, first := range []string{"^]", "]", "^"} { // a ] at the start is a member
				if strings.HasPrefix(pattern[i+1:], first) {
					i += len(first)
					break
				}
			}
		case c == ']' && depth > 0:
			if depth--; depth == 0 && nested {
				return pattern[start : i+1]
			}
		case depth == 1 && (strings.HasPrefix(pattern[i:], "&&") || strings.HasPrefix(pattern[i:], "~~")):
			return pattern[i : i+2]
		}
	}
	return ""
}
