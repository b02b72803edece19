package search

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The real ripgrep is the oracle: random trees, ignore files, globs and patterns must give the same answer. Known
// differences stay out of the dice: ? and [!a] match one character here and one byte there, so names are ASCII; \b
// knows ASCII words only in the Go engine.

func oracle(t *testing.T, dir string, args ...string) ([]string, bool) {
	t.Helper()
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed")
	}
	cmd := exec.Command(rg, append([]string{"--no-config", "--hidden", "--no-require-git", "--glob=!.git", "--null"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, false
	}
	var files []string
	for f := range strings.SplitSeq(string(out), "\x00") {
		if f != "" {
			files = append(files, strings.TrimPrefix(f, "./"))
		}
	}
	slices.Sort(files)
	return files, true
}

func walked(t *testing.T, dir string, include *Pattern) []string {
	t.Helper()
	var files []string
	var mu sync.Mutex
	sc, _ := start(dir)
	w := walk{root: dir, include: include, scope: sc, visit: func(_ int, in string, names []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, name := range names {
			files = append(files, filepath.Join(in, name)[len(dir)+1:])
		}
	}}
	if err := w.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

var oracleTime = flag.Duration("oracle", 500*time.Millisecond, "how long each comparison with ripgrep goes on")

// rounds runs one until -oracle is over, at least 20 times; the seed of a failure is in its name.
func rounds(t *testing.T, one func(t *testing.T, r *rand.Rand)) {
	quiet(t)
	begin := time.Now()
	for seed := uint64(0); seed < 20 || time.Since(begin) < *oracleTime && !testing.Short(); seed++ {
		one(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomName(r *rand.Rand) string {
	return pick(r, "a", "b", "ab", "a.b", "x.go", "b.go", ".h", "c d", "B", "a-b", "[a]", "{a}", "a.tar.gz")
}

func randomGlob(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.IntN(3) {
		if i > 0 {
			b.WriteByte('/')
		}
		for range 1 + r.IntN(2) {
			b.WriteString(pick(r, "a", "b", "*", "*", "?", "**", ".go", "x", "[ab]", "[!a]", "[a-c]", "{a,b}", "{a,x}.go", `\[a]`, ".h", "B"))
		}
	}
	return b.String()
}

// beside finds stars beside others or beside text: Git and ripgrep read them differently, and ignore files are read as Git does.
var beside = regexp.MustCompile(`[^/]\*\*|\*\*[^/]`)

func randomIgnore(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		line := randomGlob(r)
		for beside.MatchString(line) {
			line = randomGlob(r)
		}
		if r.IntN(3) == 0 {
			line = "/" + line
		}
		if r.IntN(4) == 0 {
			line += "/"
		}
		if r.IntN(4) == 0 {
			line = "!" + line
		}
		b.WriteString(line + pick(r, "\n", "\n", "  \n", "\r\n", "\n# a\n\n"))
	}
	return b.String()
}

func randomTree(t *testing.T, r *rand.Rand, ignores bool) string {
	t.Helper()
	root, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	dirs := []string{root}
	for range 3 + r.IntN(8) {
		dir := filepath.Join(pick(r, dirs...), randomName(r))
		if os.Mkdir(dir, 0o755) == nil {
			dirs = append(dirs, dir)
		}
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil && !errors.Is(err, os.ErrExist) && !strings.Contains(err.Error(), "is a directory") {
			t.Fatal(err)
		}
	}
	for _, dir := range dirs {
		for range r.IntN(6) {
			write(filepath.Join(dir, randomName(r)), "x\n")
		}
		if !ignores {
			continue
		}
		for _, name := range ignoreNames {
			if r.IntN(4) == 0 {
				write(filepath.Join(dir, name), randomIgnore(r))
			}
		}
		if r.IntN(6) == 0 {
			os.MkdirAll(filepath.Join(dir, ".git", "info"), 0o755)
			write(filepath.Join(dir, ".git", "info", "exclude"), randomIgnore(r))
		}
	}
	return pick(r, root, root, dirs[len(dirs)-1])
}

func TestIgnoreFilesAgreeWithRipgrep(t *testing.T) {
	rounds(t, func(t *testing.T, r *rand.Rand) {
		root := randomTree(t, r, true)
		if _, bare := start(root); bare {
			return // there we differ on purpose
		}
		want, ok := oracle(t, root, "--files")
		if got := walked(t, root, nil); ok && !slices.Equal(got, want) {
			t.Errorf("in %s\n got %q\nwant %q\n%s", root, got, want, dumpIgnores(root))
		}
	})
}

func dumpIgnores(root string) string {
	var b strings.Builder
	filepath.Walk(filepath.Dir(root), func(p string, info os.FileInfo, _ error) error {
		if slices.Contains(ignoreNames[:], filepath.Base(p)) || strings.HasSuffix(p, "exclude") {
			text, _ := os.ReadFile(p)
			fmt.Fprintf(&b, "%s: %q\n", p, text)
		}
		return nil
	})
	return b.String()
}

func TestGlobsAgreeWithRipgrep(t *testing.T) {
	rounds(t, func(t *testing.T, r *rand.Rand) {
		root := randomTree(t, r, false)
		for range 5 {
			glob := randomGlob(r)
			want, ok := oracle(t, root, "--files", "--glob="+glob)
			p, err := ParsePattern(glob)
			if !ok || err != nil {
				continue // ripgrep 13 knows no nested braces
			}
			if got := walked(t, root, p); !slices.Equal(got, want) {
				t.Errorf("%s\n got %q\nwant %q", glob, got, want)
			}
		}
	})
}

func randomRegexp(r *rand.Rand, depth int) string {
	if depth == 0 {
		return pick(r, "a", "b", "ab", "foo", "Bar", ".", `\d`, `\w`, `\s`, "[ab]", "[^a]", `[\w-]`, "é", `\.`, "{", `\/`, "x{2}", `[a\]]`, "[]a]", `\W`)
	}
	sub := func() string { return randomRegexp(r, depth-1) }
	switch r.IntN(6) {
	case 0:
		return sub() + "|" + sub()
	case 1:
		return "(" + sub() + ")" + pick(r, "", "*", "+", "?", "{1,2}", "+?")
	case 2:
		return "(?i:" + sub() + ")"
	default:
		return sub() + sub()
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(30) {
		b.WriteString(pick(r, "a", "b", "foo", "FOO", "Bar", "bar", " ", "\n", "\n", "1", ".", "{", "/", "xx", "é", "É", "]", "-", "\t", "\r\n"))
	}
	return b.String()
}

func TestPatternsAgreeWithRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed")
	}
	rounds(t, func(t *testing.T, r *rand.Rand) {
		var files []string
		for i := range 6 {
			files = append(files, fmt.Sprint(i), randomText(r))
		}
		root := tree(t, files...)
		for range 4 {
			q := GrepQuery{Root: root, Pattern: pick(r, "", "", "^") + randomRegexp(r, 3) + pick(r, "", "", "$")}
			a, errA := New(Options{Ripgrep: rg}).Grep(t.Context(), q)
			b, errB := New(Options{Ripgrep: "off"}).Grep(t.Context(), q)
			if (errA != nil) != (errB != nil) && !strings.Contains(fmt.Sprint(errB), "invalid nested repetition") {
				t.Errorf("%s: ripgrep says %v, Go %v", q.Pattern, errA, errB)
			} else if errA == nil && errB == nil && short(root, a) != short(root, b) {
				t.Errorf("%s in %q\nripgrep\n%sGo\n%s", q.Pattern, files, short(root, a), short(root, b))
			}
		}
	})
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"*.go", "a/**/b", "{a,{b,c}}", "[!a-z]", `\*`, "**", "[", "{", "a**b", "/**/"} {
		f.Add(s, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		if p, err := ParsePattern(glob); err == nil {
			p.Match(path)
		}
		if rs := parseIgnore([]byte(glob)); rs != nil {
			rs.match(path, path[strings.LastIndexByte(path, '/')+1:], true)
		}
	})
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{`a{`, `\/`, `[^]\w]`, `\u00e9`, `\p{L}`, `[[:alpha:]]`, `(?i)x{2,}`, `\`} {
		f.Add(s, "foo\nbar é\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		n := normalize(pattern)
		if again := normalize(n); again != n {
			t.Errorf("%q becomes %q becomes %q", pattern, n, again)
		}
		m, err := compile(n)
		if err != nil || text == "" {
			return
		}
		line := 1
		search([]byte(text), m, true, &line, func(h hit) bool {
			if strings.Contains(string(h.text), "\n") || h.line < 1 {
				t.Errorf("%q in %q: %+v", pattern, text, h)
			}
			return true
		})
	})
}
