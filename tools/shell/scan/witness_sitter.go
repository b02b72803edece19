//go:build cgo

package scan

import (
	"context"
	"sync"
	"time"

	sitter "github.com/smacker/go-tree-sitter"

	"github.com/pillion-dev/pillion/tools/treesitter"
)

// commandQuery is compiled once, when the first command is analysed. A query is read-only and may be shared.
var commandQuery = sync.OnceValues(func() (*sitter.Query, error) {
	return sitter.NewQuery([]byte("(command name: (command_name) @n) (ERROR) @e"), treesitter.Language("bash"))
})

// witness is the second parser, tree-sitter's bash grammar. It returns the byte offsets at which the names of commands
// begin. why is set when the grammar rejects the text or when parsing takes too long; names is then meaningless.
//
// Each text gets a parser of its own, which must be closed: a shared parser crashes, one that was stopped by its limit does not
// work again, and one that is not closed leaks megabytes. It is given ASCII only: the grammar's scanner looks characters up in
// tables of libc that end at 255, and some code points ("T{" and U+659A6) crash the process. To bash every byte from 0x80 is a
// letter of a word, so an x does as well.
func witness(text string, limit time.Duration) (names []int, why string) {
	query, err := commandQuery()
	if err != nil {
		return nil, "the second parser is not available: " + err.Error()
	}
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
	cursor := sitter.NewQueryCursor()
	defer cursor.Close()
	cursor.Exec(query, root)
	for {
		m, ok := cursor.NextMatch()
		if !ok {
			return names, ""
		}
		for _, c := range m.Captures {
			names = append(names, int(c.Node.StartByte()))
		}
	}
}
