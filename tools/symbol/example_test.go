//go:build cgo

package symbol_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/tools/symbol"
)

func ExampleReplace() {
	text := "package a\n\n// Start starts it.\nfunc (s *Server) Start() {\n}\n"
	list, err := symbol.Outline("a.go", text)
	if err != nil {
		fmt.Println(err)
		return
	}
	found := symbol.Find(list, "Server.Start")
	text, err = symbol.Replace(text, found[0], "func (s *Server) Start() error {\n\treturn nil\n}")
	fmt.Print(text, err)
	// Output:
	// package a
	//
	// // Start starts it.
	// func (s *Server) Start() error {
	// 	return nil
	// }
	// <nil>
}

func ExampleSplit() {
	fmt.Println(symbol.Split("ns::Type::method"))
	fmt.Println(symbol.Split(".Type.method"))
	// Output:
	// [ns Type method] false
	// [Type method] true
}
