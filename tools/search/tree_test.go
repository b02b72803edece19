package search

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestTree(t *testing.T) {
	quiet(t)
	root := tree(t, ".gitignore", "*.log\n", "z.go", "", "a/b/c.go", "", "a/d.go", "", "node_modules/m/x", "", "a/vendor/y", "", "e.log", "", "dist", "a file", "empty/", "", ".git/x", "", "docs/x.md", "", "secret", "")
	s := New(Options{})
	show := func(p string) bool { return filepath.Base(p) != "secret" }
	got, err := s.Tree(t.Context(), TreeQuery{Root: root, Ignore: []string{"docs/"}, Show: show})
	want := root + "/\n  a/\n    b/\n      c.go\n    d.go\n  empty/\n  .gitignore\n  dist\n  z.go\n"
	if err != nil || got.Root.String() != want || got.More || got.Entries != 8 {
		t.Errorf("%v, %d\n%s", err, got.Entries, got.Root)
	}
	got, _ = s.Tree(t.Context(), TreeQuery{Root: root, Limit: 8, Ignore: []string{"docs/"}, Show: show})
	if got.More {
		t.Error("exactly the limit is not more")
	}
	got, _ = s.Tree(t.Context(), TreeQuery{Root: root, Limit: 6, Ignore: []string{"docs/"}, Show: show})
	if want := root + "/\n  a/\n    b/\n  empty/\n  .gitignore\n  dist\n  z.go\n"; !got.More || got.Root.String() != want {
		t.Errorf("a limit must cut the deepest:\n%s", got.Root)
	}
	got, _ = s.Tree(t.Context(), TreeQuery{Root: filepath.Join(root, "node_modules")})
	if !strings.HasSuffix(got.Root.String(), "node_modules/\n  m/\n    x\n") {
		t.Errorf("asked for by name:\n%s", got.Root)
	}
	for path, want := range map[string]string{"z.go": "must be a directory", "zz": "not found"} {
		if _, err := s.Tree(t.Context(), TreeQuery{Root: filepath.Join(root, path)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	var many []string
	for i := range 150 {
		many = append(many, fmt.Sprintf("f%03d", i), "")
	}
	if got, _ = s.Tree(t.Context(), TreeQuery{Root: tree(t, many...)}); got.Entries != 100 || !got.More {
		t.Errorf("%d", got.Entries)
	}
}

func TestANameCannotWriteLinesOfItsOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names")
	}
	root := tree(t, "a\n<", "", "b\u2028c/d", "", "e\x1b[2J", "", "über ☃", "")
	got, err := New(Options{}).Tree(t.Context(), TreeQuery{Root: root})
	if want := root + "/\n  \"b\\u2028c/\"\n    d\n  \"a\\n<\"\n  \"e\\x1b[2J\"\n  über ☃\n"; err != nil || got.Root.String() != want {
		t.Errorf("%v\n%q\n%q", err, got.Root.String(), want)
	}
}
