package search_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/search"
)

func ExampleSearcher_Grep() {
	dir, err := os.MkdirTemp("", "search")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{".gitignore": "*.log\n", "a.go": "package a\n\nfunc A() {}\n", "a.log": "func A() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	s := search.New(search.Options{Ripgrep: "off"})
	found, err := s.Grep(context.Background(), search.GrepQuery{Root: dir, Pattern: `^func \w+`})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range found.Matches {
		fmt.Printf("%s:%d: %s\n", filepath.Base(m.Path), m.Line, m.Text)
	}
	// Output: a.go:3: func A() {}
}
