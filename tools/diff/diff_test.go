package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// mutate is a text near old: lines changed, dropped, doubled, moved, endings swapped.
func mutate(r *rand.Rand, old string) string {
	l := Lines(old)
	for range 1 + r.IntN(5) {
		i := 0
		if len(l) > 0 {
			i = r.IntN(len(l))
		}
		switch r.IntN(7) {
		case 0:
			l = append(l[:i:i], append([]string{word(r) + "\n"}, l[i:]...)...)
		case 1:
			if len(l) > 0 {
				l = append(l[:i:i], l[i+1:]...)
			}
		case 2:
			if len(l) > 0 {
				l = append(append([]string{}, l[:i]...), append([]string{word(r) + "\n"}, l[i+1:]...)...)
			}
		case 3:
			if n := len(l); n > 0 {
				l[n-1] = strings.TrimSuffix(l[n-1], "\n")
			}
		case 4:
			if len(l) > 0 {
				l[i] = strings.TrimSuffix(l[i], "\n") + "\r\n"
			}
		case 5:
			l = append(l[i:len(l):len(l)], l[:i]...)
		case 6:
			l = append(l[:len(l):len(l)], l[i:min(i+3, len(l))]...)
		}
		l = Lines(strings.Join(l, ""))
	}
	return strings.Join(l, "")
}

var vocabulary = []string{"", "}", "\t", "x", "-- y", "++ z", "@@ -1 +1 @@", `\ No newline at end of file`, "--- a", "diff --git a b", "\xff\xfe", "ä→", "a\rb", "\x00", " "}

func word(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return fmt.Sprint("line ", r.IntN(40))
	}
	return vocabulary[r.IntN(len(vocabulary))]
}

func text(r *rand.Rand) string {
	var sb strings.Builder
	for range r.IntN(40) {
		sb.WriteString(word(r) + "\n")
	}
	return mutate(r, sb.String())
}

func TestScriptTurnsOldIntoNew(t *testing.T) {
	for seed := range uint64(5_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		old := text(r)
		new := mutate(r, old)
		s := Compute(old, new)
		var sb strings.Builder
		at := 0
		for i, e := range s.Edits {
			if e.A0 == e.A1 && e.B0 == e.B1 || i > 0 && e.A0 <= s.Edits[i-1].A1 {
				t.Fatalf("seed %d: empty or touching edits %v", seed, s.Edits)
			}
			sb.WriteString(strings.Join(s.A[at:e.A0], "") + s.NewText(e))
			at = e.A1
		}
		sb.WriteString(strings.Join(s.A[at:], ""))
		if sb.String() != new {
			t.Fatalf("seed %d: script gives %q, want %q", seed, sb.String(), new)
		}
		got, err := Apply(old, s.Unified("a", "b"))
		if err != nil || got != new {
			t.Fatalf("seed %d: Apply(%q) = %q, %v, want %q\n%s", seed, old, got, err, new, s.Unified("a", "b"))
		}
		for i := range s.A {
			if j, ok := s.NewLine(i); ok && (s.A[i] != s.B[j]) {
				t.Fatalf("seed %d: line %d maps to %d", seed, i, j)
			}
		}
	}
}

// Both programs must make the new bytes out of the old ones and our text. NUL is left out for patch, which stops there.
func TestGitAndPatchApplyIt(t *testing.T) {
	for _, tool := range []string{"git", "patch"} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skip(tool + " is not installed")
			}
			dir := t.TempDir()
			var all bytes.Buffer
			type file struct{ name, want string }
			var files []file
			for seed := range uint64(400) {
				r := rand.New(rand.NewPCG(seed, 2))
				old := text(r)
				new := mutate(r, old)
				if tool == "patch" {
					old, new = strings.ReplaceAll(old, "\x00", "0"), strings.ReplaceAll(new, "\x00", "0")
				}
				if old == new || old == "" || new == "" {
					continue
				}
				name := fmt.Sprintf("f %d.txt", seed)
				if err := os.WriteFile(filepath.Join(dir, name), []byte(old), 0o644); err != nil {
					t.Fatal(err)
				}
				all.WriteString(Unified("a/"+name, "b/"+name, old, new))
				files = append(files, file{name, new})
			}
			args := []string{"apply", "--whitespace=nowarn", "--unidiff-zero", "-"}
			if tool == "patch" {
				args = []string{"-p1", "--binary", "--fuzz=0", "-s", "--posix"}
			}
			cmd := exec.Command(tool, args...)
			cmd.Dir, cmd.Stdin = dir, &all
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", tool, err, out)
			}
			for _, f := range files {
				got, err := os.ReadFile(filepath.Join(dir, f.name))
				if err != nil || string(got) != f.want {
					t.Fatalf("%s: got %q, %v, want %q", f.name, got, err, f.want)
				}
			}
		})
	}
}

func TestNamesAreQuotedAsGitReadsThem(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, name := range []string{"plain", "two words", `q"uote`, `back\slash`, "tab\there", "ünï", "line\nfeed"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "apply", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(Unified("a/"+name, "b/"+name, "a\n", "b\n"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v %s", name, err, out)
		}
	}
}

func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	p := Unified("a", "b", "1\n2\n3\n", "1\nx\n3\n")
	for _, text := range []string{"", "1\n2\n", "1\n2 \n3\n", "0\n1\n2\n3\n"} {
		if got, err := Apply(text, p); err == nil {
			t.Errorf("Apply(%q) = %q, want an error", text, got)
		}
	}
	for _, p := range []string{"@@ -1,2 +1,2 @@\n 1\n", "@@ nonsense\n", "@@ -x +1 @@\n", "@@ -1 +1 @@\n?x\n"} {
		if _, err := Apply("1\n2\n", p); err == nil {
			t.Errorf("patch %q was accepted", p)
		}
	}
}

func TestWords(t *testing.T) {
	cut := func(s string, spans []Span) (out []string) {
		for _, p := range spans {
			out = append(out, s[p.Start:p.End])
		}
		return out
	}
	for _, c := range []struct{ name, old, new, olds, news string }{
		{"one word", "return foo(a, b)", "return bar(a, b)", "foo", "bar"},
		{"inserted argument", "f(a)", "f(a, b)", "", ", b"},
		{"umlaut is one word", "größe := 1", "größte := 1", "größe", "größte"},
		{"nothing in common", "alpha", "12345678", "alpha", "12345678"},
		{"invalid bytes", "a \xff b c", "a \xfe b c", "\xff", "\xfe"},
		{"equal", "same", "same", "", ""},
	} {
		o, n := Words(c.old, c.new)
		if got := strings.Join(cut(c.old, o), "|"); got != c.olds {
			t.Errorf("%s: old %q, want %q", c.name, got, c.olds)
		}
		if got := strings.Join(cut(c.new, n), "|"); got != c.news {
			t.Errorf("%s: new %q, want %q", c.name, got, c.news)
		}
	}
}

func TestInsertedFunctionIsCutAtItsBorders(t *testing.T) {
	old := "func a() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n"
	new := "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n"
	s := Compute(old, new)
	if len(s.Edits) != 1 || s.NewText(s.Edits[0]) != "func b() {\n\tx()\n}\n\n" {
		t.Errorf("inserted %q", s.NewText(s.Edits[0]))
	}
}

func TestNewLineOfRemovedLineIsWhereItsReplacementBegins(t *testing.T) {
	s := Compute("a\nb\nc\nd\n", "a\nX\nY\nd\n")
	var got [4][2]any
	for i := range got {
		j, ok := s.NewLine(i)
		got[i] = [2]any{j, ok}
	}
	if want := ([4][2]any{{0, true}, {1, false}, {1, false}, {3, true}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// More distinct lines than there are runes made the library panic.
func TestMoreThanAMillionDistinctLines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var a, b []string
	for i := range 1_200_000 {
		s := fmt.Sprint(i)
		a = append(a, s, s) // twice: no anchors
		b = append(b, s, s)
	}
	b[0], b[len(b)-1] = "x", "y"
	b[5], b[6] = b[6], b[5]
	start := time.Now()
	edits := Strings(a, b)
	if len(edits) == 0 {
		t.Fatal("no edits")
	}
	t.Log(len(edits), "edits in", time.Since(start))
}

// Big returns a text of n lines and the same with k of them changed.
func big(n, k int) (string, string) {
	r := rand.New(rand.NewPCG(7, 7))
	a := make([]string, n)
	for i := range a {
		switch i % 5 {
		case 0:
			a[i] = "}\n"
		case 1:
			a[i] = "\n"
		default:
			a[i] = fmt.Sprintf("\tsome code on line %d of a long file(%d)\n", i, i*7)
		}
	}
	b := append([]string{}, a...)
	for range k {
		i := r.IntN(n)
		switch r.IntN(3) {
		case 0:
			b[i] += "\tinserted(" + fmt.Sprint(i) + ")\n"
		case 1:
			b[i] = ""
		default:
			b[i] = fmt.Sprintf("\tchanged %d\n", i)
		}
	}
	return strings.Join(a, ""), strings.Join(b, "")
}

func BenchmarkUnified100kLines1000Changes(b *testing.B) {
	old, new := big(100_000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		Unified("a", "b", old, new)
	}
}

func BenchmarkGit100kLines1000Changes(b *testing.B) {
	old, new := big(100_000, 1000)
	dir := b.TempDir()
	os.WriteFile(dir+"/a", []byte(old), 0o600)
	os.WriteFile(dir+"/b", []byte(new), 0o600)
	for b.Loop() {
		cmd := exec.Command("git", "diff", "--no-index", "a", "b")
		cmd.Dir = dir
		cmd.Output()
	}
}

// The beginning of a diff is that of the whole, and ends with a line.
func TestUnifiedStart(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		old := text(r)
		s := Compute(old, mutate(r, old))
		whole := s.Unified("a", "b")
		for _, most := range []int{0, 20, len(whole) / 2, len(whole) - 1, len(whole)} {
			got := s.UnifiedStart("a", "b", most)
			if !strings.HasPrefix(whole, got) || len(got) <= most && got != whole || got != whole && !strings.HasSuffix(got, "\n") {
				t.Fatalf("%d of %d bytes: %q\nwhole: %q", most, len(whole), got, whole)
			}
		}
	}
}

// An edit of everything is the text itself.
func TestTextOfAWholeEdit(t *testing.T) {
	now := "a\nb\nc"
	s := Compute("", now)
	if got := s.NewText(s.Edits[0]); got != now || s.OldText(s.Edits[0]) != "" {
		t.Errorf("%q", got)
	}
	s = Compute(now, "")
	if got := s.OldText(s.Edits[0]); got != now || s.NewText(s.Edits[0]) != "" {
		t.Errorf("%q", got)
	}
}
