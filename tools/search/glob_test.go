package search

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func names(root string, n Names) string {
	var out []string
	for _, p := range n.Paths {
		rel, _ := filepath.Rel(root, p)
		out = append(out, filepath.ToSlash(rel))
	}
	return strings.Join(out, " ")
}

func TestGlob(t *testing.T) {
	quiet(t)
	root := tree(t,
		".gitignore", "node_modules/\ndist\n*.log\n",
		".git/HEAD", "", "main.go", "", "a.log", "", "src/b.go", "", "src/deep/c.go", "", "src/deep/c_test.go", "", "src/d.ts", "", "src/e.tsx", "",
		".github/ci.yml", "", "node_modules/m/index.js", "", "dist/out.js", "", "dist/sub/more.js", "", "[odd]/x.go", "", "link.go", "-> main.go")
	s := New(Options{})
	for _, c := range []struct{ pattern, sub, want string }{
		{"*.go", "", "[odd]/x.go src/deep/c_test.go src/deep/c.go src/b.go main.go"},
		{"**/*.go", "", "[odd]/x.go src/deep/c_test.go src/deep/c.go src/b.go main.go"},
		{"/*.go", "", "main.go"},
		{"./main.go", "", "main.go"},
		{"/src/*.go", "", "src/b.go"},
		{"src/*.go", "", "src/b.go"},
		{"src/**", "", "src/e.tsx src/d.ts src/deep/c_test.go src/deep/c.go src/b.go"},
		{"src/", "", "src/e.tsx src/d.ts src/deep/c_test.go src/deep/c.go src/b.go"},
		{"src/**/*.go", "", "src/deep/c_test.go src/deep/c.go src/b.go"},
		{"**/deep/*", "", "src/deep/c_test.go src/deep/c.go"},
		{"*.{ts,tsx}", "", "src/e.tsx src/d.ts"},
		{"{src,lib}/**/[c-d]*", "", "src/d.ts src/deep/c_test.go src/deep/c.go"},
		{"c?test.go", "", "src/deep/c_test.go"},
		{"[!m]*.go", "", "[odd]/x.go src/deep/c_test.go src/deep/c.go src/b.go"},
		{"*.go", "src", "src/deep/c_test.go src/deep/c.go src/b.go"},
		{"../*.go", "src", "main.go"},
		{root + "/src/*.go", "", "src/b.go"},
		{"[[]odd]/*", "", "[odd]/x.go"},
		{"**/*.yml", "", ".github/ci.yml"},
		{"*", "", "[odd]/x.go .github/ci.yml src/e.tsx src/d.ts src/deep/c_test.go src/deep/c.go src/b.go main.go .gitignore"},
		{"**/*.js", "", ""}, // ignored folders stay closed …
		{"dist/**/*.js", "", "dist/sub/more.js dist/out.js"}, // … unless named
		{"node_modules/m/*.js", "", "node_modules/m/index.js"},
		{"*.js", "dist", "dist/sub/more.js dist/out.js"},
		{"*.log", "", ""},
		{".git/*", "", ""},
		{"missing/**", "", ""},
		{"!*.go", "src", "src/e.tsx src/d.ts"},
	} {
		dir, pattern := SplitPattern(filepath.Join(root, c.sub), c.pattern)
		got, err := s.Glob(t.Context(), GlobQuery{Root: dir, Pattern: pattern})
		if err != nil || names(root, got) != c.want || got.More {
			t.Errorf("%s in %q:\n got %s, %v\nwant %s", c.pattern, c.sub, names(root, got), err, c.want)
		}
	}
	for pattern, want := range map[string]string{"[": "unclosed character class", "{a": "unclosed alternate group", "a}": "unopened", "[z-a]": "invalid range", `a\`: "dangling", "": "pattern is required",
		strings.Repeat("{a,b}", 11): "more than 1024 patterns"} {
		if _, err := s.Glob(t.Context(), GlobQuery{Root: root, Pattern: pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	if _, err := s.Glob(t.Context(), GlobQuery{Root: filepath.Join(root, "srk"), Pattern: "*"}); err == nil || !strings.Contains(err.Error(), "Search path not found: "+filepath.Join(root, "srk")) {
		t.Error(err)
	}
	for pattern, want := range map[string]string{"src//etc/*": "src etc/*", "//etc/*": " etc/*", "/*.go": " /*.go", "src/deep/*.go": "src/deep /*.go", "src/[d]eep/c.go": "src [d]eep/c.go"} {
		dir, rest := SplitPattern(root, pattern)
		rel, _ := filepath.Rel(root, dir)
		if got := strings.TrimPrefix(rel, ".") + " " + rest; got != want {
			t.Errorf("%s is split into %q", pattern, got)
		}
		if again, _ := SplitPattern(dir, rest); again != dir {
			t.Errorf("%s: splitting twice leads on to %s", pattern, again)
		}
	}
	if _, err := s.Glob(t.Context(), GlobQuery{Root: filepath.Join(root, "main.go"), Pattern: "*"}); err == nil || !strings.Contains(err.Error(), "must be a directory") {
		t.Error(err)
	}
}

func TestGlobCountsHonestly(t *testing.T) {
	quiet(t)
	var files []string
	for i := range 100 {
		files = append(files, fmt.Sprintf("d/f%03d", i), "")
	}
	root := tree(t, files...)
	s := New(Options{})
	q := GlobQuery{Root: root, Pattern: "*", Limit: 100}
	if n, err := s.Glob(t.Context(), q); err != nil || len(n.Paths) != 100 || n.More || filepath.Base(n.Paths[0]) != "f099" {
		t.Errorf("%d, %v", len(n.Paths), err)
	}
	q.Limit = 99
	if n, _ := s.Glob(t.Context(), q); len(n.Paths) != 99 || !n.More {
		t.Errorf("%d, more %v", len(n.Paths), n.More)
	}
	q.Show = func(p string) bool { return strings.HasSuffix(p, "7") }
	if n, _ := s.Glob(t.Context(), q); len(n.Paths) != 10 || n.More {
		t.Errorf("hidden files were counted: %d", len(n.Paths))
	}
}

func TestManyFilesInOneFolder(t *testing.T) {
	quiet(t)
	var files []string
	for i := range 9000 { // more than two chunks, with the ignore file anywhere between
		files = append(files, fmt.Sprintf("f%d.%s", i, []string{"a", "b"}[i%2]), "")
	}
	root := tree(t, append(files, ".gitignore", "*.b\n")...)
	n, err := New(Options{}).Glob(t.Context(), GlobQuery{Root: root, Pattern: "f*", Limit: 5000})
	if err != nil || n.More || len(n.Paths) != 4500 {
		t.Errorf("%d, %v", len(n.Paths), err)
	}
}
