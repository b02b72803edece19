//go:build cgo

package symbol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A change that the lines around it prove harmless is harmless for a parse of the whole text too: changed bytes, words and lines in long
// files of this repository. The converse need not hold; most changes in one function must be proved so, else it saves nothing.
func TestPiecesAreProofForTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	bits := []string{"x", "{", "}", "(", ")", ";", ",", "\n", "\"", "`", "/*", "*/", "//", "#", "else {\n", "return", "end ", ":", "\\"}
	asked, proved := 0, 0
	for _, pattern := range []string{"*.go", "../../extension/vscode/src/*/*.ts", "../custom/host/*.mjs"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			old := string(text) + strings.Repeat("// filler\n", (longText+2*len(text))/10)
			if broken, ok := Broken(file, old); broken || !ok {
				continue
			}
			for i := range 9 {
				changes := 1
				if i >= 6 { // several changes of one call; random ones are seldom all proved
					changes = 2
				}
				new, at, gone := old, 0, 0
				for range changes {
					at = r.IntN(len(text))
					gone = min(r.IntN(4)*r.IntN(12), len(text)-at)
					new = new[:at] + bits[r.IntN(len(bits))] + new[at+gone:]
				}
				proof := stillParses(file, old, new)
				if changes == 1 {
					asked++
				}
				if !proof {
					continue
				}
				if changes == 1 {
					proved++
				}
				if broken, _ := Broken(file, new); broken {
					t.Errorf("%s: the change at %d is not harmless: %q became %q", file, at, old[max(0, at-40):at+gone+40], new[max(0, at-40):at+40])
				}
			}
		}
	}
	if proved < asked/10 {
		t.Errorf("only %d of %d changes were proved harmless", proved, asked)
	}

	long := goText(3000)
	if !stillParses("a.go", long, strings.Replace(long, "value + 1500", "value + 15000", 1)) {
		t.Error("an edit within a function was not proved harmless")
	}
	if line, broken := Breaks("a.go", long, strings.Replace(long, "value + 1500", "value + (1500", 1)); !broken || line < 4501 || line > 4503 {
		t.Error("a bracket too many: line", line, broken)
	}
	apart := strings.NewReplacer("value + 500\n", "value + 5000\n", "value + 2500\n", "value + 25000\n").Replace(long)
	if !stillParses("a.go", long, apart) {
		t.Error("two edits far apart were not proved harmless")
	}
	if line, broken := Breaks("a.go", long, strings.Replace(apart, "value + 5000", "value + (5000", 1)); !broken || line < 1501 || line > 1503 {
		t.Error("a bracket too many in the first of two edits: line", line, broken)
	}
	branch := "a()\nif (a) {\n  b()\n}\nelse {\n  c()\n}\n" + strings.Repeat("function f() {\n  d()\n}\n", longText/20)
	if _, broken := Breaks("a.js", branch, strings.Replace(branch, "if (a) {\n  b()\n}\n", "b()\n", 1)); !broken {
		t.Error("an else without its if is no error")
	}
}

// goText is a text of n short functions.
func goText(n int) string {
	var s strings.Builder
	s.WriteString("package p\n")
	for i := range n {
		fmt.Fprintf(&s, "func f%d(value int) int {\n\treturn value + %d\n}\n", i, i)
	}
	return s.String()
}
