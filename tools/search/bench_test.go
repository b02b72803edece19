package search

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkFiftyThousandFiles compares a search with plain ripgrep (the program alone, same flags, output thrown
// away) on a generated tree: 1,000 folders, 50,000 files of 0.5 to 8 KB, a rare word in ten of them.
//
//	go test -run '^$' -bench FiftyThousand -benchtime 20x ./tools/search/
func BenchmarkFiftyThousandFiles(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("ripgrep is not installed")
	}
	quiet(b)
	root := largeTree(b)
	plain := func(b *testing.B, args ...string) {
		for b.Loop() {
			cmd := exec.Command(rg, append([]string{"--no-config", "--hidden", "--no-require-git", "--glob=!.git", "--color=never"}, args...)...)
			cmd.Dir = root
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, p := range []struct{ name, pattern string }{
		{"rare word", "rare_word_here"}, {"rare expression", `rare_\w+_here$`}, {"rare, folded", "(?i)RARE_word_HERE"}, {"common word", "context"}, {"no literal", `[a-z]+_[a-z]+_`},
	} {
		b.Run(p.name+"/plain rg", func(b *testing.B) { plain(b, "--json", "--regexp="+p.pattern, "./") })
		for _, s := range []*Searcher{New(Options{Ripgrep: rg}), New(Options{Ripgrep: "off"})} {
			b.Run(p.name+"/"+filepath.Base(s.Engine()), func(b *testing.B) {
				for b.Loop() {
					if out, err := s.Grep(b.Context(), GrepQuery{Root: root, Pattern: p.pattern}); err != nil || len(out.Matches) == 0 {
						b.Fatal(out, err)
					}
				}
			})
		}
	}
	for _, p := range []struct{ name, pattern string }{{"rare names", "rare*"}, {"half of the names", "*.go"}} {
		b.Run(p.name+"/plain rg", func(b *testing.B) { plain(b, "--files", "--glob="+p.pattern) })
		b.Run(p.name+"/go", func(b *testing.B) {
			s := New(Options{})
			for b.Loop() {
				if out, err := s.Glob(b.Context(), GlobQuery{Root: root, Pattern: p.pattern, Limit: 100}); err != nil || len(out.Paths) == 0 {
					b.Fatal(out, err)
				}
			}
		})
	}
}

func largeTree(b *testing.B) string {
	root := b.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("func return value index buffer context error package import string count server client")
	var text strings.Builder
	for text.Len() < 32<<10 {
		for range 8 {
			text.WriteString(pick(r, words...) + " ")
		}
		text.WriteByte('\n')
	}
	body := text.String()
	for d := range 1000 {
		dir := filepath.Join(root, fmt.Sprintf("d%d/s%d/t%d", d%20, d/20%10, d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for i := range 50 {
			from := r.IntN(20 << 10)
			t := body[from : from+500+r.IntN(7500)]
			name := fmt.Sprintf("f%d.%s", i, []string{"go", "txt"}[i%2])
			if (d*50+i)%5000 == 7 {
				t += "\nrare_word_here\n"
				name = "rare" + name
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(t), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.log\nnode_modules/\n/dist\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	return root
}
