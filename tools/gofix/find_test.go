package gofix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/gofix/mutate"
)

// modules are real modules: those that this program itself is built from. PILLION_MEND_MODULES names others.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	if list := os.Getenv("PILLION_MEND_MODULES"); list != "" {
		return filepath.SplitList(list)
	}
	for _, r := range requirements(filepath.Join("..", ".."), shared().modcache) {
		switch r.path {
		case "github.com/oklog/ulid/v2", "github.com/bmatcuk/doublestar/v4", "github.com/spf13/pflag":
			if exists(filepath.Join(r.dir, "go.mod")) && !strings.Contains(strings.Join(dirs, "\n"), r.dir) {
				dirs = append(dirs, r.dir)
			}
		}
	}
	if len(dirs) == 0 {
		t.Skip("the modules are not in the module cache")
	}
	return dirs
}

// mendAll does what the built-in model does, on texts in memory: one error after the other, the best fix, until none
// lowers the number of errors.
func mendAll(m *module) (*module, int) {
	steps := 0
	for range 40 {
		var best *Fix
		for _, t := range m.broken() {
			at := m.fset.Position(t.pos)
			if fixes := m.fixes(context.Background(), at.Filename, at.Line); len(fixes) > 0 {
				best = &fixes[0]
				break
			}
		}
		if best == nil {
			break
		}
		m = m.with(best.Files, true)
		steps++
	}
	return m, steps
}

// broken are the module's errors, in order.
func (m *module) broken() (out []trouble) {
	for _, path := range sortedKeys(m.files) {
		out = append(out, m.at(path, 0)...)
	}
	return out
}

// One seeded mistake at a time in real code: errors never rise, and most mistakes are fixed.
func TestSeededMistakesInRealModules(t *testing.T) {
	rounds := 1
	if os.Getenv("PILLION_MEND_ROUNDS") != "" {
		fmt.Sscan(os.Getenv("PILLION_MEND_ROUNDS"), &rounds)
	}
	fixed, same, total := map[string]int{}, map[string]int{}, map[string]int{}
	for _, dir := range modules(t) {
		m, err := load(dir, nil)
		if err != nil {
			t.Fatal(dir, err)
		}
		m.checkAll()
		if s := m.score(); s != 0 {
			for _, b := range m.broken() {
				t.Logf("%s: %v", m.fset.Position(b.pos), b.pkg.errs)
				break
			}
			t.Logf("%s has %d errors of its own; left out", dir, s)
			continue
		}
		var paths []string
		for p := range m.files {
			paths = append(paths, p)
		}
		sort.Strings(paths)
		for _, kind := range mutate.Kinds {
			rng := rand.New(rand.NewPCG(7, uint64(len(kind))))
			for tries, done := 0, 0; done < rounds && tries < 60; tries++ {
				path := paths[rng.IntN(len(paths))]
				mistake, ok := mutate.Find(rng, kind, m.files[path].text)
				if !ok {
					continue
				}
				wrong := m.with(map[string]string{path: mistake.Apply(m.files[path].text)}, true)
				start := wrong.score()
				if start == 0 {
					continue
				}
				done++
				total[kind]++
				after, _ := mendAll(wrong)
				end := after.score()
				if end > start {
					t.Errorf("%s in %s: %d errors became %d", kind, path, start, end)
				}
				if end == 0 {
					fixed[kind]++
					if after.files[path].text == m.files[path].text {
						same[kind]++
					}
				} else if os.Getenv("PILLION_MEND_VERBOSE") != "" {
					for _, b := range after.broken()[:1] {
						msg := "syntax"
						if len(b.pkg.errs) > 0 {
							msg = b.pkg.errs[0].Msg
						}
						t.Logf("LEFT %s: %q -> %q; %s: %s", kind, m.files[path].text[mistake.Start:mistake.End], mistake.Text, m.fset.Position(b.pos), msg)
					}
				}
			}
		}
	}
	all, good := 0, 0
	for _, kind := range mutate.Kinds {
		if total[kind] > 0 {
			t.Logf("%-24s %3d of %3d fixed, %3d as it was", kind, fixed[kind], total[kind], same[kind])
		}
		all, good = all+total[kind], good+fixed[kind]
	}
	t.Logf("%d of %d fixed", good, all)
	if all == 0 || good*100 < all*60 {
		t.Errorf("%d of %d mistakes were fixed, want 60 %%", good, all)
	}
}

// moduleOf loads a module of these files, by their paths in it.
func moduleOf(t *testing.T, files map[string]string) *module {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.checkAll()
	return m
}

// titles are the fixes for a line of a file, the best first.
func titles(m *module, name string, line int) (out []string) {
	for _, f := range m.fixes(context.Background(), filepath.Join(m.root, filepath.FromSlash(name)), line) {
		out = append(out, f.Title)
	}
	return out
}

// A fix in a package is found although another package is between it and its external tests: both must see the same types.
func TestAFixIsFoundWhereTestsReachThePackageByTwoWays(t *testing.T) {
	m := moduleOf(t, map[string]string{
		"go.mod":      "module m\n\ngo 1.22\n",
		"a/a.go":      "package a\n\n// T counts.\ntype T struct{ n int }\n\nfunc use(t *T) int { return t.n }\n\n// Use uses one.\nfunc Use(t T) int {\n\treturn use(t)\n}\n",
		"b/b.go":      "package b\n\nimport \"m/a\"\n\n// Made is one.\nfunc Made() a.T { return a.T{} }\n",
		"a/a_test.go": "package a_test\n\nimport (\n\t\"m/a\"\n\t\"m/b\"\n\t\"testing\"\n)\n\nfunc TestUse(t *testing.T) {\n\tif a.Use(b.Made()) != 0 {\n\t\tt.Fail()\n\t}\n}\n",
	})
	if got := titles(m, "a/a.go", 10); len(got) == 0 || got[0] != "Take its address" {
		t.Errorf("%q", got)
	}
}

// Where a use and a declaration differ, the comment above the declaration says which of them was meant; where there is none, an
// exported declaration is kept, since callers outside the module cannot be seen.
func TestTheCommentSaysWhichNameWasMeant(t *testing.T) {
	for _, c := range []struct{ declaration, want string }{
		{"// Total adds.\nfunc Total() int { return 1 }\n", "Change total to Total"},
		{"func Total() int { return 1 }\n", "Change total to Total"},
		{"// totals adds.\nfunc totals() int { return 1 }\n", "Change total to totals"},
		{"// total adds.\nfunc totla() int { return 1 }\n", "Rename the declaration of totla to total"},
		{"func totla() int { return 1 }\n", "Rename the declaration of totla to total"},
	} {
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\nvar _ = total()\n\n" + c.declaration})
		if got := titles(m, "a.go", 3); len(got) == 0 || got[0] != c.want {
			t.Errorf("%q: %q", c.declaration, got)
		}
	}
}

// Where neither a comment nor other uses say which of two names was meant, the one is kept whose words the module has elsewhere.
func TestTheSpellingOfTheModuleIsKept(t *testing.T) {
	for _, c := range []struct{ declared, used, elsewhere, want string }{
		{"newRandomFromPool", "newRandmoFromPool", "// NewRandom is random.\n", "Change newRandmoFromPool to newRandomFromPool"},
		{"newRandmoFromPool", "newRandomFromPool", "var randomPool = 1\n", "Rename the declaration of newRandmoFromPool to newRandomFromPool"},
		{"newHTTPServer", "newHTTPSevrer", "var _ = \"the HTTP server\"\n", "Change newHTTPSevrer to newHTTPServer"},
		{"newHTTPServer", "newHTTPSevrer", "var servers = 1\n", "Rename the declaration of newHTTPServer to newHTTPSevrer"},              // another word
		{"newRandomFromPool", "newRandmoFromPool", "// newRandomFromPool takes one.\n", "Change newRandmoFromPool to newRandomFromPool"}, // the name itself
		{"fractional", "fractionl", "func g() { fractional := 1; _ = fractional }\n", "Change fractionl to fractional"},
		{"total", "totalPrice", "var totalSum = 1\n", "Rename the declaration of total to totalPrice"}, // a word more is no slip
	} {
		text := "package m\n\nvar _ = " + c.used + "()\n\nfunc " + c.declared + "() int { return 1 }\n\n"
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": text, "b.go": "package m\n\n" + c.elsewhere})
		if got := titles(m, "a.go", 3); len(got) == 0 || got[0] != c.want {
			t.Errorf("%s, used as %s beside %q: %q", c.declared, c.used, c.elsewhere, got)
		}
	}
}

// One mistake of two errors is mended as one: what is not used was to be returned, and a wrong field is wrong where its value has another name.
func TestTheCauseOfTwoErrorsIsFound(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		want string // the line after the fix
	}{
		{"func write() (int, error) { return 0, nil }\n\nfunc f() error {\n\t_, err := write()\n}\n", 6, "\treturn err"},
		{"func write() (int, error) { return 0, nil }\n\nfunc f() (int, error) {\n\tn, err := write()\n\tif err != nil {\n\t\treturn 0, err\n\t}\n}\n", 6, "\treturn n, nil"},
		{"type t struct{ format int }\n\nconst usual = \"a\"\n\nfunc f(x *t) {\n\tformat := x.format\n\tif format == \"\" {\n\t\tformat = usual\n\t}\n\tuse(format)\n}\n\nfunc use(s string) {}\n", 9, "type t struct{ format string }"},
		{"func f(g func() int) {\n\tx := g()\n\ty := g()\n\tfor y > 0 {\n\t\tx, y := y, g()\n\t\tif x > y {\n\t\t\treturn\n\t\t}\n\t}\n}\n", 4, "\t\tx, y = y, g()"},
		{"func f() (out string) {\n\tout += \"a\"\n}\n", 5, "\treturn"},
		// No value and no error would say that it has succeeded.
		{"type T struct{}\n\nfunc f(n int) (T, error) {\n\tif n > 0 {\n\t\treturn T{}, nil\n\t}\n}\n", 9, "\treturn T{}, errors.New(\"f: no result\")"},
		{"func f(n int) error {\n\tif n > 0 {\n\t\treturn nil\n\t}\n}\n", 7, "\treturn nil"},
		{"func write() ([]byte, error) { return nil, nil }\n\nfunc f() string {\n\tb, _ := write()\n}\n", 7, "\treturn string(b)"},
		{"type T struct{}\n\nfunc g() (T, error) { return new(T), nil }\n\nfunc f() (*T, error) { return g() }\n", 7, "func g() (*T, error) { return new(T), nil }"},
		{"type T struct{}\n\nfunc g() (T, error) { return new(T), nil }\n\nfunc f() *T {\n\tt, _ := g()\n\tuse(t)\n\treturn t\n}\n\nfunc use(*T) {}\n", 9, "func g() (*T, error) { return new(T), nil }"},
		{"type t struct{ format int }\n\nfunc f(x *t) {\n\tvar format = x.format\n\tagain := format\n\tuse(again)\n\tuse(again)\n}\n\nfunc use(s string) {}\n", 8, "type t struct{ format string }"},
	} {
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\n" + c.text})
		name := sortedKeys(m.files)[0]
		fixes := m.fixes(t.Context(), name, c.line)
		if len(fixes) == 0 || !slices.Contains(strings.Split(fixes[0].Files[name], "\n"), c.want) || m.scoreOf(m.with, fixes[0].Files, true) != 0 {
			t.Errorf("%s: %+v", c.text, fixes)
		}
	}
}

// What is around an operator that assigns, and before a type assertion, is looked at as well.
func TestFixesOfOneStatement(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"n += m", "Convert to int64"},
		{"p += n", "Dereference it"},
		{"_ = f.(string)", "Call it"},
	} {
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\nfunc g(n int64, m int, p *int64, f func() any) {\n\t" + c.line + "\n}\n"})
		if got := titles(m, "a.go", 4); len(got) == 0 || got[0] != c.want {
			t.Errorf("%q: %q", c.line, got)
		}
	}
	// What has no signature, or another one than its place needs; the first fix is the one that was seeded away.
	for _, c := range []struct{ text, want string }{
		{"func f(b []byte) int { return len(b, 0) }", "Remove the argument 0"},
		{"func f(b []byte, n int) int { return n + len() }", "Add the argument b"},
		{"func f(b []byte) string { return string(b, nil) }", "Remove the argument nil"},
		{"func f(b []byte) string { return string() }", "Convert b"},
		{"func f(b []int) []int { return append(1, b) }", "Swap the arguments 1 and b"},
		{"func f() []int { return make([]int) }", "Add the length 0"},
		{"func f(m map[string]int, k string) { delete(m) }", "Add the argument k"},
		{"func f(next func() rune) string { return string(next) }", "Call it"},
		{"func g() ([]byte, error) { return nil, nil }; func f() int { b, err := g; if err != nil { return 0 }; return len(b) }", "Call it"},
		{"func g() (int, error) { return 0, nil }; var a, err = g", "Call it"},
		{"func g() (int, error) { return 0, nil }; func f() (int, error) { return g }", "Call it"},
		{"func g(a ...int) int { return 0 }; func f(n *int) { *n = g }", "Call it"},
		{"type T struct{}; func (T) Items() []int { return nil }; func f(t T) (n int) { for _, x := range t.Items { n += x }; return n }", "Call it"},
		{"type T struct{}; func (T) Items() []int { return nil }; func f(t T) int { return t.Items[0] }", "Call it"},
		{"type T struct{}; func (T) Next() T { return T{} }; func f(t T) T { return t.Next.Next() }", "Call it"},
		{"type T struct{}; func (T) Close() {}; func f(t T) { t.Close }", "Call it"},
		{"type T struct{}; func (T) Close() {}; func f(t T) {\n\tdefer t.Close\n}", "Insert ()"},
		{"type T struct{ in []byte; ok bool }; var all = []T{{in: []byte(), ok: true}}", "Convert \"\""},
		{"type T int; func g(T) {}; func f() { g(T()) }", "Convert 0"},
		{"type L []T; type T struct{}; func f(l []*T) any { return L(l) }", "Declare L as []*T"},
		{"type T struct{ l int }; func f(t *T) { t.l = append(t.l, true) }", "Declare l as []bool"},
		{"type T struct{}; type N struct{ Next string }; func each(f func(*T) N) {}; func f() { each(func(t T) N { return N{} }) }", "Give the function the parameters that are needed"},
		{"type T struct{}; func (*T) F() {}; func f(x interface{ F() }) { switch x.(type) { case T: } }", "Change T to *T"},
		{"type T struct{}; func (*T) F() {}; func f(x interface{ F() }) any { return x.(T) }", "Assert a pointer"},
		{"type T struct{ name int }; func (T) Name() {}; func f(t *T) { t.Name = 1 }", "Change Name to name"},
		{"type L []T; type T struct{}; func (t *T) Less(o *T) bool { return t != o }; func (l L) Less(i, j int) bool { return l[i].Less(l[j]) && l[j].Less(l[i]) }; func f(l []*T) any { return L(l) }", "Declare the items of l as *T"},
		{"type T struct{ Items int }; func f(t2 *T) int { return t2Items }", "Change t2Items to t2.Items"},
		{"func f(level func() int) int { n := level; n = n * 2; return n }", "Call level"},
		{"func f(l []int) (out []int) { for _, n := range l { if n > 0 { out := append(out, n) } }; return out }", "Assign instead of declaring"},
		{"type T struct{}; func (*T) Fatal() {}; func g(t *T) {}; func f(t string) { t.Fatal(); t.Fatal() }", "Declare t as *T"},
		{"type T struct{}; func g(a string, b, c T) {}; func h() T { return T{} }; func f() { g(\"\", h()) }", "Add the argument T{}"},
		{"func g(n float64, f byte) {}; func f(n float64) { g('f', n) }", "Swap the arguments 'f' and n"},
		{"type T struct{}; func f(t *T) *T { return &t }", "Do not take its address"},
		{"func f(s string) bool { switch s { case \"a\", 42: return true }; return false }", "Write it as a string"},
		{"func f(n int) bool { switch { case n: return true }; return false }", "Compare it with zero"},
		{"func has(s, part string) bool { return s == part }; func f(s string) bool { return has(s) }", "Add the argument \"\""},
		{"func has(s, part string) bool { return s == part }; func f(s, p string) bool { return has(s) }", "Add the argument p"},
	} {
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\n" + c.text + "\n"})
		line := 3
		if strings.Contains(c.text, "\n") {
			line = 4
		}
		if got := titles(m, "a.go", line); len(got) == 0 || got[0] != c.want {
			t.Errorf("%s: %q, want %s", c.text, got, c.want)
		}
	}
	// Two syntax errors in one file: a bracket above the first would hide both from the parser, and is no fix.
	two := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\nfunc g(a, b int) {}\n\nfunc f(a, b int) {\n\tg(a b)\n\tif a > b {\n\t\tg(b a)\n\t}\n}\n"})
	for _, f := range two.fixes(t.Context(), filepath.Join(two.root, "a.go"), 6) {
		if f.Title != "Insert ," && !strings.HasPrefix(f.Title, "Remove ") {
			t.Errorf("%q is no fix", f.Title)
		}
	}
	if got := titles(two, "a.go", 6); len(got) == 0 || got[0] != "Insert ," {
		t.Errorf("the first of two syntax errors: %q", got)
	}
	// One use says little about a field, so its declaration comes after the conversion.
	of := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\ntype P struct { a int; b string }; func f(s int) P { return P{1, s} }\n"})
	if got := titles(of, "a.go", 3); !slices.Contains(got, "Declare b as int") {
		t.Errorf("the field is not among %q", got)
	}
	// An interface without methods takes a function as well as its result.
	any := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\nfunc size(s string) int { return len(s) }; func f(n bool) any { return size(n) }\n"})
	if got := titles(any, "a.go", 3); slices.Contains(got, "Do not call it") {
		t.Errorf("a function in place of its result: %q", got)
	}
	m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\ntype I interface{ F() }\n\ntype T struct{}\n\nvar _ I = (*T)(nil)\n"})
	for _, title := range titles(m, "a.go", 7) {
		if title == "Do not convert it" {
			t.Error("the line would check nothing")
		}
	}
}

// A name that is assigned to itself hides a mistake that is elsewhere: here the declaration of Right.
func TestNoFixAssignsANameToItself(t *testing.T) {
	m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\n" +
		"func left(s string, n int) string { return s }\nfunc right(s string, n string) string { return s }\n\n" +
		"func pad(r bool) func(string, int) string {\n\tpad := left\n\tif r {\n\t\tpad = right\n\t}\n\treturn pad\n}\n"})
	for _, f := range m.fixes(t.Context(), filepath.Join(m.root, "a.go"), 9) {
		for _, text := range f.Files {
			if strings.Contains(text, "pad = pad") {
				t.Errorf("%q: %s", f.Title, text)
			}
		}
	}
}

// A package of a required module is not taken for the folder of that name in the standard library, which has only other packages in it.
func TestAPackageBesideOneOfTheLibrary(t *testing.T) {
	version := ""
	for _, r := range requirements(filepath.Join("..", ".."), shared().modcache) {
		if r.path == "golang.org/x/net" && exists(filepath.Join(r.dir, "http2")) {
			_, version, _ = strings.Cut(filepath.Base(r.dir), "@")
		}
	}
	if version == "" {
		t.Skip("golang.org/x/net is not in the module cache")
	}
	m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n\nrequire golang.org/x/net " + version + "\n", "a.go": "package m\n\nimport \"golang.org/x/net/http2\"\n\nvar _ http2.Tranport\n"})
	if got := titles(m, "a.go", 5); len(got) == 0 || got[0] != "Change Tranport to Transport" {
		t.Errorf("%q", got)
	}
}
