package lspbridge

import (
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Encoding is how a server counts the characters of a line.
type Encoding string

// LSP's position encodings: units of 8, 16 and 32 bits.
const (
	UTF8  Encoding = "utf-8"
	UTF16 Encoding = "utf-16"
	UTF32 Encoding = "utf-32"
)

// PositionOffset turns a position (UTF-16) into a byte offset of text. Positions past a line's end are its end, past
// the text's end the text's end. A position inside a surrogate pair is the start of its character.
func PositionOffset(text string, p Position) int { return offset(text, p.Line, p.Character, UTF16) }

// OffsetPosition turns a byte offset of text into a position (UTF-16).
func OffsetPosition(text string, off int) Position {
	line, char := position(text, off, UTF16)
	return Position{line, char}
}

// lineStart is the byte offset of a line counted from 0; ok is false when the text has fewer lines.
// "\n", "\r\n" and a lone "\r" end a line, as LSP says.
func lineStart(text string, line int) (off int, ok bool) {
	if strings.IndexByte(text, '\r') < 0 { // nearly every text: several times faster
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

// lineAt is the line that starts at off, without its end.
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

// columnBytes is how many bytes of a line come before a column.
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

// width of a rune in code units; a byte that is no UTF-8 counts one, as U+FFFD does.
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

// column recounts a column of a line.
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

// converter translates positions of one server to ours (UTF-16) and back; text finds a file's text when it is needed.
type converter struct {
	enc  Encoding
	text func(path string) string
}

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

// in reads a server's range.
func (c converter) in(path string, r lsp.Range) Range {
	s, e := c.recode(path, r.Start, c.enc, UTF16), c.recode(path, r.End, c.enc, UTF16)
	return Range{Position{int(s.Line), int(s.Character)}, Position{int(e.Line), int(e.Character)}}
}

// out writes a position for the server.
func (c converter) out(path string, p Position) lsp.Position {
	return c.recode(path, lsp.Position{Line: lsp.Uint(p.Line), Character: lsp.Uint(p.Character)}, UTF16, c.enc)
}

// problemAt gives a problem its place: positions of LSP count from 0, those of a Problem from 1.
func problemAt(path string, r Range, p change.Problem) change.Problem {
	p.Path = path
	p.Line, p.Column = r.Start.Line+1, r.Start.Character+1
	p.EndLine, p.EndColumn = r.End.Line+1, r.End.Character+1
	return p
}

// ProblemRange is where a problem stands, as LSP counts; empty at its start where the end is not known.
func ProblemRange(p change.Problem) Range {
	start := Position{max(0, p.Line-1), max(0, p.Column-1)}
	if p.EndLine == 0 {
		return Range{start, start}
	}
	return Range{start, Position{p.EndLine - 1, max(0, p.EndColumn-1)}}
}

func samePlace(a, b change.Problem) bool { return ProblemRange(a) == ProblemRange(b) }

func (c converter) outRange(path string, r Range) lsp.Range {
	return lsp.Range{Start: c.out(path, r.Start), End: c.out(path, r.End)}
}

// validUTF8 is text as it can travel in JSON: every byte that is no UTF-8 becomes one U+FFFD, so columns stay.
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

// loneCR reports a line ending only LSP counts; incremental edits are then not worth the risk.
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
