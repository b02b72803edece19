//go:build cgo

package symbol

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Looking for errors alone finds exactly those that the copy of the tree has, in files of this repository with random bytes
// changed.
func TestMistakesAreThoseOfTheTree(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "../../extension/vscode/src/common/*.ts", "../../extension/nvim/lua/pillion/*.lua", "../../scripts/*.sh", "../../scripts/*.mjs"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatal("no files", pattern, err)
		}
		files = append(files, some...)
	}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			// Both read one tree: the scanner of Lua keeps state between two parses, and recovers from errors differently.
			var got, want []span
			if err := withTree(grammarOf(file).name, string(text), func(r *reader) {
				r.read(nil, 0, 0)
				want = r.broken
				r.broken = nil
				r.findErrors(0, false)
				got = r.broken
			}); err != nil {
				t.Fatal(file, err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v\n%s", file, got, want, text)
			}
			found += len(got)
			text[r.IntN(len(text))] = "(){}\"`;x\n"[r.IntN(9)]
		}
	}
	if found == 0 {
		t.Error("no text had an error")
	}
}
