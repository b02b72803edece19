package search

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// tree writes files; a name ending in / is a folder, a text beginning with "-> " a symbolic link. The files' times
// follow the order of the names given, the last one newest.
func tree(t testing.TB, files ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(root, filepath.FromSlash(files[i]))
		dir := filepath.Dir(path)
		if strings.HasSuffix(files[i], "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if to, ok := strings.CutPrefix(files[i+1], "-> "); ok {
			if err := os.Symlink(to, path); err != nil {
				t.Skip("no symbolic links here:", err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
		at := old.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// engines runs a test on both engines. The person's own global excludes stay out of it.
func engines(t *testing.T, test func(t *testing.T, s *Searcher)) {
	quiet(t)
	t.Run("go", func(t *testing.T) { test(t, New(Options{Ripgrep: "off"})) })
	t.Run("ripgrep", func(t *testing.T) {
		rg, err := exec.LookPath("rg")
		if err != nil {
			t.Skip("ripgrep is not installed")
		}
		test(t, New(Options{Ripgrep: rg}))
	})
}

func quiet(t testing.TB) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
}

// short is a result on one line a match: path:line:text.
func short(root string, out Lines) string {
	var b strings.Builder
	for _, m := range out.Matches {
		rel, _ := filepath.Rel(root, m.Path)
		fmt.Fprintf(&b, "%s:%d:%s\n", filepath.ToSlash(rel), m.Line, m.Text)
	}
	if out.More {
		b.WriteString("more\n")
	}
	if out.Partial {
		b.WriteString("partial\n")
	}
	return b.String()
}

var grepScenarios = []struct {
	name  string
	files []string
	q     GrepQuery
	sub   string // Root below the tree
	want  string
}{
	{name: "newest file first, lines in order", files: []string{"old", "x\n", "mid", "x1\nb\nx2\n", "new", "a\nx\n"},
		q: GrepQuery{Pattern: "x"}, want: "new:2:x\nmid:1:x1\nmid:3:x2\nold:1:x\n"},
	{name: "no match", files: []string{"a", "b\n"}, q: GrepQuery{Pattern: "zzz"}},
	{name: "exactly the limit is not more", files: []string{"a", "x\nx\n", "b", "x\n"}, q: GrepQuery{Pattern: "x", Limit: 3}, want: "b:1:x\na:1:x\na:2:x\n"},
	{name: "one more than the limit", files: []string{"a", "x\nx\n", "b", "x\n"}, q: GrepQuery{Pattern: "x", Limit: 2}, want: "b:1:x\na:1:x\nmore\n"},
	{name: "more in another file", files: []string{"a", "x\n", "b", "x\n"}, q: GrepQuery{Pattern: "x", Limit: 1}, want: "b:1:x\nmore\n"},
	{name: "hidden yes, .git never", files: []string{".git/config", "x\n", "sub/.git", "gitdir: x\n", ".github/w.yml", "x\n", ".env.example", "x\n"},
		q: GrepQuery{Pattern: "x"}, want: ".env.example:1:x\n.github/w.yml:1:x\n"},
	{name: ".gitignore counts without a repository too", files: []string{".gitignore", "*.log\nbuild/\n", "a.log", "x\n", "build/b", "x\n", "c", "x\n"},
		q: GrepQuery{Pattern: "x"}, want: "c:1:x\n"},
	{name: "nested, negated, anchored", files: []string{".git/", "", ".gitignore", "*.log\n/top\n", "top", "x\n", "s/top", "x\n", "s/.gitignore", "!keep.log\n", "s/keep.log", "x\n", "s/b.log", "x\n"},
		q: GrepQuery{Pattern: "x"}, want: "s/keep.log:1:x\ns/top:1:x\n"},
	{name: ".ignore beats .gitignore, .rgignore beats both", files: []string{".gitignore", "a\nb\nc\n", ".ignore", "!a\n!b\n", ".rgignore", "b\n", "a", "x\n", "b", "x\n", "c", "x\n"},
		q: GrepQuery{Pattern: "x"}, want: "a:1:x\n"},
	{name: ".git/info/exclude", files: []string{".git/info/exclude", "secret\n", "secret", "x\n", "open", "x\n"}, q: GrepQuery{Pattern: "x"}, want: "open:1:x\n"},
	{name: "an inner repository does not inherit .gitignore but .ignore", files: []string{".git/", "", ".gitignore", "a\n", ".ignore", "b\n", "in/.git/", "", "in/a", "x\n", "in/b", "x\n"},
		q: GrepQuery{Pattern: "x"}, want: "in/a:1:x\n"},
	{name: "a file in an ignored folder cannot be brought back", files: []string{".gitignore", "/build/\n!build/keep\n", "build/keep", "x\n"}, q: GrepQuery{Pattern: "x"}},
	{name: "parents' ignore files count", files: []string{".git/", "", ".gitignore", "*.log\n/s/gen/\n", "s/a.log", "x\n", "s/gen/b", "x\n", "s/c", "x\n"},
		sub: "s", q: GrepQuery{Pattern: "x"}, want: "c:1:x\n"},
	{name: "searching in an ignored folder shows it", files: []string{".git/", "", ".gitignore", "*.js\ndist/\n", "dist/a.js", "x\n", "dist/sub/b.js", "x\n", "dist/.gitignore", "sub\n"},
		sub: "dist", q: GrepQuery{Pattern: "x"}, want: "a.js:1:x\n"},
	{name: "symbolic links are not followed", files: []string{"real/a", "x\n", "link", "-> real", "file", "-> real/a"}, q: GrepQuery{Pattern: "x"}, want: "real/a:1:x\n"},
	{name: "path is a file, even an ignored one", files: []string{".gitignore", "a.txt\n", "a.txt", "x\n", "b.txt", "x\n"}, sub: "a.txt", q: GrepQuery{Pattern: "x"}, want: ".:1:x\n"},
	{name: "include with braces", files: []string{"a.ts", "x\n", "b.tsx", "x\n", "c.js", "x\n", "d/e.ts", "x\n"}, q: GrepQuery{Pattern: "x", Include: "*.{ts,tsx}"}, want: "d/e.ts:1:x\nb.tsx:1:x\na.ts:1:x\n"},
	{name: "include with folders is anchored", files: []string{"src/a.ts", "x\n", "src/d/b.ts", "x\n", "t/src/c.ts", "x\n"}, q: GrepQuery{Pattern: "x", Include: "src/**/*.ts"}, want: "src/d/b.ts:1:x\nsrc/a.ts:1:x\n"},
	{name: "include that excludes", files: []string{"a.ts", "x\n", "a.test.ts", "x\n"}, q: GrepQuery{Pattern: "x", Include: "!*.test.ts"}, want: "a.ts:1:x\n"},
	{name: "include does not bring back ignored files", files: []string{".gitignore", "gen.ts\nnode_modules/\n", "gen.ts", "x\n", "node_modules/m/a.ts", "x\n", "a.ts", "x\n"}, q: GrepQuery{Pattern: "x", Include: "*.ts"}, want: "a.ts:1:x\n"},
	{name: "include does bring in hidden files", files: []string{".a.ts", "x\n", ".h/b.ts", "x\n"}, q: GrepQuery{Pattern: "x", Include: "**/*.ts"}, want: ".h/b.ts:1:x\n.a.ts:1:x\n"},
	{name: "binary files are left out", files: []string{"bin", "x\n\x00\nx\n", "text", "x\n"}, q: GrepQuery{Pattern: "x"}, want: "text:1:x\n"},
	{name: "a match that is no UTF-8", files: []string{"latin", "caf\xe9 x\n"}, q: GrepQuery{Pattern: "x"}, want: "latin:1:caf\xe9 x\n"},
	{name: "UTF-16 with a mark", files: []string{"le", "\xff\xfea\x00\n\x00x\x00\xe9\x00\n\x00", "be", "\xfe\xff\x00x\x00\n"}, q: GrepQuery{Pattern: "x"}, want: "be:1:x\nle:2:xé\n"},
	{name: "UTF-8 with a mark", files: []string{"bom", "\xef\xbb\xbfpackage a\n"}, q: GrepQuery{Pattern: "^package"}, want: "bom:1:package a\n"},
	{name: "CRLF", files: []string{"dos", "a\r\nx b\r\n"}, q: GrepQuery{Pattern: "x"}, want: "dos:2:x b\n"},
	{name: "$ holds before CRLF too", files: []string{"dos", "a;\r\n\r\nb; \r\n"}, q: GrepQuery{Pattern: ";$|^$"}, want: "dos:1:a;\ndos:2:\n"},
	{name: "\\r is found where it is asked for", files: []string{"dos", "a\r\nb\n"}, q: GrepQuery{Pattern: `\r$`}, want: "dos:1:a\n"},
	{name: "no final newline", files: []string{"a", "b\nx"}, q: GrepQuery{Pattern: "x$"}, want: "a:2:x\n"},
	{name: "empty lines", files: []string{"a", "b\n\nc\n", "empty", ""}, q: GrepQuery{Pattern: "^$"}, want: "a:2:\n"},
	{name: "a line of 70,000 bytes, match in front", files: []string{"a", "x" + strings.Repeat("y", 70000) + "\nx\n"}, q: GrepQuery{Pattern: "x"}, want: "a:1:x" + strings.Repeat("y", 1999) + "...\na:2:x\n"},
	{name: "a line of 70,000 bytes, match far behind", files: []string{"a", strings.Repeat("y", 70000) + "x\n"}, q: GrepQuery{Pattern: "x"}, want: "a:1:..." + strings.Repeat("y", 500) + "x\n"},
	{name: "cut between characters", files: []string{"a", "x" + strings.Repeat("é", 3000) + "\n"}, q: GrepQuery{Pattern: "x"}, want: "a:1:x" + strings.Repeat("é", 1999) + "...\n"},
	{name: "2,000 characters are not cut", files: []string{"a", "x" + strings.Repeat("é", 1999) + "\n"}, q: GrepQuery{Pattern: "x"}, want: "a:1:x" + strings.Repeat("é", 1999) + "\n"},
	{name: "names with blanks, quotes, umlauts and a leading dash", files: []string{"a b/ü'\"c", "x\n", "-e", "x\n"}, q: GrepQuery{Pattern: "x"}, want: "-e:1:x\na b/ü'\"c:1:x\n"},
	{name: "a pattern with a leading dash", files: []string{"a", "--flag\n"}, q: GrepQuery{Pattern: "--flag"}, want: "a:1:--flag\n"},
	{name: "a brace that counts nothing", files: []string{"a", "type T interface{}\nfunc f() {\n"}, q: GrepQuery{Pattern: `interface{}|func \w+\(\) {`}, want: "a:1:type T interface{}\na:2:func f() {\n"},
	{name: "needless escapes", files: []string{"a", "a/b \"c\" <d>\n"}, q: GrepQuery{Pattern: `a\/b \"c\" \<d\>`}, want: "a:1:a/b \"c\" <d>\n"},
	{name: "counted repetition", files: []string{"a", "aaa\naa\n"}, q: GrepQuery{Pattern: `^a{3}$`}, want: "a:1:aaa\n"},
	{name: "classes do not cross lines", files: []string{"a", "x\ny\n"}, q: GrepQuery{Pattern: `x\s*y|x[^z]y|(?s)x.y`}},
	{name: "Unicode classes", files: []string{"a", "é1\n"}, q: GrepQuery{Pattern: `^\w\d$`}, want: "a:1:é1\n"},
	{name: "case folded", files: []string{"a", "HELLO Kay\nhello\n"}, q: GrepQuery{Pattern: `(?i)hello kay`}, want: "a:1:HELLO Kay\n"},
	{name: "alternatives", files: []string{"a", "one\ntwo\nthree\n"}, q: GrepQuery{Pattern: `one|three`}, want: "a:1:one\na:3:three\n"},
	{name: "a group with ^ and $", files: []string{"a", "import x\n import y\n"}, q: GrepQuery{Pattern: `^(import) .$`}, want: "a:1:import x\n"},
	{name: "word boundary", files: []string{"a", "cat\nconcat\n"}, q: GrepQuery{Pattern: `\bcat\b`}, want: "a:1:cat\n"},
	{name: "everything matches", files: []string{"a", "b\n\nc"}, q: GrepQuery{Pattern: `.*`}, want: "a:1:b\na:2:\na:3:c\n"},
}

func TestGrep(t *testing.T) {
	engines(t, func(t *testing.T, s *Searcher) {
		for _, c := range grepScenarios {
			t.Run(c.name, func(t *testing.T) {
				root := filepath.Join(tree(t, c.files...), c.sub)
				c.q.Root = root
				out, err := s.Grep(t.Context(), c.q)
				if err != nil {
					t.Fatal(err)
				}
				if got := short(root, out); got != c.want {
					t.Errorf("got\n%swant\n%s", got, c.want)
				}
			})
		}
	})
}

func TestGrepErrors(t *testing.T) {
	engines(t, func(t *testing.T, s *Searcher) {
		root := tree(t, "config.yaml", "x\n", "bin", "\x00x\n")
		for _, c := range []struct{ name, path, pattern, include, want string }{
			{"bad group", "", "(a", "", "regex parse error"},
			{"bad class", "", "[a", "", "regex parse error"},
			{"nothing to repeat", "", "*a", "", "regex parse error"},
			{"looking around", "", "(?=x)", "", "regex parse error"},
			{"a line break", "", `x\ny`, "", "contains a line break"},
			{"no pattern", "", "", "", "pattern is required"},
			{"bad include", "", "x", "*.{ts", "unclosed alternate group"},
			{"missing", "confg.yml", "x", "", "Search path not found: " + filepath.Join(root, "confg.yml")},
			{"a binary file by name", "bin", "x", "", "binary file, not searched"},
		} {
			_, err := s.Grep(t.Context(), GrepQuery{Root: filepath.Join(root, c.path), Pattern: c.pattern, Include: c.include})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", c.name, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "pcre2") {
				t.Errorf("%s: recommends what nobody can do: %v", c.name, err)
			}
		}
	})
}

func TestGrepSearchesBuffersAsThePersonSeesThem(t *testing.T) {
	engines(t, func(t *testing.T, s *Searcher) {
		root := tree(t, ".gitignore", "ignored\n", "gone", "x on disk\n", "kept", "x\n", "ignored", "", "deep/a.go", "old\n")
		at := func(name, text string) Buffer { return Buffer{filepath.Join(root, name), text} }
		q := GrepQuery{Root: root, Pattern: "x", Buffers: []Buffer{at("gone", "nothing\n"), at("ignored", "x\n"), at("deep/a.go", "new\nx now\n"), at("deep/new.go", "x\n"), {Path: filepath.Join(filepath.Dir(root), "outside"), Text: "x\n"}}}
		out, err := s.Grep(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got := short(root, out)
		for _, want := range []string{"deep/a.go:2:x now\n", "deep/new.go:1:x\n", "kept:1:x\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Count(got, "\n") != 3 || !strings.HasSuffix(got, "kept:1:x\n") {
			t.Errorf("got\n%s", got)
		}
		q.Root = filepath.Join(root, "deep/new.go") // only in the editor
		if out, err = s.Grep(t.Context(), q); err != nil || short(root, out) != "deep/new.go:1:x\n" {
			t.Errorf("%v %v", out, err)
		}
		q.Root, q.Limit, q.Buffers = root, 2, []Buffer{at("kept", "x\nx\nx\n")}
		if out, err = s.Grep(t.Context(), q); err != nil || short(root, out) != "kept:1:x\nkept:2:x\nmore\n" {
			t.Errorf("%v %v", out, err)
		}
	})
}

func TestGrepShowsOnlyWhatMayBeSeen(t *testing.T) {
	engines(t, func(t *testing.T, s *Searcher) {
		root := tree(t, ".env", "x\n", "a", "x\n", "b", "x\n")
		out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x", Limit: 2, Show: func(p string) bool { return filepath.Base(p) != ".env" },
			Buffers: []Buffer{{filepath.Join(root, ".env"), "x\n"}}})
		if err != nil || short(root, out) != "b:1:x\na:1:x\n" {
			t.Errorf("%v %v", out, err)
		}
	})
}

func TestGrepTellsWhatItCouldNotRead(t *testing.T) {
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("needs files that cannot be read: not for root, not on Windows")
	}
	engines(t, func(t *testing.T, s *Searcher) {
		root := tree(t, "secret/a", "x\n", "file", "x\n", "b", "x\n")
		for _, p := range []string{"secret", "file"} {
			if err := os.Chmod(filepath.Join(root, p), 0); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(root, "secret"), 0o755) })
		out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		if err != nil || short(root, out) != "b:1:x\n" || out.Unread.Count != 2 || !strings.Contains(strings.Join(out.Unread.First, "\n"), root) {
			t.Errorf("%+v %v", out, err)
		}
	})
}

func TestGrepLeavesPrivateFoldersAlone(t *testing.T) {
	rg, _ := exec.LookPath("rg")
	for _, program := range []string{"off", rg} {
		quiet(t)
		root := tree(t, "Library/a", "x\n", "Doc [1]/b", "x\n", "work/Library/c", "x\n")
		s := New(Options{Ripgrep: program, Private: []string{filepath.Join(root, "Library"), filepath.Join(root, "Doc [1]")}})
		out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		if err != nil || short(root, out) != "work/Library/c:1:x\n" {
			t.Errorf("%s: %v %v", program, out, err)
		}
		inside := filepath.Join(root, "Library")
		if out, err = s.Grep(t.Context(), GrepQuery{Root: inside, Pattern: "x"}); err != nil || short(inside, out) != "a:1:x\n" {
			t.Errorf("%s: asked for by name: %v %v", program, out, err)
		}
	}
	if len(privateFolders("linux")) != 0 || len(privateFolders("darwin")) == 0 {
		t.Error("only macOS has them")
	}
}

func TestGrepSkipsFIFOs(t *testing.T) {
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip("no mkfifo")
	}
	engines(t, func(t *testing.T, s *Searcher) {
		root := tree(t, "a", "x\n")
		pipe := filepath.Join(root, "pipe")
		if err := exec.Command(mkfifo, pipe).Run(); err != nil {
			t.Fatal(err)
		}
		out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		if err != nil || short(root, out) != "a:1:x\n" {
			t.Errorf("%v %v", out, err)
		}
		if _, err := s.Grep(t.Context(), GrepQuery{Root: pipe, Pattern: "x"}); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Error(err)
		}
	})
}
