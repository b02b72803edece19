//go:build cgo

package symbol

import (
	"context"
	"unicode"
	"unicode/utf8"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/bash"
	"github.com/smacker/go-tree-sitter/c"
	"github.com/smacker/go-tree-sitter/cpp"
	"github.com/smacker/go-tree-sitter/css"
	"github.com/smacker/go-tree-sitter/golang"
	"github.com/smacker/go-tree-sitter/java"
	"github.com/smacker/go-tree-sitter/javascript"
	"github.com/smacker/go-tree-sitter/lua"
	"github.com/smacker/go-tree-sitter/php"
	"github.com/smacker/go-tree-sitter/python"
	"github.com/smacker/go-tree-sitter/ruby"
	"github.com/smacker/go-tree-sitter/rust"
	"github.com/smacker/go-tree-sitter/typescript/tsx"
	"github.com/smacker/go-tree-sitter/typescript/typescript"
)

// hasParser is false in builds without cgo, which have no grammar at all; Supported and Tokens ask it.
const hasParser = true

// parseTime is how long a parse may take, in microseconds, the unit of tree-sitter's operation limit. Ordinary files take
// milliseconds; what runs longer is ambiguous or generated, and the person waits for the edit.
const parseTime = 1_000_000

// language is the compiled grammar; each adds 0.3 to 3 MB to the binary, which is why some
// languages have none.
func language(name string) *sitter.Language {
	switch name {
	case "go":
		return golang.GetLanguage()
	case "typescript":
		return typescript.GetLanguage()
	case "tsx":
		return tsx.GetLanguage()
	case "javascript":
		return javascript.GetLanguage()
	case "python":
		return python.GetLanguage()
	case "rust":
		return rust.GetLanguage()
	case "c":
		return c.GetLanguage()
	case "cpp":
		return cpp.GetLanguage()
	case "css":
		return css.GetLanguage()
	case "java":
		return java.GetLanguage()
	case "lua":
		return lua.GetLanguage()
	case "php":
		return php.GetLanguage()
	case "ruby":
		return ruby.GetLanguage()
	}
	return bash.GetLanguage()
}

// parse copies the tree out, so that nothing of the parser is left when it returns. A parser is made for each text and
// closed: a shared one crashes, a cancelled one stays poisoned, an unclosed one leaks megabytes. A tree that ran out of
// time is ErrSlow, not a partial outline: a missing declaration would look like one that does not exist.
func parse(lang, text string) (*node, []span, error) {
	if angles(text) > maxAngles {
		return nil, nil, ErrSlow
	}
	p := sitter.NewParser()
	defer p.Close()
	l := language(lang)
	p.SetLanguage(l)
	p.SetOperationLimit(parseTime)
	tree, err := p.ParseCtx(context.Background(), nil, ascii(text))
	if err != nil || tree == nil {
		return nil, nil, ErrSlow
	}
	defer tree.Close()
	r := reader{text: text, names: map[sitter.Symbol]string{}, lang: l, cursor: sitter.NewTreeCursor(tree.RootNode())}
	defer r.cursor.Close()
	root := r.read(nil, 0, 0)
	return root, r.broken, nil
}

// ascii is a text of the same length in which other letters are x and other white space is blank: the grammars' scanners
// look characters up in tables of libc, and a rare code point takes the process down. The length stays the same, so that
// every offset in the tree is one in the text.
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

// reader copies tree-sitter's C tree into Go nodes in one walk: asking the C side for each
// field costs a cgo call.
type reader struct {
	text   string
	lang   *sitter.Language
	names  map[sitter.Symbol]string
	cursor *sitter.TreeCursor
	broken []span
}

// maxDepth is how deep the copy follows nested syntax. The copy is recursive, and no declaration that anybody names lies
// deeper; a generated file of nested brackets would otherwise cost a deep stack.
const maxDepth = 400

// read copies the node under the cursor and what is below it, to maxDepth; the cursor is back at the node afterwards. A
// short leaf keeps its text (word), because the grammars of JavaScript and PHP tell constructors from other methods by
// their name.
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
	if kind == "ERROR" || cur.IsMissing() && r.real(n) {
		r.broken = append(r.broken, span{n.start, n.end})
	}
	if depth >= maxDepth {
		return n
	}
	if r.cursor.GoToFirstChild() {
		for i := 0; ; i++ {
			n.kids = append(n.kids, r.read(n, i, depth+1))
			if !r.cursor.GoToNextSibling() {
				break
			}
		}
		r.cursor.GoToParent()
	} else if n.end-n.start < 20 {
		n.word = r.text[n.start:n.end]
	}
	return n
}

// real leaves out missing line ends: Go's grammar wants one where Go does not, such as at the end of a file. Counted as
// mistakes they would make the last declaration of many files Fixed.
func (r *reader) real(n *node) bool { return n.kind != "\n" && n.kind != "\x00" }
