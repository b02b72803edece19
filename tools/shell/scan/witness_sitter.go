//go:build cgo

package scan

import (
	"context"
	"sync"
	"time"

	sitter "github.com/smacker/go-tree-sitter"

	"github.com/pillion-dev/pillion/tools/treesitter"
)

// bashSymbols are the numbers of commands and of their names in the grammar: to compare them costs less than to copy each node's kind.
var bashSymbols = sync.OnceValue(func() (s struct{ command, name sitter.Symbol }) {
	bash := treesitter.Language("bash")
	for i := range sitter.Symbol(bash.SymbolCount()) {
		switch bash.SymbolName(i) {
		case "command":
			s.command = i
		case "command_name":
			s.name = i
		}
	}
	return s
})

// witness is the second parser, tree-sitter's bash grammar. It returns the byte offsets at which the names of commands
// begin. why is set when the grammar rejects the text or when parsing takes too long; names is then meaningless.
//
// Each text gets a parser of its own, which must be closed: a shared parser crashes, one that was stopped by its limit does not
// work again, and one that is not closed leaks megabytes. It is given ASCII only: the grammar's scanner looks characters up in
// tables of libc that end at 255, and some code points ("T{" and U+659A6) crash the process. To bash every byte from 0x80 is a
// letter of a word, so an x does as well.
func witness(text string, limit time.Duration) (names []int, why string) {
	p := sitter.NewParser()
	defer p.Close()
	p.SetLanguage(treesitter.Language("bash"))
	// The limit is in microseconds. A text that exceeds it makes the command opaque.
	p.SetOperationLimit(int(limit.Microseconds()))
	ascii := []byte(text)
	for i, b := range ascii {
		if b >= 0x80 {
			ascii[i] = 'x'
		}
	}
	tree, err := p.ParseCtx(context.Background(), nil, ascii)
	if err != nil || tree == nil {
		return nil, errSlow.Error()
	}
	defer tree.Close()
	root := tree.RootNode()
	// After an error tree-sitter guesses and continues, so an error anywhere makes the whole tree unreliable.
	if root.HasError() {
		return nil, "two parsers disagree about its syntax"
	}
	cursor := sitter.NewTreeCursor(root)
	defer cursor.Close()
	// A loop and not a recursion, because syntax may be nested thousands of levels deep.
	symbols := bashSymbols()
	parents := []bool{false} // of the node under the cursor, from above the root: which are commands
	for {
		n := cursor.CurrentNode()
		kind := n.Symbol()
		if kind == symbols.name && parents[len(parents)-1] && cursor.CurrentFieldName() == "name" {
			names = append(names, int(n.StartByte()))
		}
		if cursor.GoToFirstChild() {
			parents = append(parents, kind == symbols.command)
			continue
		}
		for !cursor.GoToNextSibling() {
			if !cursor.GoToParent() {
				return names, ""
			}
			parents = parents[:len(parents)-1]
		}
	}
}
