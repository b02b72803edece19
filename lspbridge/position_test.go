package lspbridge

import (
	"testing"
	"unicode/utf8"
)

func TestPositionOffset(t *testing.T) {
	const text = "aé𝄞z\r\nb\rc\n"
	for _, c := range []struct {
		name       string
		line, char int
		enc        Encoding
		want       int
	}{
		{"start", 0, 0, UTF16, 0},
		{"after two bytes", 0, 2, UTF16, 3},
		{"after a pair", 0, 4, UTF16, 7},
		{"inside a pair is its start", 0, 3, UTF16, 3},
		{"the same in runes", 0, 3, UTF32, 7},
		{"the same in bytes", 0, 7, UTF8, 7},
		{"inside a rune is its start", 0, 5, UTF8, 3},
		{"past the line is its end", 0, 99, UTF16, 8},
		{"CRLF is one end", 1, 0, UTF16, 10},
		{"a lone CR is one too", 2, 0, UTF16, 12},
		{"after the last newline", 3, 0, UTF16, 14},
		{"past the text", 9, 9, UTF16, 14},
		{"before the text", -1, -1, UTF16, 0},
	} {
		if got := offset(text, c.line, c.char, c.enc); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A position made from an offset leads back to it, in every encoding; and no position leads outside or into a rune.
func FuzzPosition(f *testing.F) {
	f.Add("aé𝄞z\r\nb\rc\n", 3, 1, 2)
	f.Add("\xff\xfe\n\x80", 2, 0, 1)
	f.Add("\r\n\r", 1, 1, 0)
	f.Fuzz(func(t *testing.T, text string, off, line, char int) {
		off = max(0, min(off, len(text)))
		for off > 0 && off < len(text) && !utf8.RuneStart(text[off]) {
			off--
		}
		if off > 0 && off < len(text) && text[off] == '\n' && text[off-1] == '\r' {
			off-- // between CR and LF is not a place
		}
		for _, enc := range []Encoding{UTF8, UTF16, UTF32} {
			l, c := position(text, off, enc)
			if got := offset(text, l, c, enc); got != off && utf8.ValidString(text) {
				t.Fatalf("%q: offset %d is %d:%d in %s, which is offset %d", text, off, l, c, enc, got)
			}
			got := offset(text, line, char, enc)
			if got < 0 || got > len(text) || utf8.ValidString(text) && got < len(text) && !utf8.RuneStart(text[got]) {
				t.Fatalf("%q %d:%d in %s is offset %d", text, line, char, enc, got)
			}
		}
	})
}

func FuzzLineEdit(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n")
	f.Add("a\nb", "a\nb\nc")
	f.Add("a\r\nb\r\n", "a\r\nc")
	f.Add("", "x\n")
	f.Fuzz(func(t *testing.T, old, new string) {
		old, new = validUTF8(old), validUTF8(new)
		for _, enc := range []Encoding{UTF8, UTF16, UTF32} {
			r, with, ok := lineEdit(old, new, enc)
			if !ok {
				continue
			}
			from := offset(old, int(r.Start.Line), int(r.Start.Character), enc)
			to := offset(old, int(r.End.Line), int(r.End.Character), enc)
			if got := old[:from] + with + old[to:]; got != new {
				t.Fatalf("%q to %q by %+v %q gives %q", old, new, r, with, got)
			}
		}
	})
}
