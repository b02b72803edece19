package whole_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/whole"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "whole")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "state", "auth.json") // the folder is made too
	if err := whole.Write(path, []byte("{}\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(path)
	fmt.Print(string(text), err)
	// Output:
	// {}
	// <nil>
}
