package mention_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/tools/search"
)

// What a person types need not be a whole word: the letters must occur in their order.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.MkdirAll(filepath.Join(dir, "server"), 0o700)
	for _, name := range []string{"server/handler.go", "server/wire.go", "README.md"} {
		_ = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
	}
	finder := mention.New(mention.Options{Searcher: func(string) *search.Searcher { return search.New(search.Options{}) }})
	defer finder.Close()

	found, more, err := finder.Search(context.Background(), dir, "shand", 10, mention.Kinds{mention.File: true})
	if err != nil {
		panic(err)
	}
	for _, m := range found {
		fmt.Println("@"+m.Path, m.Kind)
	}
	fmt.Println("more:", more)
	// Output:
	// @server/handler.go file
	// more: false
}
