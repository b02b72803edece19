package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A symbol is attached as its whole declaration, with its comment.
func TestTheLinesOfADeclaration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.go")
	if err := os.WriteFile(path, []byte("package a\n\n// F adds.\nfunc F() int {\n\treturn 1\n}\n\nvar x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, from, to int }{{4, 3, 6}, {8, 8, 8}, {5, 5, 5}} {
		if from, to := declarationLines(path, c.line, c.line); from != c.from || to != c.to {
			t.Errorf("line %d: %d-%d, want %d-%d", c.line, from, to, c.from, c.to)
		}
	}
	if from, to := declarationLines(filepath.Join(t.TempDir(), "none.go"), 2, 3); from != 2 || to != 3 {
		t.Errorf("%d-%d without a file", from, to)
	}
}
