package terminal

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdownStream renders an answer while it arrives. What later text cannot change any more is rendered for good, a group of
// blocks at a time; the rest is rendered again with each piece.
type markdownStream struct {
	open string // the source that has not been rendered for good
}

// add takes a piece of the answer and returns what of the whole is final, in lines of at most width columns. The
// caller prints the result and cannot take it back; the width of that moment stays.
func (m *markdownStream) add(piece string, width int, color bool) string {
	m.open += piece
	end := finalMarkdown(m.open)
	final := m.open[:end]
	m.open = m.open[end:]
	return m.block(final, width, color)
}

// rest renders the part that may still change, as it is now. It is called for every drawing, not for every piece: a long paragraph
// comes in hundreds of pieces.
func (m *markdownStream) rest(color bool) func(width int) string {
	// A copy: the function is called later, by another goroutine, while add continues.
	now := *m
	return func(width int) string { return now.block(now.open, width, color) }
}

// finish renders the rest for good.
func (m *markdownStream) finish(width int, color bool) string {
	out := m.block(m.open, width, color)
	m.open = ""
	return out
}

// block renders complete blocks, set off by a blank line from what is above them.
func (m *markdownStream) block(source string, width int, color bool) string {
	if strings.TrimSpace(source) == "" {
		return ""
	}
	if out := renderMarkdown(source, width, color); out != "" {
		return "\n" + out
	}
	return ""
}

// finalMarkdown is how many bytes of a text cannot change their look by what follows: up to the last blank line outside of a code
// fence whose next line begins at the margin. An indented line may belong to the list above it.
func finalMarkdown(source string) (end int) {
	// fence is what a fence that is open began with; its end needs the same mark, at least as often (CommonMark,
	// section 4.5).
	fence, blank := "", false
	for at := 0; at < len(source); {
		next := strings.IndexByte(source[at:], '\n')
		if next < 0 {
			break // the line is not complete; it may become anything
		}
		line := source[at : at+next]
		bare := strings.TrimLeft(line, " ")
		switch marks := fenceOf(bare); {
		case fence != "":
			if len(marks) >= len(fence) && marks[0] == fence[0] && strings.TrimSpace(bare[len(marks):]) == "" {
				fence = ""
				// An indented fence belongs to a list, which may continue after it.
				if len(line) == len(bare) {
					end = at + next + 1
				}
			}
		case strings.TrimSpace(line) == "":
			blank = true
		default:
			if blank && len(line) == len(bare) && line[0] != '\t' {
				end = at
			}
			blank, fence = false, marks
		}
		at += next + 1
	}
	return end
}

// fenceOf are the marks that open or close a code fence at the start of a line; "" where there is none. A line of
// backticks with another one behind them is code in a paragraph, not a fence (CommonMark, section 4.5).
func fenceOf(line string) string {
	for _, mark := range []byte{'`', '~'} {
		n := 0
		for n < len(line) && line[n] == mark {
			n++
		}
		if n >= 3 && (mark == '~' || !strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// markdownParser is made once: an answer is parsed again with each of its pieces. A parser has no state between texts.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
})

// renderMarkdown renders a whole text. The text comes from a model: nothing in it acts on the terminal, also no character that
// an entity such as &#27; stands for. Every line ends with a newline.
func renderMarkdown(source string, width int, color bool) string {
	// A tab is four columns of code, as Markdown counts it, and has no width that a screen could be measured by.
	src := []byte(strings.ReplaceAll(Clean(source), "\t", "    "))
	doc := markdownParser().Parse(text.NewReader(src))
	r := markdownRenderer{src: src, color: color}
	return strings.Join(append(r.blocks(doc, max(width, 20), false), ""), "\n")
}

// markdownRenderer turns a syntax tree into lines.
type markdownRenderer struct {
	src   []byte
	color bool
}

// blocks renders the children of a node, set off by blank lines unless they are tight.
func (r *markdownRenderer) blocks(parent ast.Node, width int, tight bool) (out []string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := r.block(n, width)
		if len(lines) > 0 && len(out) > 0 && !tight {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

// block renders one block in lines of at most width columns. Without colour it keeps the marks that tell headings and
// code apart. A block of a kind that it does not know is rendered as its children, or as text.
func (r *markdownRenderer) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		style := bold
		if n.Level == 1 {
			style += ";" + underline
		}
		glyphs := r.inline(n, style)
		if !r.color { // the marks are the only thing that tells it from a paragraph
			glyphs = append(glyphsOf(strings.Repeat("#", n.Level)+" ", ""), glyphs...)
		}
		return r.wrap(glyphs, width)
	case *ast.List:
		return r.list(n, width)
	case *ast.FencedCodeBlock:
		return r.code(string(n.Language(r.src)), n, width)
	case *ast.CodeBlock:
		return r.code("", n, width)
	case *ast.Blockquote:
		return prefixed(r.blocks(n, width-2, false), paint(r.color, dim, "│ "), paint(r.color, dim, "│ "))
	case *ast.ThematicBreak:
		return []string{paint(r.color, dim, strings.Repeat("─", min(width, 40)))}
	case *extast.Table:
		return r.table(n, width)
	// HTML is shown as its source: nothing here could render it, and leaving it out would hide a part of the answer.
	case *ast.HTMLBlock:
		return strings.Split(strings.TrimRight(r.source(n), "\n"), "\n")
	}
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
		return r.blocks(n, width, false)
	}
	return r.wrap(r.inline(n, ""), width)
}

// source is the text of a block's lines, as it was written.
func (r *markdownRenderer) source(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(r.src))
	}
	return b.String()
}

// list renders a list. Only the first number counts; the others follow it (CommonMark, section 5.3).
func (r *markdownRenderer) list(n *ast.List, width int) (out []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		lines := r.blocks(item, width-len([]rune(mark)), n.IsTight)
		// An item may be empty, and its mark is shown all the same.
		if len(lines) == 0 {
			lines = []string{""}
		}
		if !n.IsTight && len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, prefixed(lines, mark, strings.Repeat(" ", len([]rune(mark))))...)
	}
	return out
}

// prefixed puts something before the first line and the others, in place. A later line has no blanks at its end.
func prefixed(lines []string, first, other string) []string {
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = strings.TrimRight(other+lines[i], " ")
		}
	}
	return lines
}

// code is indented and never wrapped at words, so that it stays what it is.
func (r *markdownRenderer) code(language string, n ast.Node, width int) []string {
	code := strings.TrimRight(r.source(n), "\n")
	if r.color {
		code = highlight(language, code)
	}
	var out []string
	for _, l := range strings.Split(code, "\n") {
		out = append(out, strings.Split(ansi.Hardwrap(l, max(width-2, 8), true), "\n")...)
	}
	return prefixed(closed(out), "  ", "  ")
}

// closed ends a style that a line break cut in two at the end of its line, and begins it again in the next one. It
// knows the sequences of paint only: one style, ended by SGR 0.
func closed(lines []string) []string {
	open := ""
	for i, l := range lines {
		lines[i] = open + l
		for rest := l; ; {
			at := strings.Index(rest, "\x1b[")
			if at < 0 {
				break
			}
			end := strings.IndexByte(rest[at:], 'm')
			if end < 0 {
				break
			}
			if open = rest[at : at+end+1]; open == "\x1b[0m" {
				open = ""
			}
			rest = rest[at+end+1:]
		}
		if open != "" {
			lines[i] += "\x1b[0m"
		}
	}
	return lines
}

// table aligns the cells; columns that do not fit are wrapped, the widest first.
func (r *markdownRenderer) table(n *extast.Table, width int) (out []string) {
	var rows [][][]glyph
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		style := ""
		if row.Kind() == extast.KindTableHeader {
			style = bold
		}
		var cells [][]glyph
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, r.inline(c, style))
		}
		rows = append(rows, cells)
	}
	columns := make([]int, len(n.Alignments))
	for _, row := range rows {
		for i, c := range row {
			columns[i] = max(columns[i], widthOf(c), 1)
		}
	}
	const gap = 3 // " │ "
	// The widest column gives up one screen column at a time, until the table fits.
	for total := func() (sum int) {
		for _, c := range columns {
			sum += c
		}
		return sum + gap*(len(columns)-1)
	}; total() > width; {
		widest := 0
		for i, c := range columns {
			if c > columns[widest] {
				widest = i
			}
		}
		if columns[widest] <= 4 {
			break // more columns than the screen has room for
		}
		columns[widest]--
	}
	for i, row := range rows {
		out = append(out, r.row(row, columns, n.Alignments)...)
		if i == 0 {
			var rule []string
			for _, c := range columns {
				rule = append(rule, strings.Repeat("─", c))
			}
			out = append(out, paint(r.color, dim, strings.Join(rule, "─┼─")))
		}
	}
	return out
}

// row is one row of a table in as many lines as its highest cell needs.
func (r *markdownRenderer) row(cells [][]glyph, columns []int, align []extast.Alignment) (out []string) {
	wrapped, height := make([][][]glyph, len(columns)), 1
	for i := range columns {
		if i < len(cells) {
			wrapped[i] = wrapGlyphs(cells[i], columns[i])
		}
		height = max(height, len(wrapped[i]))
	}
	for l := range height {
		var parts []string
		for i, w := range columns {
			var cell []glyph
			if l < len(wrapped[i]) {
				cell = wrapped[i][l]
			}
			// A character of two columns may not fit into a column of one, so space may be negative.
			space := w - widthOf(cell)
			left := 0
			switch align[i] {
			case extast.AlignRight:
				left = space
			case extast.AlignCenter:
				left = space / 2
			}
			parts = append(parts, strings.Repeat(" ", max(left, 0))+r.painted(cell)+strings.Repeat(" ", max(space-left, 0)))
		}
		out = append(out, strings.TrimRight(strings.Join(parts, paint(r.color, dim, " │ ")), " "))
	}
	return out
}

// glyph is what takes up columns of a line together, with its style: wrapping works on these because a style must neither
// be counted nor run on into the margin.
type glyph struct {
	text  string
	width int
	style string
}

// glyphsOf cuts a text into what a terminal draws as one: grapheme clusters, with the columns that each takes. The
// text must be clean.
func glyphsOf(s, style string) []glyph {
	out := make([]glyph, 0, len(s))
	for s != "" {
		if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) { // most of all text; nothing joins two of these
			out = append(out, glyph{s[:1], 1, style})
			s = s[1:]
			continue
		}
		g, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		out = append(out, glyph{g, w, style})
		s = s[len(g):]
	}
	return out
}

// widthOf is the number of columns of a line.
func widthOf(line []glyph) (n int) {
	for _, g := range line {
		n += g.width
	}
	return n
}

// inline are the glyphs of a block's text. style is an SGR parameter list that the text inherits: emphasis inside a
// link has both styles.
func (r *markdownRenderer) inline(parent ast.Node, style string) (out []glyph) {
	plus := func(more string) string { return strings.TrimPrefix(style+";"+more, ";") }
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			out = append(out, glyphsOf(unescaped(n.Segment.Value(r.src)), style)...)
			switch {
			case n.HardLineBreak():
				out = append(out, glyph{text: "\n"})
			case n.SoftLineBreak():
				out = append(out, glyph{" ", 1, style})
			}
		case *ast.String:
			out = append(out, glyphsOf(unescaped(n.Value), style)...)
		case *ast.CodeSpan:
			// Backslashes and entities mean themselves in a code span, so its text is taken as it is (CommonMark,
			// section 6.1).
			code := ""
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					code += string(t.Segment.Value(r.src))
				}
			}
			if !r.color {
				code = "`" + code + "`"
			}
			out = append(out, glyphsOf(strings.ReplaceAll(code, "\n", " "), plus(cyan))...)
		case *ast.Emphasis:
			with := italic
			if n.Level > 1 {
				with = bold
			}
			out = append(out, r.inline(n, plus(with))...)
		case *extast.Strikethrough:
			out = append(out, r.inline(n, plus(strike))...)
		case *extast.TaskCheckBox:
			box := "☐ "
			if n.IsChecked {
				box = "☑ "
			}
			out = append(out, glyphsOf(box, style)...)
		case *ast.AutoLink:
			out = append(out, glyphsOf(Clean(string(n.URL(r.src))), plus(underline))...)
		case *ast.Link:
			out = append(out, r.address(r.inline(n, plus(underline)), n.Destination, style)...)
		case *ast.Image:
			out = append(out, r.address(r.inline(n, style), n.Destination, style)...)
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				s := n.Segments.At(i)
				out = append(out, glyphsOf(string(s.Value(r.src)), style)...)
			}
		default:
			out = append(out, r.inline(n, style)...)
		}
	}
	return out
}

// address adds where a link leads, always: its words may name another place.
// [https://good.example](https://evil.example) would otherwise show the good address alone.
func (r *markdownRenderer) address(words []glyph, destination []byte, style string) []glyph {
	to := unescaped(destination)
	var said strings.Builder
	for _, g := range words {
		said.WriteString(g.text)
	}
	if said.String() == to {
		return words
	}
	return append(words, glyphsOf(" ("+to+")", strings.TrimPrefix(style+";"+dim, ";"))...)
}

// unescaped is a text without its backslashes and entities. It is cleaned again: &#27; was five harmless characters
// before.
func unescaped(b []byte) string {
	return Clean(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b)))))
}

// wrap renders glyphs in lines of at most width columns.
func (r *markdownRenderer) wrap(glyphs []glyph, width int) (out []string) {
	for _, l := range wrapGlyphs(glyphs, width) {
		out = append(out, r.painted(l))
	}
	return out
}

// wrapGlyphs breaks a text into lines, at blanks where there are any.
func wrapGlyphs(glyphs []glyph, width int) (lines [][]glyph) {
	var line []glyph
	room, blank := width, -1 // blank: the last one in the line
	for i := 0; i < len(glyphs); i++ {
		g := glyphs[i]
		switch {
		case g.text == "\n":
			lines = append(lines, line)
			line, room, blank = nil, width, -1
			continue
		// A blank that would begin the next line is dropped.
		case g.width > room && g.text == " ":
			lines = append(lines, line)
			line, room, blank = nil, width, -1
			continue
		case g.width > room && blank >= 0:
			lines = append(lines, line[:blank])
			line = append([]glyph(nil), line[blank+1:]...)
			room, blank = width-widthOf(line), -1
		// A word that is longer than a line is broken where the line is full.
		case g.width > room && len(line) > 0:
			lines = append(lines, line)
			line, room, blank = nil, width, -1
		}
		if g.text == " " {
			blank = len(line)
		}
		line = append(line, g)
		room -= g.width
	}
	if len(line) > 0 {
		lines = append(lines, line)
	}
	return lines
}

// painted joins a line's glyphs; each run of one style is closed, so that nothing bleeds into a margin or a scroll-back.
func (r *markdownRenderer) painted(line []glyph) string {
	var b, run strings.Builder
	style := ""
	end := func() {
		b.WriteString(paint(r.color, style, run.String()))
		run.Reset()
	}
	for _, g := range line {
		if g.style != style {
			end()
			style = g.style
		}
		run.WriteString(g.text)
	}
	end()
	return b.String()
}
