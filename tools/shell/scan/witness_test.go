//go:build cgo

package scan

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sitter "github.com/smacker/go-tree-sitter"

	"github.com/pillion-dev/pillion/tools/treesitter"
)

// The witness finds the names of commands that tree-sitter's own query finds: in a sample of all syntax, in its lines, and in random
// parts of it put together.
func TestTheWitnessFindsAllCommands(t *testing.T) {
	query, err := sitter.NewQuery([]byte("(command name: (command_name) @n)"), treesitter.Language("bash"))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	sample, err := os.ReadFile("../../treesitter/testdata/samples/bash.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"", "x", "a=$(b `c $(d)`) e <(f) >$(g)", strings.Repeat("echo $(", 300) + "x" + strings.Repeat(")", 300), string(sample)}
	texts = append(texts, strings.SplitAfter(string(sample), "\n")...)
	words := strings.FieldsFunc(string(sample), func(r rune) bool { return r == '\n' || r == ';' })
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var parts []string
		for range 1 + r.IntN(4) {
			parts = append(parts, words[r.IntN(len(words))])
		}
		texts = append(texts, strings.Join(parts, []string{"; ", "\n", " | ", " && "}[r.IntN(4)]))
	}
	compared, commands := 0, 0
	for _, text := range texts {
		got, why := witness(text, 5*time.Second)
		if why != "" {
			continue
		}
		p := sitter.NewParser()
		p.SetLanguage(treesitter.Language("bash"))
		tree, err := p.ParseCtx(context.Background(), nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		cursor := sitter.NewQueryCursor()
		cursor.Exec(query, tree.RootNode())
		var want []int
		for m, ok := cursor.NextMatch(); ok; m, ok = cursor.NextMatch() {
			for _, c := range m.Captures {
				want = append(want, int(c.Node.StartByte()))
			}
		}
		cursor.Close()
		tree.Close()
		p.Close()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("commands at %v, want %v, in %q", got, want, text)
		}
		compared, commands = compared+1, commands+len(want)
	}
	if compared < 300 || commands < 1000 {
		t.Errorf("%d texts with %d commands were compared", compared, commands)
	}
}
