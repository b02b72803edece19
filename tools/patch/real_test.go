package patch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files is a file system of texts.
type files map[string]string

func (f files) read(p string) (string, bool, error) {
	text, ok := f[lexical(p)]
	return text, ok, nil
}

// after makes the changes, in any order: none depends on another.
func (f files) after(t testing.TB, changes []FileChange) files {
	out := files{}
	for k, v := range f {
		out[k] = v
	}
	seen := map[string]bool{}
	for _, c := range changes {
		for _, p := range []string{c.Path, c.NewPath} {
			if p != "" && seen[lexical(p)] {
				t.Errorf("two changes touch %s: %+v", p, changes)
			}
			seen[lexical(p)] = true
		}
		if c.Kind != Add && f[lexical(c.Path)] != c.Old {
			t.Errorf("%s: Old is not what was there", c.Path)
		}
		switch c.Kind {
		case Delete:
			delete(out, lexical(c.Path))
		case Move:
			delete(out, lexical(c.Path))
			out[lexical(c.NewPath)] = c.New
		default:
			out[lexical(c.Path)] = c.New
		}
	}
	return out
}

// text is a random file: few different lines so that places are easily confused, any line endings.
func randomText(r *rand.Rand) []byte {
	var b []byte
	words := []string{"a", "b", "}", "", "-- x", "++ y", "\tif x {", "@@ -1 +1 @@", "--- a", "+++ b", "é", "\xff", "diff --git a b", "*** End Patch"}
	style := r.IntN(3)
	for range r.IntN(30) {
		b = append(b, words[r.IntN(len(words))]...)
		if style == 1 || style == 2 && r.IntN(2) == 0 {
			b = append(b, '\r')
		}
		b = append(b, '\n')
	}
	if r.IntN(3) == 0 {
		b = bytes.TrimSuffix(b, []byte("\n"))
	}
	return b
}

func changed(r *rand.Rand, old []byte) []byte {
	lines := bytes.SplitAfter(old, []byte("\n"))
	other := bytes.SplitAfter(randomText(r), []byte("\n"))
	var out []byte
	for _, line := range lines {
		switch r.IntN(8) {
		case 0:
		case 1:
			if len(other) > 0 {
				out = append(out, other[r.IntN(len(other))]...)
			}
			out = append(out, line...)
		case 2:
			if len(other) > 0 {
				out = append(out, other[r.IntN(len(other))]...)
			}
		default:
			out = append(out, line...)
		}
	}
	return out
}

// run gives the output of a diff program, which exits with 1 where files differ.
func run(t testing.TB, dir, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if ee, ok := err.(*exec.ExitError); err != nil && (!ok || ee.ExitCode() > 1) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

// What git diff and diff -u say of two files makes the one from the other, to the byte.
func TestRealDiffs(t *testing.T) {
	for _, tool := range []string{"git", "diff"} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("%s is not installed", tool)
			}
			dir := t.TempDir()
			r := rand.New(rand.NewPCG(1, uint64(len(tool))))
			for n := range 150 {
				old := randomText(r)
				new := changed(r, old)
				if bytes.Equal(old, new) {
					continue
				}
				for name, b := range map[string][]byte{"old": old, "new": new} {
					if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				// Without context a diff does not say what endings its neighbours have, so with CRs there is some.
				lines := r.IntN(5)
				if both := string(old) + string(new); strings.Count(both, "\r") != 0 {
					lines = max(lines, 1)
				}
				context := fmt.Sprintf("-U%d", lines)
				args := []string{"diff", "--no-index", "--no-ext-diff", "--text", context, "old", "new"}
				if tool == "diff" {
					args = []string{"-a", context, "old", "new"}
				}
				text := run(t, dir, tool, args...)
				p, err := Parse(text)
				if err != nil {
					t.Fatalf("%d: %v\n%s", n, err, text)
				}
				fs := files{"old": string(old)}
				changes, err := p.Apply(fs.read)
				if err != nil {
					t.Fatalf("%d %s: %v\n%s\nold %q", n, context, err, text, old)
				}
				got := fs.after(t, changes)
				if got["old"] != string(new) {
					t.Fatalf("%d %s: got %q\nwant %q\nold %q\n%s", n, context, got["old"], new, old, text)
				}
			}
		})
	}
}

// A commit of several files (added, deleted, renamed, names exchanged, strange names), as git tells it.
func TestRealCommits(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		return run(t, dir, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@y", "-c", "core.autocrlf=false"}, args...)...)
	}
	git("init", "-q")
	r := rand.New(rand.NewPCG(7, 7))
	names := []string{"a", "b/c d", "é.txt", "tab\tname", "b/q\"uote", "z"}
	state := files{}
	write := func() {
		for _, n := range names {
			_ = os.Remove(filepath.Join(dir, n))
		}
		for n, text := range state {
			p := filepath.Join(dir, n)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("commit", "-q", "--allow-empty", "-m", "x")
	}
	long := func() string {
		return strings.Repeat(string(randomText(r))+"\nsome longer line that makes the file its own\n", 3)
	}
	for _, n := range names[:4] {
		state[n] = long()
	}
	write()
	for round := range 40 {
		before := files{}
		next := files{}
		for n, text := range state {
			before[n] = text
			switch r.IntN(5) {
			case 0: // deleted
			case 1, 2: // moved, perhaps onto another's name
				to := names[r.IntN(len(names))]
				if _, taken := next[to]; !taken {
					next[to] = string(changed(r, []byte(text)))
				}
			default:
				if _, taken := next[n]; !taken {
					next[n] = string(changed(r, []byte(text)))
				}
			}
		}
		for _, n := range names {
			if _, ok := next[n]; !ok && r.IntN(4) == 0 {
				next[n] = long()
			}
		}
		state = next
		write()
		text := git("show", "--text", "--no-ext-diff", "-M", "HEAD")
		if round%2 == 1 {
			text = git("show", "--text", "--no-ext-diff", "--no-renames", "HEAD")
		}
		if !strings.Contains(text, "diff --git") {
			continue
		}
		p, err := Parse(text)
		if err != nil {
			t.Fatalf("%d: %v\n%s", round, err, text)
		}
		changes, err := p.Apply(before.read)
		if err != nil {
			t.Fatalf("%d: %v\n%s", round, err, text)
		}
		got := before.after(t, changes)
		for n := range union(got, state) {
			if got[n] != state[n] {
				t.Fatalf("%d: %s: got %q\nwant %q\n%s", round, n, got[n], state[n], text)
			}
		}
	}
}

func union(a, b files) map[string]bool {
	out := map[string]bool{}
	for n := range a {
		out[n] = true
	}
	for n := range b {
		out[n] = true
	}
	return out
}
