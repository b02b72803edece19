package search

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ignorePieces are what patterns of ignore files are made of here. Braces are left out: Git takes them as they are, ripgrep and Pillion as
// alternatives, because people write them so.
var ignorePieces = []string{"a", "b", "c", "ab", ".", "*", "*", "**", "***", "?", "/", "/", "[ab]", "[!a]", "[^a]", "[[:alpha:]]", "[[:space:]b]", "[![:digit:]]", "é", "日",
	"[é]", "[à-ü]", "[!é]", "?b", `\a`, `\*`, `\?`, `\[`, `\ `, "\t", " ", "!", "#", "]", "[a", "[]a]", "[a-]", "[--0]", "[[:foo:]]", `[\a]`, `[\]a]`, `\\`, `\`, "[a-c]", "[c-a]", "[]", "[!]", "-", "/**", "**/", "/**/", "[a/b]", "[/]"}

// ignorePaths are below every folder with an ignore file; folders end in a slash.
var ignorePaths = []string{"a", "b", "c", "ab", "abc", "a.c", ".a", "é", "aé", "日", "日b", "a ", " ", "!a", "#a", "[a", "]", "]a", "*", "a*", "?", `\`, `\a`, "a\tb", "a\t", "-", "0", "/a",
	"d/", "d/a", "d/b", "d/ab", "d/e/", "d/e/a", "d/e/b", "d/e/é", "a b/", "a b/c", "é2/", "é2/a", "a1/", "a1/b/", "a1/b/c", ".d/", ".d/a", "b1/", "b1/a/", "b1/a/b"}

// Git itself says what an ignore file hides; PILLION_SEED draws other patterns.
func TestIgnoreFilesAsGitReadsThem(t *testing.T) {
	quiet(t)
	git, err := exec.LookPath("git")
	if runtime.GOOS != "linux" {
		t.Skip("names of files are bytes on Linux only")
	}
	if err != nil {
		t.Skip("git is not installed")
	}
	seed := uint64(18)
	_, _ = fmt.Sscan(os.Getenv("PILLION_SEED"), &seed)
	r := rand.New(rand.NewPCG(seed, 7))
	root := t.TempDir()
	run := func(stdin string, args ...string) []byte {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) { // 1: nothing is ignored
			t.Fatalf("git %q: %v\n%s", args, err, stderr.String())
		}
		return out
	}
	run("", "init", "-q")
	type place struct {
		dir, pattern string
	}
	var places []place
	var asked strings.Builder
	for i := range 250 {
		var lines []string
		for range 1 + r.IntN(2) {
			var line strings.Builder
			for range 1 + r.IntN(5) {
				line.WriteString(ignorePieces[r.IntN(len(ignorePieces))])
			}
			lines = append(lines, line.String())
		}
		p := place{dir: fmt.Sprintf("p%d", i), pattern: strings.Join(lines, "\n")}
		places = append(places, p)
		for _, path := range ignorePaths {
			full := filepath.Join(root, p.dir, path)
			if strings.HasSuffix(path, "/") {
				if err := os.MkdirAll(full, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			asked.WriteString(filepath.Join(p.dir, path) + "\x00")
		}
		if err := os.WriteFile(filepath.Join(root, p.dir, ".gitignore"), []byte(p.pattern+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hidden := map[string]bool{}
	for path := range strings.SplitSeq(string(run(asked.String(), "check-ignore", "--no-index", "--stdin", "-z")), "\x00") {
		hidden[path] = true
	}
	ours := Ignored(root)
	for _, p := range places {
		var differ []string
		for _, path := range ignorePaths {
			rel := filepath.Join(p.dir, path)
			if got := ours(filepath.Join(root, rel), strings.HasSuffix(path, "/")); got != hidden[rel] {
				differ = append(differ, fmt.Sprintf("%q: git %v, here %v", path, hidden[rel], got))
			}
		}
		if differ != nil {
			t.Errorf("%q\n\t%s", p.pattern, strings.Join(differ[:min(len(differ), 4)], "\n\t"))
		}
	}
}
