package lspbridge_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A proposal is checked before it is written. The fake server reports every line with "BAD" as an error.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "notes.txt")
	_ = os.WriteFile(path, []byte("BAD spelling\n"), 0o600)

	m := lspbridge.New(lspbridge.Options{
		Root:    dir,
		NoWatch: true,
		Servers: map[string]lspbridge.ServerConfig{"fake": {Command: []string{"fake"}, Extensions: []string{".txt"}}},
		Dial: func(lspbridge.Server, string) (io.ReadCloser, io.WriteCloser, error) {
			r, w := fakelsp.New(fakelsp.Options{Pull: true}).Pipes()
			return r, w, nil
		},
	})
	ctx := context.Background()
	defer m.Close(ctx)

	delta := m.Check(ctx, []lspbridge.Proposal{{Path: path, Text: "good spelling\nBAD idea\n"}})
	fmt.Println(delta.Certainty)
	for _, p := range delta.Introduced {
		fmt.Printf("introduced %d:%d %s\n", p.Line, p.Column, p.Message)
	}
	for _, p := range delta.Fixed {
		fmt.Printf("fixed %d:%d %s\n", p.Line, p.Column, p.Message)
	}
	text, _ := os.ReadFile(path)
	fmt.Printf("on disk: %s", text)
	// Output:
	// fresh
	// introduced 2:1 idea
	// fixed 1:1 spelling
	// on disk: BAD spelling
}

// Problems are matched by their messages, so lines that only moved are neither introduced nor fixed.
func ExampleDiffDiagnostics() {
	before := []change.Problem{{Path: "/p/a.go", Line: 3, Message: "undefined: x"}, {Path: "/p/a.go", Line: 9, Message: "unused"}}
	after := []change.Problem{{Path: "/p/a.go", Line: 5, Message: "undefined: x"}, {Path: "/p/a.go", Line: 5, Message: "undefined: y"}}
	introduced, fixed, unchanged := lspbridge.DiffDiagnostics(before, after)
	fmt.Println(introduced[0].Message, "|", fixed[0].Message, "|", unchanged)
	// Output: undefined: y | unused | 1
}

// A character outside the basic plane is two UTF-16 units and four bytes.
func ExamplePositionOffset() {
	text := "a\n😀b\n"
	fmt.Println(lspbridge.PositionOffset(text, lspbridge.Position{Line: 1, Character: 2}))
	fmt.Println(lspbridge.OffsetPosition(text, 6))
	// Output:
	// 6
	// {1 2}
}

// A Problem counts from 1, a Range from 0.
func ExampleProblemRange() {
	fmt.Println(lspbridge.ProblemRange(change.Problem{Line: 3, Column: 1, EndLine: 3, EndColumn: 5}))
	// Output: {{2 0} {2 4}}
}
