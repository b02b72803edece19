package search

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What finds nothing as ripgrep reads it is found as GNU grep reads it: the real grep is the oracle.
func TestReadAsGNUGrep(t *testing.T) {
	dir := t.TempDir()
	text := "the word here\nthewordhere\nxx\nxxxxx\nstart of it\nrestart\na b\n"
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	fixed := []string{`\<word\>`, `\<the`, `here\>`, `^x{,3}$`, `\bword\b`, `[\<]`, `\<start\>`, `(w|x){,2}ord`}
	named := len(fixed)
	r := rand.New(rand.NewPCG(1, 1))
	parts := []string{`\<`, `\>`, "word", "the", "x{,2}", "d{,3}", " ", "(start|here)", ".", "a", "^", "$"}
	for range 200 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		fixed = append(fixed, b.String())
	}
	for _, rg := range []string{"", "off"} {
		s := New(Options{Ripgrep: rg})
		for i, pattern := range fixed {
			out, err := exec.Command("grep", "-nE", "--", pattern, filepath.Join(dir, "f")).Output()
			if x, ok := err.(*exec.ExitError); ok && x.ExitCode() > 1 {
				continue // no pattern for grep
			}
			if normalize(gnuReading(pattern)) == normalize(pattern) {
				continue
			}
			var want []int
			for line := range bytes.Lines(out) {
				var n int
				_, _ = fmt.Sscanf(string(line), "%d:", &n)
				want = append(want, n)
			}
			got, err := s.Grep(t.Context(), GrepQuery{Root: dir, Pattern: pattern})
			if err != nil {
				continue // an error is not a silent nothing
			}
			var lines []int
			for _, m := range got.Matches {
				lines = append(lines, m.Line)
			}
			// Neither engine has \< on its own: before and behind anything but a word \b finds more lines, never fewer.
			for _, n := range want {
				if !slices.Contains(lines, n) {
					t.Errorf("%s: %v, grep has %v", pattern, lines, want)
					break
				}
			}
			if i < named && !slices.Equal(lines, want) {
				t.Errorf("%s: %v, grep has %v", pattern, lines, want)
			}
		}
	}
}

// Git is the oracle for classes in ignore files.
func TestPosixClassesInIgnoreFiles(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, _ := cmd.Output()
		return string(out)
	}
	git("init", "-q")
	names := []string{"a1", "ab", "A9", "x-y", "f_z", "b]", "7"}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("hit\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range []string{"[[:alpha:]][[:digit:]]", "[![:alpha:]]*", "[[:lower:][:digit:]]*", "*[[:punct:]]", "[a[:upper:]]?", "[[:nothing:]]*"} {
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rule+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		found, _, err := New(Options{Ripgrep: "off"}).Files(t.Context(), dir, 100)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		want := strings.Fields(git("ls-files", "--others", "--exclude-standard"))
		slices.Sort(want)
		if !slices.Equal(found, want) {
			t.Errorf("%s: %q, git has %q", rule, found, want)
		}
		// Ripgrep, which reads the ignore files itself, does not know such classes.
		for _, rg := range []string{"", "off"} {
			lines, err := New(Options{Ripgrep: rg}).Grep(t.Context(), GrepQuery{Root: dir, Pattern: "hit"})
			if err != nil {
				t.Fatal(err)
			}
			var hits []string // without b]: ripgrep reads the class's last bracket as a character of the name
			for _, m := range lines.Matches {
				if name := filepath.Base(m.Path); name != "b]" {
					hits = append(hits, name)
				}
			}
			slices.Sort(hits)
			if !slices.Equal(hits, slices.DeleteFunc(slices.Clone(want), func(n string) bool { return n == ".gitignore" || n == "b]" })) {
				t.Errorf("%s, ripgrep %q: %q, git has %q", rule, rg, hits, want)
			}
		}
	}
}

func TestBlanksAroundGlobs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("word\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := New(Options{})
	if got, err := s.Glob(t.Context(), GlobQuery{Root: dir, Pattern: "*.go "}); err != nil || len(got.Paths) != 1 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := s.Grep(t.Context(), GrepQuery{Root: dir, Pattern: "word", Include: " *.go"}); err != nil || len(got.Matches) != 1 {
		t.Errorf("%v %v", got, err)
	}
}
