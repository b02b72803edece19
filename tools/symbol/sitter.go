//go:build cgo

package symbol

import (
	"context"
	"unicode"
	"unicode/utf8"

	sitter "github.com/smacker/go-tree-sitter"

	"github.com/pillion-dev/pillion/tools/treesitter"
)

// hasParser is false in builds without cgo, which have no grammars; Supported and Tokens check it.
const hasParser = true

// parseTime limits how long a parse may take, in microseconds, the unit of tree-sitter's operation limit. Ordinary files take
// milliseconds. Files that take longer are generated or ambiguous, and the edit waits for the parse.
const parseTime = 1_000_000

// parse copies the tree, so that no memory of the parser is used after it has returned. It creates and closes a parser for each
// text: a shared parser crashes, a cancelled one cannot be used again, and one that is not closed leaks megabytes. If time runs
// out, the error is ErrSlow and there is no partial outline: a declaration that is missing there would seem not to exist.
func parse(lang, text string) (*node, []span, error) {
	var root *node
	var broken []span
	err := withTree(lang, text, func(r *reader) {
		root = r.read(nil, 0, 0)
		broken = r.broken
	})
	return root, broken, err
}

// mistakes are the places of syntax errors that parse also returns. It copies nothing and enters only nodes with an error below them, so
// that a text without one costs no more than the parser: it runs at every edit.
func mistakes(lang, text string) ([]span, error) {
	var broken []span
	err := withTree(lang, text, func(r *reader) {
		r.findErrors(0, false)
		broken = r.broken
	})
	return broken, err
}

// longLiterals are the nodes of literals that begin and end on different lines; whole is false where the text has a syntax error. It enters
// only nodes of several lines.
func longLiterals(lang, text string) (literals [][2]int, whole bool, err error) {
	err = withTree(lang, text, func(r *reader) {
		whole = !r.cursor.CurrentNode().HasError()
		r.findLong(0, func(n *sitter.Node) {
			literals = append(literals, [2]int{int(n.StartByte()), int(n.EndByte())})
		})
	})
	return literals, whole, err
}

// findLong calls found for the literals at and below the node under the cursor, to maxDepth like read; afterwards the cursor is at the same
// node again.
func (r *reader) findLong(depth int, found func(*sitter.Node)) {
	cur := r.cursor.CurrentNode()
	if cur.StartPoint().Row == cur.EndPoint().Row {
		return
	}
	if isLiteral(cur.Type()) {
		found(cur)
		return
	}
	if depth < maxDepth {
		r.children(func(int) { r.findLong(depth+1, found) })
	}
}

// withTree parses a text and calls f with a reader at the root of its tree. Nothing of the tree may be kept.
func withTree(lang, text string, f func(*reader)) error {
	if angles(text) > maxAngles {
		return ErrSlow
	}
	p := sitter.NewParser()
	defer p.Close()
	l := treesitter.Language(lang)
	p.SetLanguage(l)
	p.SetOperationLimit(parseTime)
	tree, err := p.ParseCtx(context.Background(), nil, ascii(text))
	if err != nil || tree == nil {
		return ErrSlow
	}
	defer tree.Close()
	r := reader{text: text, names: map[sitter.Symbol]string{}, lang: l, cursor: sitter.NewTreeCursor(tree.RootNode())}
	defer r.cursor.Close()
	f(&r)
	return nil
}

// ascii replaces all other letters by x and all other white space by a blank, because the grammars' scanners look up characters in
// tables of libc, and a rare code point crashes the process. Each character is replaced by as many bytes as it has, so every offset
// in the tree is also one in the text.
func ascii(text string) []byte {
	b := []byte(text)
	for i, r := range text {
		if r < utf8.RuneSelf {
			continue
		}
		with := byte('x')
		if unicode.IsSpace(r) || r == '\ufeff' {
			with = ' '
		}
		for n := range utf8.RuneLen(r) {
			b[i+n] = with
		}
	}
	return b
}

// reader copies tree-sitter's C tree into Go nodes in one walk: reading each field from C later would need a cgo call each time.
type reader struct {
	text   string
	lang   *sitter.Language
	names  map[sitter.Symbol]string
	cursor *sitter.TreeCursor
	broken []span
}

// maxDepth is how deep the copy follows nested syntax. The copy is recursive, and a generated file with nested brackets would need
// a deep stack. No declaration that a person names is deeper.
const maxDepth = 400

// read copies the node under the cursor and its descendants, to maxDepth; afterwards the cursor is at the same node again. A short
// leaf keeps its text (word), because the grammars of JavaScript and PHP distinguish constructors from other methods only by name.
func (r *reader) read(parent *node, index, depth int) *node {
	cur := r.cursor.CurrentNode()
	sym := cur.Symbol()
	kind, ok := r.names[sym]
	if !ok {
		kind = cur.Type()
		r.names[sym] = kind
	}
	n := &node{kind: kind, start: int(cur.StartByte()), end: int(cur.EndByte()), parent: parent, index: index}
	if parent != nil {
		n.field = r.cursor.CurrentFieldName()
	}
	r.note(cur, kind)
	if depth >= maxDepth {
		return n
	}
	if !r.children(func(i int) { n.kids = append(n.kids, r.read(n, i, depth+1)) }) && n.end-n.start < 20 {
		n.word = r.text[n.start:n.end]
	}
	return n
}

// findErrors notes the syntax errors at and below the node under the cursor, to maxDepth like read; afterwards the cursor is at the same
// node again. inside: the node is part of an error. An error within another one is not counted by HasError.
func (r *reader) findErrors(depth int, inside bool) {
	cur := r.cursor.CurrentNode()
	if !inside && !cur.HasError() {
		return
	}
	kind := cur.Type()
	r.note(cur, kind)
	inside = inside || kind == "ERROR"
	if depth < maxDepth {
		r.children(func(int) { r.findErrors(depth+1, inside) })
	}
}

// children calls do with the cursor at each child of its node, by number from 0; afterwards the cursor is at the node again. It reports
// whether there are any.
func (r *reader) children(do func(i int)) bool {
	if !r.cursor.GoToFirstChild() {
		return false
	}
	for i := 0; ; i++ {
		do(i)
		if !r.cursor.GoToNextSibling() {
			break
		}
	}
	r.cursor.GoToParent()
	return true
}

// note remembers a node that is a syntax error. Missing line ends are ignored: Go's grammar demands one where Go does not, such as at the
// end of a file. If they counted as syntax errors, the last declaration of many files would be Fixed.
func (r *reader) note(n *sitter.Node, kind string) {
	if kind == "ERROR" || n.IsMissing() && kind != "\n" && kind != "\x00" {
		r.broken = append(r.broken, span{int(n.StartByte()), int(n.EndByte())})
	}
}
