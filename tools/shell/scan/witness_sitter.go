//go:build cgo

package scan

import (
	"context"
	"sync"
	"time"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/bash"
)

// commandQuery is compiled once, when the first command is analysed. A query is read-only and may be shared.
var commandQuery = sync.OnceValues(func() (*sitter.Query, error) {
	return sitter.NewQuery([]byte("(command name: (command_name) @n) (ERROR) @e"), bash.GetLanguage())
})

// witness is the second opinion: tree-sitter's bash grammar. It returns the offsets (bytes) where it sees the names
// of commands begin. why is set when the text is not bash to it or when it took too long; then names says nothing.
//
// A parser is made for each text and closed: a shared one crashes, a cancelled one stays poisoned, an unclosed one
// leaks megabytes. It sees ASCII only: the grammar's scanner looks characters up in tables of libc that end at 255,
// and a rare code point ("T{" and U+659A6) takes the process down. To bash all such bytes are letters of a word.
func witness(text string, limit time.Duration) (names []int, why string) {
	query, err := commandQuery()
	if err != nil {
		return nil, "the second parser is not available: " + err.Error()
	}
	p := sitter.NewParser()
	defer p.Close()
	p.SetLanguage(bash.GetLanguage())
	// The limit is in microseconds. A text that exceeds it makes the command opaque, like one that the parsers disagree about.
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
	// tree-sitter repairs what it cannot parse and continues, so an error anywhere makes its other answers worthless.
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
