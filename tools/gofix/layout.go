package gofix

import (
	"go/scanner"
	"go/token"
	"strings"
)

// maxDisagreements is how many places a file may have where brackets and indentation disagree. In a file that gofmt has formatted the first
// one is where the mistake is; a file with more was formatted by hand.
const maxDisagreements = 4

// bracket is an opening bracket that is not closed yet.
type bracket struct {
	tok  token.Token
	at   int // its offset
	line int
	base string // how the line is indented on which its statement, or its element of a list, begins
	// before is the byte after the token before it.
	before int
	// block is before of the block that begins at the end of its line, if it is a parenthesis that should have been closed there; 0: there is none.
	block int
	last  bool // it is the last token of its line
}

// closers are the closing brackets by their opening ones.
var closers = map[token.Token]token.Token{token.LBRACE: token.RBRACE, token.LPAREN: token.RPAREN, token.LBRACK: token.RBRACK}

// layoutRepairs returns candidates for a missing or surplus bracket that the indentation shows. The parser notices a missing brace at the
// next declaration or at the end of the file, where closing the block would parse as well and would give the block what does not belong to
// it. The lines themselves say where it ended: no statement of a block is indented less than the block's first line.
func (m *module) layoutRepairs(t trouble) []candidate {
	l := layout{text: t.file.text, path: t.file.path}
	l.read()
	return l.out
}

// layout compares a text's brackets with its indentation.
type layout struct {
	text, path string
	out        []candidate
	places     int // how many disagreements were found
	open       []bracket
	base       string // as in bracket, of the statement that is being read
	last       ended  // the token before this one
	ends       []int  // where the items of this line's lists end: before a comma or a closing bracket
}

// ended is a token with the byte after it, and the line (from 1) on which it ends.
type ended struct {
	tok       token.Token
	end, line int
}

func (l *layout) read() {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile(l.path, -1, len(l.text))
	s.Init(file, []byte(l.text), func(token.Position, string) {}, 0) // an error of the scanner is one of the parser, too
	pos, tok, lit := s.Scan()
	for tok != token.EOF && l.places < maxDisagreements {
		nextPos, nextTok, nextLit := s.Scan()
		if tok == token.SEMICOLON && lit == "\n" {
			l.last.tok = tok // without a place of its own
		} else {
			at := file.Offset(pos)
			l.token(tok, at, file.Line(pos), nextTok == token.COLON)
			n := len(lit)
			if n == 0 {
				n = len(tok.String())
			}
			l.last = ended{tok, min(at+n, len(l.text)), file.Line(pos) + strings.Count(lit, "\n")}
		}
		pos, tok, lit = nextPos, nextTok, nextLit
	}
	for i := len(l.open) - 1; i >= 0 && l.places < maxDisagreements; i-- {
		l.close(l.open[i])
	}
}

// token takes the next token. before is its offset, colon says that a colon follows.
func (l *layout) token(tok token.Token, at, line int, colon bool) {
	if first := line > l.last.line; first {
		start, _ := lineOf(l.text, at)
		indent := l.text[start:at]
		if n := len(l.open); n > 0 && l.last.tok == token.LBRACE {
			l.open[n-1].last = true
		}
		l.firstOfLine(tok, at, indent, colon)
		l.ends = nil
		switch l.last.tok {
		case token.ILLEGAL, token.SEMICOLON, token.LBRACE, token.LPAREN, token.LBRACK, token.COMMA, token.COLON:
			l.base = indent
		default: // the line continues a statement
			if tok == token.RBRACE || tok == token.RPAREN || tok == token.RBRACK {
				l.base = indent
			}
		}
	}
	switch tok {
	case token.COMMA:
		l.ends = append(l.ends, l.last.end)
	case token.LBRACE, token.LPAREN, token.LBRACK:
		l.open = append(l.open, bracket{tok: tok, at: at, line: line, base: l.base, before: l.last.end})
	case token.RBRACE, token.RPAREN, token.RBRACK:
		if l.top(tok) {
			l.pop()
			l.ends = append(l.ends, l.last.end)
			return
		}
		// Either the innermost bracket is not closed, or this one is one too many.
		l.places++
		l.add(2, at, at+1, "", "Remove "+tok.String())
		if n := len(l.open); n > 0 {
			l.within(l.open[n-1], at)
			if n > 1 && closers[l.open[n-2].tok] == tok {
				l.pop()
				l.pop()
			}
		}
	}
}

// firstOfLine compares the indentation of a line with the brackets that are open before it.
func (l *layout) firstOfLine(tok token.Token, at int, indent string, colon bool) {
	if tok == token.ELSE { // Go wants the brace on its line
		l.places++
		if n := len(l.open); n > 0 && l.open[n-1].tok == token.LBRACE {
			base := l.open[n-1].base
			if rest, ok := strings.CutPrefix(indent, base); ok && rest == " " {
				l.add(0, at-1, at-1, "}", "Insert }")
			} else {
				l.add(0, at, at, "} ", "Insert }")
			}
			l.pop()
		}
		return
	}
	closes := tok == token.RBRACE || tok == token.RPAREN || tok == token.RBRACK
	for len(l.open) > 0 && l.places < maxDisagreements {
		top := l.open[len(l.open)-1]
		switch {
		case closes && len(top.base) <= len(indent):
			if l.top(tok) && len(top.base) < len(indent) { // one too many, or the block that it closes was never opened
				l.places++
				l.add(1, at, at+1, "", "Remove "+tok.String())
				l.opened(at, indent)
			}
			return
		case !closes && len(top.base) < len(indent):
			return
		// A case and a label are indented as what they are in.
		case !closes && len(top.base) == len(indent) && top.tok == token.LBRACE && (tok == token.CASE || tok == token.DEFAULT || tok == token.IDENT && colon):
			return
		}
		l.close(top)
		if c := closers[top.tok].String(); indent == top.base { // what follows the bracket on its line is still there
			l.add(1, at, at, c, "Insert "+c)
		}
		l.pop()
	}
}

// close adds the candidates that close a bracket before the line that is being read.
func (l *layout) close(b bracket) {
	l.places++
	c := closers[b.tok].String()
	if b.block > 0 {
		l.add(0, b.block, b.block, c, "Insert "+c)
	}
	after := l.last.end
	eol := len(l.text) // of the last token's line, which may end with a comment
	if i := strings.IndexByte(l.text[after:], '\n'); i >= 0 {
		eol = after + i
	}
	if b.line == l.last.line {
		l.within(b, after)
	} else if b.tok != token.LBRACE && l.last.tok != token.COMMA {
		l.add(0, after, after, c, "Insert "+c)
	}
	if b.line < l.last.line {
		// The brace was alone on its line: the line is still there, with its indentation.
		start, end := lineOf(l.text, min(eol+1, len(l.text)))
		alone := start > eol && strings.TrimRight(l.text[start:end], "\r\n") == b.base
		// An empty line separates declarations; only one of two was the brace's.
		if alone && (b.base != "" || strings.TrimLeft(l.text[end:], "\r") != strings.TrimLeft(l.text[end:], "\r\n")) {
			at := start + len(b.base)
			l.add(0, at, at, c, "Insert "+c)
			return
		}
		l.add(0, eol, eol, "\n"+b.base+c, "Insert "+c)
	}
}

// within adds the candidates that close a bracket on its line: at a place, or after an item of the line's lists, the last one first.
func (l *layout) within(b bracket, at int) {
	c := closers[b.tok].String()
	l.add(0, at, at, c, "Insert "+c)
	for i := len(l.ends) - 1; i >= 0 && l.ends[i] > b.at; i-- {
		l.add(len(l.ends)-i, l.ends[i], l.ends[i], c, "Insert "+c)
	}
}

// opened adds the candidate that opens a block: at the end of the nearest line above with this indentation.
func (l *layout) opened(at int, indent string) {
	for line, _ := lineOf(l.text, at); line > 0; {
		start, _ := lineOf(l.text, line-1)
		row := strings.TrimRight(l.text[start:line], " \t\r\n")
		if rest, ok := strings.CutPrefix(row, indent); ok && rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			if !strings.HasSuffix(rest, "{") {
				l.add(1, start+len(row), start+len(row), " {", "Insert {")
			}
			return
		}
		line = start
	}
}

// top reports whether a closing bracket fits the innermost one that is open.
func (l *layout) top(tok token.Token) bool {
	n := len(l.open)
	return n > 0 && closers[l.open[n-1].tok] == tok
}

// pop forgets the innermost bracket. What follows it belongs to the statement that it is in.
func (l *layout) pop() {
	n := len(l.open) - 1
	top := l.open[n]
	l.base = top.base
	if n > 0 && top.last && top.tok == token.LBRACE && l.open[n-1].tok != token.LBRACE && l.open[n-1].line == top.line {
		l.open[n-1].block = top.before
	}
	l.open = l.open[:n]
}

func (l *layout) add(cost, start, end int, new, title string) {
	l.out = append(l.out, candidate{title: title, cost: cost, edits: []edit{{l.path, start, end, new}}, deep: true, syntax: true})
}
