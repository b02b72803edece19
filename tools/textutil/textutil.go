// Package textutil holds the few text helpers that packages on every level need: a counted noun, a first line, a
// shortened text, a JSON string. It imports nothing of Pillion, so that agent/provider and sidecar/protocol, which are leaves, may use it too.
//
// What belongs to one job stays with it: cutting for a model is tools.Cap, making text safe for a screen is
// tools/shell/visible, comparing names is tools/fuzzy.
package textutil

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Plural returns n and its noun: "1 file", "0 files", "3 files". The noun must take a plain s.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// FirstLine returns the first line of s that is not blank, without the white space around s. A carriage return before
// the line feed stays.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// Shorten returns s, or where it has more than n characters its first n-1 and "…". It cuts between characters, never inside
// one, and counts runes: for columns on a screen see tools/shell/visible.
func Shorten(s string, n int) string {
	if len(s) <= n { // no more characters than bytes
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

const (
	longQuote = 64 << 10 // bytes of a text from which AppendJSON makes room for all of it at once
	quoteRoom = 256      // bytes for what most often follows, so that the buffer need not grow for it
)

// quotedSize is how many bytes AppendJSON appends for s.
func quotedSize[T string | []byte](s T) int {
	n := len(s) + 2
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r':
			n++
		case c < ' ':
			n += 5
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
				n += 6 - size
			}
			i += size
			continue
		}
		i++
	}
	return n
}

// AppendJSON appends s to b as a quoted JSON string. Invalid UTF-8 becomes U+FFFD, as in encoding/json. Other than there,
// <, > and & stay as they are: what is written here goes to programs, not into HTML, and a model pays for each escape.
// U+2028 and U+2029 are escaped, because JavaScript before 2019 ends a line at them.
func AppendJSON[T string | []byte](b []byte, s T) []byte {
	const hex = "0123456789abcdef"
	if len(s) >= longQuote {
		b = slices.Grow(b, quotedSize(s)+quoteRoom)
	}
	b = append(b, '"')
	start := 0 // s[start:i] needs no escape and is not copied yet: a long text is copied in few pieces
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			case '\r':
				b = append(b, '\\', 'r')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		// At most four bytes are converted, so that []byte costs no copy of the whole text.
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
			b = append(b, s[start:i]...)
			b = append(b, `\u`...)
			b = append(b, hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			i += n
			start = i
			continue
		}
		i += n
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
