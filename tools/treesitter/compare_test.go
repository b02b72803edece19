//go:build cgo

package treesitter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/bash"
	"github.com/smacker/go-tree-sitter/c"
	"github.com/smacker/go-tree-sitter/cpp"
	"github.com/smacker/go-tree-sitter/css"
	"github.com/smacker/go-tree-sitter/golang"
	"github.com/smacker/go-tree-sitter/java"
	"github.com/smacker/go-tree-sitter/javascript"
	"github.com/smacker/go-tree-sitter/lua"
	"github.com/smacker/go-tree-sitter/php"
	"github.com/smacker/go-tree-sitter/python"
	"github.com/smacker/go-tree-sitter/ruby"
	"github.com/smacker/go-tree-sitter/rust"
	"github.com/smacker/go-tree-sitter/typescript/tsx"
	"github.com/smacker/go-tree-sitter/typescript/typescript"
)

var linked = map[string]*sitter.Language{
	"bash": bash.GetLanguage(), "c": c.GetLanguage(), "cpp": cpp.GetLanguage(), "css": css.GetLanguage(), "go": golang.GetLanguage(),
	"java": java.GetLanguage(), "javascript": javascript.GetLanguage(), "lua": lua.GetLanguage(), "php": php.GetLanguage(),
	"python": python.GetLanguage(), "ruby": ruby.GetLanguage(), "rust": rust.GetLanguage(), "tsx": tsx.GetLanguage(),
	"typescript": typescript.GetLanguage(),
}

// tree writes the tree of a text. "" is a parse that takes too long.
func tree(t testing.TB, l *sitter.Language, lang, text string) string {
	p := sitter.NewParser()
	defer p.Close()
	p.SetLanguage(l)
	if lang == "lua" { // its scanner keeps its state for the next text; after a string it has none
		reset, err := p.ParseCtx(context.Background(), nil, []byte(`x = ""`))
		if err != nil {
			t.Fatal(err)
		}
		reset.Close()
	}
	p.SetOperationLimit(2_000_000)
	parsed, err := p.ParseCtx(context.Background(), nil, []byte(text))
	if err != nil || parsed == nil {
		return ""
	}
	defer parsed.Close()
	cursor := sitter.NewTreeCursor(parsed.RootNode())
	defer cursor.Close()
	var b strings.Builder
	var walk func(depth int)
	walk = func(depth int) {
		n := cursor.CurrentNode()
		field := ""
		if depth > 0 {
			field = cursor.CurrentFieldName()
		}
		line(&b, depth, n, field)
		if cursor.GoToFirstChild() {
			for {
				walk(depth + 1)
				if !cursor.GoToNextSibling() {
					break
				}
			}
			cursor.GoToParent()
		}
	}
	walk(0)
	return b.String()
}

func line(b *strings.Builder, depth int, n *sitter.Node, field string) {
	fmt.Fprintf(b, "%d %s %d %s [%d,%d) %v %v %v\n", depth, n.Type(), n.Symbol(), field, n.StartByte(), n.EndByte(), n.IsNamed(), n.HasError(), n.IsMissing())
}

// sameTree compares the tree of a text with the one that the same grammar finds with tables that are linked. A text that one of them finds too slow is not compared.
func sameTree(t testing.TB, lang, text string) (compared bool) {
	text = strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return 'x'
		}
		return r
	}, text)
	got, want := tree(t, Language(lang), lang, text), tree(t, linked[lang], lang, text)
	if got == "" || want == "" {
		return false
	}
	if got == want {
		return true
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			t.Errorf("%s: the trees differ at node %d: %q, the linked grammar has %q, in\n%s", lang, i, g[i:min(len(g), i+3)], w[min(len(w), i):min(len(w), i+3)], text)
			break
		}
	}
	return true
}

const marks = "(){}[]<>\"'`;:,.#$\\\n \tx0=*-/"

// change cuts pieces out of a text, repeats them elsewhere and replaces bytes, so that most texts have syntax errors: what the parser
// does about them is the larger part of it.
func change(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		if len(text) < 2 {
			break
		}
		i, k := r.IntN(len(text)), r.IntN(len(text))
		j := min(len(text), i+r.IntN(40))
		switch r.IntN(3) {
		case 0:
			text = text[:i] + text[j:]
		case 1:
			text = text[:k] + text[i:j] + text[k:]
		default:
			text = text[:i] + marks[r.IntN(len(marks)):][:1] + text[i+1:]
		}
	}
	return text
}

// extensions are the kinds of files in this repository that grammars are for.
var extensions = map[string]string{
	".c": "c", ".css": "css", ".go": "go", ".js": "javascript", ".lua": "lua", ".mjs": "javascript", ".sh": "bash", ".ts": "typescript",
}

// A packed grammar finds the trees that the linked one finds: of a sample of each language with what its scanner reads, and of files of this
// repository, as they are and changed at random. PILLION_TREES is a folder with more: go test ./tools/treesitter -run TestSameTrees with it.
func TestSameTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	variants := 150
	if testing.Short() {
		variants = 30
	}
	for lang := range linked {
		text, err := os.ReadFile(filepath.Join("testdata", "samples", lang+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		sample := string(text)
		if !sameTree(t, lang, sample) {
			t.Errorf("%s: the sample takes too long", lang)
		}
		lines := strings.SplitAfter(sample, "\n")
		for i := range lines {
			sameTree(t, lang, lines[i])
			sameTree(t, lang, strings.Join(lines[:i], ""))
			sameTree(t, lang, strings.TrimSpace(lines[i]))
		}
		for range variants {
			sameTree(t, lang, change(r, sample))
		}
	}
	root := "../.."
	if more := os.Getenv("PILLION_TREES"); more != "" {
		root = more
		for ext, lang := range map[string]string{".cc": "cpp", ".cpp": "cpp", ".h": "cpp", ".hpp": "cpp", ".java": "java", ".php": "php", ".py": "python", ".rb": "ruby", ".rs": "rust", ".tsx": "tsx"} {
			extensions[ext] = lang
		}
	}
	left := map[string]int{}
	for _, lang := range extensions {
		left[lang] = variants / 15
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == ".cache") {
			return filepath.SkipDir
		}
		lang := extensions[filepath.Ext(path)]
		if d.IsDir() || lang == "" || left[lang] == 0 && root == "../.." {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) > 30_000 || !d.Type().IsRegular() {
			return nil
		}
		left[lang]--
		files++
		sameTree(t, lang, string(data))
		for range 2 {
			sameTree(t, lang, change(r, string(data[:min(len(data), 5000)])))
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Fatal(files, "files", err)
	}
}

func FuzzSameTree(f *testing.F) {
	names := []string{"c", "cpp", "css", "go", "java", "javascript", "lua", "php", "python", "ruby", "rust", "tsx", "typescript", "bash"}
	for i, lang := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "samples", lang+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.SplitAfter(string(text), "\n") {
			f.Add(uint8(i), line)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, text string) {
		if len(text) > 2000 || strings.Contains(text, "\x00") { // the scanners do not end at some texts with NUL
			return
		}
		sameTree(t, names[int(i)%len(names)], text)
	})
}
