//go:build cgo

// Package treesitter has the grammars of github.com/smacker/go-tree-sitter for its parser, with their tables packed to a tenth of their size
// and unpacked at the first use of a language: linked as C they were 12 MB of the program. gen writes the tables; language.c gives them to
// the parser, with the external scanners of the grammars' own packages.
//
// Linked with --gc-sections (see the Makefile), the program has no other copy of the tables. Without it, as go install links, it has both
// and does the same.
//
//	parser.SetLanguage(treesitter.Language("go"))
//
// Texts must be ASCII: the lexers know no other characters.
package treesitter

//go:generate go run ./gen

/*
#include <stdlib.h>
#include "language.h"
*/
import "C"

import (
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"sync"
	"unsafe"

	sitter "github.com/smacker/go-tree-sitter"
	_ "github.com/smacker/go-tree-sitter/bash" // and those below: their scanners
	_ "github.com/smacker/go-tree-sitter/cpp"
	_ "github.com/smacker/go-tree-sitter/css"
	_ "github.com/smacker/go-tree-sitter/javascript"
	_ "github.com/smacker/go-tree-sitter/lua"
	_ "github.com/smacker/go-tree-sitter/php"
	_ "github.com/smacker/go-tree-sitter/python"
	_ "github.com/smacker/go-tree-sitter/ruby"
	_ "github.com/smacker/go-tree-sitter/rust"
	_ "github.com/smacker/go-tree-sitter/typescript/tsx"
	_ "github.com/smacker/go-tree-sitter/typescript/typescript"
)

//go:embed grammars/*.gz
var grammars embed.FS

var (
	mu       sync.Mutex
	unpacked = map[string]*sitter.Language{} // guarded by mu
)

// Language is the grammar of a name, such as "go"; nil when there is none. It stays in memory.
func Language(name string) *sitter.Language {
	mu.Lock()
	defer mu.Unlock()
	l, ok := unpacked[name]
	if !ok {
		l = unpack(name)
		unpacked[name] = l
	}
	return l
}

func unpack(name string) *sitter.Language {
	cName := C.CString(name)
	defer C.free(unsafe.Pointer(cName))
	i := C.find(cName)
	if i < 0 {
		return nil
	}
	data, err := tables(name)
	if err != nil {
		panic(fmt.Sprintf("the grammar of %s in the program is damaged: %v", name, err))
	}
	l := C.unpack(i, (*C.uint8_t)(C.CBytes(data)), C.size_t(len(data))) // the parser keeps the data
	if l == nil {
		panic(fmt.Sprintf("the grammar of %s in the program has another form", name))
	}
	return sitter.NewLanguage(unsafe.Pointer(l))
}

func tables(name string) ([]byte, error) {
	f, err := grammars.Open("grammars/" + name + ".gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
