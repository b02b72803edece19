package gofix_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/gofix"
)

// The text comes from an editor's buffer: nothing is written, and the fix is the file's new text.
func ExampleFinder_Find() {
	dir, err := os.MkdirTemp("", "gofix")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sum.go")
	const text = "package sum\n\nfunc Total(prices []int) (sum int) {\n\tif len(prices) == 0 {\n\t\treturn 0\n\t}\n\tfor _, p := range pricse {\n\t\tsum += p\n\t}\n\treturn sum\n}\n"
	os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/sum\n\ngo 1.22\n"), 0o644)
	os.WriteFile(path, []byte("package sum\n"), 0o644)

	fixes, err := new(gofix.Finder).Find(context.Background(), path, 7, func(file string) (string, bool) { return text, file == path })
	if err != nil || len(fixes) == 0 {
		fmt.Println("no fix:", err)
		return
	}
	fmt.Println(fixes[0].Title)
	fmt.Println("errors fewer:", fixes[0].Errors)
	// Output:
	// Change pricse to prices
	// errors fewer: 1
}
