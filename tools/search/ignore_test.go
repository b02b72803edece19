package search

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGlobalExcludes(t *testing.T) {
	for name, set := range map[string]func(home string) map[string]string{
		"default": func(string) map[string]string { return map[string]string{".config/git/ignore": "skip\n"} },
		"gitconfig": func(string) map[string]string {
			return map[string]string{".gitconfig": "[core]\n\texcludesFile = ~/mine\n", "mine": "skip\n"}
		},
		"config/git/config": func(home string) map[string]string {
			return map[string]string{".config/git/config": "[core]\nexcludesfile=" + home + "/mine\n", "mine": "skip\n"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			engines(t, func(t *testing.T, s *Searcher) {
				home := os.Getenv("HOME")
				for path, text := range set(home) {
					path = filepath.Join(home, path)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				root := tree(t, "skip", "x\n", "keep", "x\n")
				out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
				if err != nil || short(root, out) != "keep:1:x\n" {
					t.Errorf("%v %v", out, err)
				}
			})
		})
	}
}

func TestWhereASearchBegins(t *testing.T) {
	quiet(t)
	root := tree(t, ".git/", "", ".gitignore", "build\n*.o\n", "build/inner/.git/", "", "build/inner/.gitignore", "gen\n", "build/inner/src/gen/", "", "build/x/y/", "", "src/deep/", "")
	for dir, want := range map[string]bool{
		"": false, "src": false, "src/deep": false,
		"build": true, "build/x/y": true,
		"build/inner": false, "build/inner/src": false, // a repository of its own
		"build/inner/src/gen": true,
	} {
		if _, got := start(filepath.Join(root, dir)); got != want {
			t.Errorf("%q: ignored %v", dir, got)
		}
	}
}

func TestIgnoreLines(t *testing.T) {
	for _, c := range []struct {
		lines, path string
		dir         bool
		want        int
	}{
		{"a", "x/a", false, 1}, {"a", "ab", false, 0}, {"/a", "a", false, 1}, {"/a", "x/a", false, 0},
		{"a/", "a", false, 0}, {"a/", "a", true, 1}, {"x/a", "x/a", false, 1}, {"x/a", "y/x/a", false, 0},
		{"a/**", "a/b/c", false, 1}, {"a/**", "a", true, 0}, {"**/a", "a", false, 1}, {"a/**/b", "a/b", false, 1}, {"a/**/b", "a/x/y/b", false, 1},
		{"*.o\n!b.o", "b.o", false, -1}, {"!b.o\n*.o", "b.o", false, 1}, {"# c", "# c", false, 0}, {`\#c`, "#c", false, 1}, {`\!c`, "!c", false, 1},
		{"a  ", "a", false, 1}, {`a\ `, "a ", false, 1}, {"a\r", "a", false, 1}, {"", "a", false, 0}, {"/", "a", true, 0},
		{"\xef\xbb\xbfa", "a", false, 1}, {"[", "[", false, 0}, {"*.{a,b}", "x.b", false, 1}, {"a*b?c", "aXXbYc", false, 1}, {"a*b", "a/b", false, 0},
		{"[a-c]x", "bx", false, 1}, {"[!a]x", "ax", false, 0}, {"[]]x", "]x", false, 1}, {".*", ".git2", false, 1}, {"*", "a/b", false, 1},
	} {
		got := 0
		if rs := parseIgnore([]byte(c.lines)); rs != nil {
			got = rs.match(c.path, filepath.Base(c.path), c.dir)
		}
		if got != c.want {
			t.Errorf("%q judges %q: %d, want %d", c.lines, c.path, got, c.want)
		}
	}
}
