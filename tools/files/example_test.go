package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/files"
)

// Bytes that are not UTF-8 come back as they were.
func ExampleDecode() {
	text, encoding := files.Decode([]byte("caf\xe9\n"))
	fmt.Printf("%q %s\n", text, encoding)
	b, err := files.Encode(text, encoding)
	fmt.Printf("%q %v\n", b, err)
	// Output:
	// "café\n" latin-1
	// "caf\xe9\n" <nil>
}

// Both files change or neither: the second was changed by somebody else, so the first keeps its text too.
func ExampleCommit() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, path := range []string{a, b} {
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	err = files.Commit(context.Background(), []files.Op{
		{Kind: files.Write, Path: a, Data: []byte("new"), Base: files.Hash([]byte("old"))},
		{Kind: files.Write, Path: b, Data: []byte("new"), Base: files.Hash([]byte("older"))},
	}, nil)
	text, _ := os.ReadFile(a)
	fmt.Println(errors.Is(err, files.ErrStale), string(text))
	// Output: true old
}
