package lspbridge

import (
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Encoding is the unit in which a server counts the characters of a line (PositionEncodingKind).
type Encoding string

// LSP's position encodings. UTF-16 is the default that every server must support.
const (
	UTF8  Encoding = "utf-8"
	UTF16 Encoding = "utf-16"
	UTF32 Encoding = "utf-32"
)

// PositionOffset converts a position (UTF-16) to a byte offset in text. A position past the end of its line becomes the line's end, one
// past the end of the text the text's end, and one inside a surrogate pair the start of its character. It never panics.
func PositionOffset(text string, p Position) int { return offset(text, p.Line, p.Character, UTF16) }

// OffsetPosition converts a byte offset in text to a position (UTF-16). Offsets outside the text are clamped.
func OffsetPosition(text string, off int) Position {
	line, char := position(text, off, UTF16)
	return Position{line, char}
}

// lineStart returns the byte offset of a 0-based line; ok is false when the text has fewer lines. "\n", "\r\n" and a lone "\r" end a line,
// as LSP defines.
func lineStart(text string, line int) (off int, ok bool) {
	if strings.IndexByte(text, '\r') < 0 { // true for nearly every text, and several times faster
		for ; line > 0; line-- {
			i := strings.IndexByte(text[off:], '\n')
			if i < 0 {
				return len(text), false
			}
			off += i + 1
		}
		return off, true
	}
	for ; line > 0; line-- {
		i := strings.IndexAny(text[off:], "\r\n")
		if i < 0 {
			return len(text), false
		}
		off += i + 1
		if text[off-1] == '\r' && off < len(text) && text[off] == '\n' {
			off++
		}
	}
	return off, true
}

// lineAt returns the line that starts at byte offset off, without its line end.
func lineAt(text string, off int) string {
	if i := strings.IndexAny(text[off:], "\r\n"); i >= 0 {
		return text[off : off+i]
	}
	return text[off:]
}

// offset is PositionOffset for any encoding.
func offset(text string, line, char int, enc Encoding) int {
	start, ok := lineStart(text, max(line, 0))
	if !ok {
		return len(text)
	}
	return start + columnBytes(lineAt(text, start), char, enc)
}

// columnBytes returns how many bytes of a line precede a character offset.
func columnBytes(line string, char int, enc Encoding) int {
	if enc == UTF8 {
		char = max(0, min(char, len(line)))
		for char > 0 && char < len(line) && !utf8.RuneStart(line[char]) {
			char--
		}
		return char
	}
	units := 0
	for i, r := range line {
		u := width(r, enc)
		if units+u > char {
			return i
		}
		units += u
	}
	return len(line)
}

// width returns the length of a rune in code units. A byte that is not UTF-8 counts as one, like its replacement U+FFFD.
func width(r rune, enc Encoding) int {
	switch {
	case enc == UTF8:
		return utf8.RuneLen(r)
	case enc == UTF16 && r > 0xFFFF:
		return 2
	}
	return 1
}

// position is OffsetPosition for any encoding.
func position(text string, off int, enc Encoding) (line, char int) {
	off = max(0, min(off, len(text)))
	start := 0
	if strings.IndexByte(text[:off], '\r') < 0 {
		line, start = strings.Count(text[:off], "\n"), strings.LastIndexByte(text[:off], '\n')+1
	} else {
		for i := 0; i < off; i++ {
			if text[i] == '\n' || text[i] == '\r' && (i+1 >= len(text) || text[i+1] != '\n') {
				line, start = line+1, i+1
			}
		}
	}
	s := text[start:off]
	if enc == UTF8 {
		return line, len(s)
	}
	for _, r := range s {
		char += width(r, enc)
	}
	return line, char
}

// column converts a character offset in a line from one encoding to another.
func column(line string, char int, from, to Encoding) int {
	head := line[:columnBytes(line, char, from)]
	if to == UTF8 {
		return len(head)
	}
	n := 0
	for _, r := range head {
		n += width(r, to)
	}
	return n
}

// converter converts positions between a server's encoding and UTF-16. text returns a file's text; it is called only when the encodings
// differ.
type converter struct {
	enc  Encoding
	text func(path string) string
}

// recode converts a position from one encoding to another; a position beyond the text stays unchanged.
func (c converter) recode(path string, p lsp.Position, from, to Encoding) lsp.Position {
	if from == to || p.Character == 0 {
		return p
	}
	t := c.text(path)
	start, ok := lineStart(t, int(p.Line))
	if !ok {
		return p
	}
	p.Character = lsp.Uint(column(lineAt(t, start), int(p.Character), from, to))
	return p
}

// in converts a server's range to a Range.
func (c converter) in(path string, r lsp.Range) Range {
	s, e := c.recode(path, r.Start, c.enc, UTF16), c.recode(path, r.End, c.enc, UTF16)
	return Range{Position{int(s.Line), int(s.Character)}, Position{int(e.Line), int(e.Character)}}
}

// out converts a Position to the server's encoding.
func (c converter) out(path string, p Position) lsp.Position {
	return c.recode(path, lsp.Position{Line: lsp.Uint(p.Line), Character: lsp.Uint(p.Character)}, UTF16, c.enc)
}

// problemAt sets the place of a problem: an LSP range is 0-based, a Problem 1-based.
func problemAt(path string, r Range, p change.Problem) change.Problem {
	p.Path = path
	p.Line, p.Column = r.Start.Line+1, r.Start.Character+1
	p.EndLine, p.EndColumn = r.End.Line+1, r.End.Character+1
	return p
}

// ProblemRange returns the 0-based range of a problem. It is empty, at the problem's start, when the end is not known.
func ProblemRange(p change.Problem) Range {
	start := Position{max(0, p.Line-1), max(0, p.Column-1)}
	if p.EndLine == 0 {
		return Range{start, start}
	}
	return Range{start, Position{p.EndLine - 1, max(0, p.EndColumn-1)}}
}

// samePlace reports whether two problems have the same range.
func samePlace(a, b change.Problem) bool { return ProblemRange(a) == ProblemRange(b) }

// outRange converts a Range to the server's encoding.
func (c converter) outRange(path string, r Range) lsp.Range {
	return lsp.Range{Start: c.out(path, r.Start), End: c.out(path, r.End)}
}

// validUTF8 replaces every byte that is not UTF-8 by U+FFFD. The JSON encoder would do the same later, but then the server would count
// columns in another text than this package.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 64)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// loneCR reports whether text has a "\r" without "\n". LSP counts it as a line end but many servers do not, so such texts are sent whole.
func loneCR(text string) bool {
	for i := strings.IndexByte(text, '\r'); i >= 0; {
		if i+1 >= len(text) || text[i+1] != '\n' {
			return true
		}
		j := strings.IndexByte(text[i+1:], '\r')
		if j < 0 {
			return false
		}
		i += 1 + j
	}
	return false
}
