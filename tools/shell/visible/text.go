// Package visible makes text from untrusted sources (commands of a model, output of programs) safe to show: no character in the result
// moves the cursor, is invisible, or looks like another one. It checks characters and knows nothing of shells.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Deceptive says why a command may look different from what bash would run: a carriage return that overwrites the line, a
// right-to-left override, invisible characters, a Cyrillic "а" in a program's name. It is empty for a plain command. Package scan
// makes a deceptive command opaque, so that it needs approval whatever the rules allow.
func Deceptive(command string) string {
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '\n' || c == '\t':
		case c == '\r':
			return "it contains a carriage return (CRLF line ends?), which becomes part of a word"
		case c < ' ' || c == 0x7f:
			return fmt.Sprintf("it contains the control character U+%04X", c)
		}
	}
	for _, r := range command {
		switch {
		case r < 0x80:
		case hidden(r):
			return fmt.Sprintf("it contains the invisible character U+%04X", r)
		// U+2800 is the Braille pattern without dots, which is not a space in Unicode and shows as one.
		case unicode.IsSpace(r) || r == 0x2800:
			return fmt.Sprintf("it contains U+%04X, which looks like a blank but is not one", r)
		}
	}
	for word := range strings.FieldsFuncSeq(command, func(r rune) bool { return !inWord(r) }) {
		if mixed(word) {
			return fmt.Sprintf("the word %s mixes scripts, so its letters may be look-alikes", Text(word))
		}
	}
	return ""
}

// hidden reports whether a character takes no space on the screen or changes the order of others. Besides whole Unicode categories
// it lists fillers (Hangul, Khmer), variation selectors and tags.
func hidden(r rune) bool {
	switch {
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Cc, r):
		return true
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x3164, r == 0xFFA0,
		r >= 0x180B && r <= 0x180F, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}

// Acts reports a character that acts on a screen or an editor instead of standing there: controls besides line ends and
// tabs, those that turn the direction of text around (CVE-2021-42574), line ends that only some programs know, tags and
// the variation selectors that hide words from a person but not from a model. The joiner and the selectors of emoji (ZWJ, VS1 to
// VS16) are left in peace: ordinary output is full of them, and they reorder nothing.
func Acts(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == 0x200d:
		return false
	case r == 0x2028, r == 0x2029, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// Printable is text of a program or a file with what Acts spelled out as ‹U+…›. A CRLF line end becomes a plain one. Unlike
// Text it leaves unusual blanks and look-alike letters alone, which are not deception in the prose of their languages.
func Printable(s string) string {
	if strings.IndexFunc(s, Acts) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case Acts(r):
			fmt.Fprintf(&b, "‹U+%04X›", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// mixed reports whether a word has both Latin letters and letters that look like Latin ones (lookalike). A word completely in another
// script is normal text in that script.
func mixed(word string) bool {
	latin, other := false, false
	for _, r := range word {
		switch {
		case lookalike(r): // also the full-width forms of Latin letters
			other = true
		case unicode.Is(unicode.Latin, r):
			latin = true
		}
	}
	return latin && other
}

// inWord reports whether a character is a part of words.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// lookalike reports whether a letter may be mistaken for a Latin one. The two ranges are full-width forms and mathematical letters.
func lookalike(r rune) bool {
	return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu) || r >= 0xFF00 && r <= 0xFFEF || r >= 0x1D400 && r <= 0x1D7FF
}

// Text makes hidden characters visible for approval prompts, in which the person must see what bash gets: control and invisible
// characters and unusual blanks become ‹U+…›, and letters of another script among Latin ones are followed by their ‹U+…›.
func Text(command string) string {
	var b strings.Builder
	var word string // which the present letter belongs to
	var latin bool  // it mixes scripts
	before := ' '
	for i, r := range command {
		last := before
		before = r
		switch {
		case r != '\n' && r != '\t' && (hidden(r) || r > ' ' && unicode.IsSpace(r) || r == 0x2800 || r == 0xFFFD):
			fmt.Fprintf(&b, "‹U+%04X›", r)
			continue
		case !inWord(r):
			word, latin = "", false
		case word == "":
			word = strings.TrimSuffix(command[i:], strings.TrimLeftFunc(command[i:], inWord))
			latin = mixed(word)
		}
		b.WriteRune(r)
		if latin && lookalike(r) || likeSyntax(last, r, command[i+utf8.RuneLen(r):]) {
			fmt.Fprintf(&b, "‹U+%04X›", r)
		}
	}
	return b.String()
}

// likeSyntax reports whether a character looks like shell syntax in a place where that syntax would count: ；｜＆ and the like
// next to ASCII, look-alikes of a slash, dashes at the start of a word. Punctuation in prose does not count.
func likeSyntax(last, r rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	switch {
	// Slashes of other blocks, and semicolons (Greek question mark, small forms).
	case r == 0x2044, r == 0x2215, r == 0x29F8, r == 0x2571, r == 0x037E, r == 0xFE54, r == 0xFE68:
		return true
	case r >= 0xFF01 && r <= 0xFF5E && !unicode.IsLetter(r) && !unicode.IsDigit(r), r == 0xFF5F, r == 0xFF60:
		return last < 0x80 || next < 0x80
	// Dashes and minus signs: –rf in place of -rf is a word, not an option.
	case r >= 0x2010 && r <= 0x2015, r == 0x2212, r == 0xFE58, r == 0xFE63:
		return (last == ' ' || last == '\t' || last == '\n') && rest != "" && next != ' '
	}
	return false
}
