package affected

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// projectOf is a project of texts by relative path; files are proposed over them, "" deletes.
func projectOf(root string, texts, proposed map[string]string) *Project {
	p := &Project{Root: root}
	now := maps.Clone(texts)
	for _, name := range slices.Sorted(maps.Keys(proposed)) { // commands name the files in their order
		text := proposed[name]
		f := change.File{Path: filepath.Join(root, name), Kind: change.Edit, Old: texts[name], New: text}
		switch _, had := texts[name]; {
		case text == "":
			f.Kind = change.Delete
			delete(now, name)
		case !had:
			f.Kind = change.Create
			now[name] = text
		default:
			now[name] = text
		}
		p.Files = append(p.Files, f)
	}
	for name := range now {
		p.List = append(p.List, filepath.Join(root, name))
	}
	slices.Sort(p.List)
	p.Read = func(path string) (string, bool) {
		r, _ := filepath.Rel(root, path)
		text, ok := now[filepath.ToSlash(r)]
		return text, ok
	}
	p.Exists = func(path string) bool { _, ok := p.Read(path); return ok }
	return p
}

func commands(runs []Run) (out []string) {
	for _, r := range runs {
		out = append(out, r.Command())
	}
	return out
}

var module = map[string]string{
	"go.mod":        "module example.com/m\n\ngo 1.22\n",
	"a/a.go":        "package a\n\nfunc A() int { return one() }\n\nfunc one() int { return 1 }\n\nfunc Far() int { return 9 }\n\ntype T struct{}\n\nfunc (T) String() string { return \"t\" }\n",
	"a/a_test.go":   "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { A() }\n\nfunc TestFar(t *testing.T) { Far() }\n\nfunc helper() { one() }\n\nfunc TestHelper(t *testing.T) { helper() }\n",
	"b/b.go":        "package b\n\nimport \"example.com/m/a\"\n\nfunc B() int { return a.A() }\n\nfunc Show() any { return a.T{} }\n",
	"b/b_test.go":   "package b_test\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n\n\t\"example.com/m/b\"\n)\n\nfunc TestB(t *testing.T) { b.B() }\n\nfunc TestShow(t *testing.T) { fmt.Sprint(b.Show()) }\n\nfunc ExampleB() {}\n",
	"c/c.go":        "package c\n\nvar table = build()\n\nfunc build() int { return 1 }\n\nfunc C() int { return table }\n\nfunc Plain() int { return 2 }\n",
	"c/c_test.go":   "package c\n\nimport \"testing\"\n\nfunc TestC(t *testing.T) { C() }\n\nfunc TestPlain(t *testing.T) { Plain() }\n",
	"d/d.go":        "package d\n\nimport _ \"embed\"\n\n//go:embed data.txt\nvar data string\n",
	"d/data.txt":    "x\n",
	"d/d_test.go":   "package d\n\nimport \"testing\"\n\nfunc TestD(t *testing.T) {}\n",
	"e/testdata/in": "x\n",
	"e/e_test.go":   "package e\n\nimport \"testing\"\n\nfunc TestE(t *testing.T) {}\n",
	"README.md":     "x\n",
	"sub/go.mod":    "module example.com/sub\n\ngo 1.22\n",
	"sub/s_test.go": "package sub\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/a\"\n)\n\nfunc TestSub(t *testing.T) { a.A() }\n",
	"testdata/t.go": "package broken (\n",
	"vendor/v/v.go": "package v\n",
	"f/f.go":        "package f\n\nimport \"math/rand\"\n\nfunc F() int { return rand.Int() }\n\nfunc G() int { return 1 }\n",
	"f/f_test.go":   "package f\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { F() }\n\nfunc TestG(t *testing.T) { G() }\n",
	"g/g.go":        "package g\n\nconst (\n\tX = iota\n\tY\n)\n\nfunc UsesY() int { return Y }\n\nfunc init() { setUp() }\n\nfunc setUp() {}\n",
	"g/g_test.go":   "package g\n\nimport \"testing\"\n\nfunc TestY(t *testing.T) { UsesY() }\n\nfunc TestOther(t *testing.T) {}\n",
}

// What each kind of change reaches. The commands are whole, so that too many tests fail a case as well as too few.
func TestGoTestsThatAChangeReaches(t *testing.T) {
	edit := func(name, from, to string) map[string]string {
		if !strings.Contains(module[name], from) {
			t.Fatalf("%s has no %q", name, from)
		}
		return map[string]string{name: strings.Replace(module[name], from, to, 1)}
	}
	for name, c := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"a function, through others, other packages and another module": {edit("a/a.go", "return 1", "return 2"),
			[]string{"cd /p && go test -json -run '^(TestA|TestB|TestHelper)$' ./a ./b", "cd /p/sub && go test -json ."}},
		"one that only its test names":         {edit("a/a.go", "return 9", "return 8"), []string{"cd /p && go test -json -run '^(TestFar)$' ./a"}},
		"a method that an interface calls":     {edit("a/a.go", `"t"`, `"u"`), []string{"cd /p && go test -json -run '^(TestShow)$' ./b"}},
		"what runs when the package is loaded": {edit("c/c.go", "return 1", "return 7"), []string{"cd /p && go test -json ./c"}},
		"beside that":                          {edit("c/c.go", "return 2", "return 7"), []string{"cd /p && go test -json -run '^(TestPlain)$' ./c"}},
		"what init calls":                      {edit("g/g.go", "setUp() {}", "setUp() { println() }"), []string{"cd /p && go test -json ./g"}},
		"a constant above another":             {edit("g/g.go", "X = iota", "X = 1 + iota"), []string{"cd /p && go test -json -run '^(TestY)$' ./g"}},
		"an embedded file":                     {map[string]string{"d/data.txt": "y\n"}, []string{"cd /p && go test -json ./d"}},
		"test data":                            {map[string]string{"e/testdata/in": "y\n"}, []string{"cd /p && go test -json ./e"}},
		"a page":                               {map[string]string{"README.md": "y\n"}, nil},
		"an import of the same name":           {edit("f/f.go", "math/rand", "example.com/rand"), []string{"cd /p && go test -json -run '^(TestF)$' ./f"}},
		"a comment":                            {edit("a/a.go", "func A", "// A does.\nfunc A"), nil},
		"a build constraint":                   {edit("f/f.go", "package f", "//go:build linux\n\npackage f"), []string{"cd /p && go test -json ./f"}},
		"a test":                               {edit("c/c_test.go", "Plain()", "Plain(); C()"), []string{"cd /p && go test -json -run '^(TestPlain)$' ./c"}},
		"a new file":                           {map[string]string{"a/n.go": "package a\n\nfunc init() {}\n"}, []string{"cd /p && go test -json ./a ./b", "cd /p/sub && go test -json ."}},
		"a deleted package":                    {map[string]string{"a/a.go": "", "a/a_test.go": ""}, []string{"cd /p && go test -json -run '^(TestB|TestShow)$' ./b", "cd /p/sub && go test -json ."}},
		"versions":                             {map[string]string{"sub/go.mod": "module example.com/sub\n\ngo 1.23\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := commands(Plan(projectOf("/p", module, c.change)))
			want := c.want
			if name == "versions" { // everything, in both modules
				want = []string{"cd /p && go test -json ./a ./b ./c ./d ./e ./f ./g", "cd /p/sub && go test -json ."}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Go itself is the oracle: whatever is changed in a random program, every test whose result changes is among those that are
// run. The programs call through functions, methods, interfaces, variables, function values and init.
func TestNoAffectedGoTestIsLeftOut(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	ran, all := 0, 0
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 23))
		texts := randomModule(r)
		dir := t.TempDir()
		put(t, dir, texts)
		before := goResults(t, dir)
		for step := range 3 {
			var sources []string
			for name := range texts {
				if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
					sources = append(sources, name)
				}
			}
			slices.Sort(sources)
			name := sources[r.IntN(len(sources))]
			spots := number.FindAllStringIndex(texts[name], -1)
			at := spots[r.IntN(len(spots))]
			next := texts[name][:at[0]] + fmt.Sprint("+", 100+r.IntN(900), "*") + texts[name][at[0]+1:at[1]] + texts[name][at[1]:]
			put(t, dir, map[string]string{name: next})
			after := goResults(t, dir)
			put(t, dir, map[string]string{name: texts[name]})
			planned := strings.Join(commands(Plan(projectOf(dir, texts, map[string]string{name: next}))), "\n")
			for test, status := range after {
				all++
				pkg, fn, _ := strings.Cut(test, " ")
				runs := slices.ContainsFunc(strings.Split(planned, "\n"), func(line string) bool {
					return strings.Contains(line+" ", " ./"+strings.TrimPrefix(pkg, "example.com/r/")+" ") && (!strings.Contains(line, "-run") || regexp.MustCompile(`[(|^]`+fn+`[|)$]`).MatchString(line))
				})
				if runs {
					ran++
				} else if before[test] != status {
					t.Errorf("seed %d, step %d: %s was %s and is %s after %s\n%s\nplanned:\n%s", seed, step, test, before[test], status, name, next, planned)
				}
			}
		}
	}
	if ran == all {
		t.Errorf("all of %d tests were run each time: nothing was narrowed", all)
	}
}

var number = regexp.MustCompile(`\+[0-9]+`)

func put(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// goResults are how all tests of a module end, by package and name.
func goResults(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "test", "-json", "-vet=off", "./...")
	cmd.Dir = dir
	out, _ := cmd.Output()
	results := map[string]string{}
	for line := range strings.Lines(string(out)) {
		var e goEvent
		if json.Unmarshal([]byte(line), &e) == nil && e.Test != "" && (e.Action == "pass" || e.Action == "fail") {
			results[e.Package+" "+e.Test] = e.Action
		}
	}
	if len(results) == 0 {
		t.Fatalf("no test ran:\n%s", out)
	}
	return results
}

// randomModule makes packages p0 … p3, each using those before it in some ways. A test pins the value that its function has.
func randomModule(r *rand.Rand) map[string]string {
	texts := map[string]string{"go.mod": "module example.com/r\n\ngo 1.22\n"}
	for i := range 4 {
		var b, test strings.Builder
		fmt.Fprintf(&b, "package p%d\n\nimport \"fmt\"\n", i)
		uses := "0"
		if i > 0 {
			j := r.IntN(i)
			fmt.Fprintf(&b, "\nimport \"example.com/r/p%d\"\n", j)
			uses = []string{fmt.Sprintf("p%d.F0()", j), fmt.Sprintf("p%d.Var", j), fmt.Sprintf("len(fmt.Sprint(p%d.New()))", j), fmt.Sprintf("p%d.Value()", j), fmt.Sprintf("p%d.F1()", j)}[r.IntN(5)]
			fmt.Fprintf(&b, "\nvar _ = p%d.F2\n", j)
		}
		fmt.Fprintf(&b, "\ntype T struct{ n int }\n\nfunc (t T) String() string { return fmt.Sprint(t.n +%d) }\n\nfunc New() T { return T{n: inner() +%d} }\n\nfunc inner() int { return 1 +%d }\n", 1+r.IntN(9), 1+r.IntN(9), 1+r.IntN(9))
		fmt.Fprintf(&b, "\nvar Var = F0() +%d\n\nvar Value = func() int { return F1() +%d }\n\nvar set int\n\nfunc init() { set = F2() +%d }\n", 1+r.IntN(9), 1+r.IntN(9), 1+r.IntN(9))
		fmt.Fprintf(&b, "\nfunc F0() int { return %s +%d }\n\nfunc F1() int { return inner() +%d }\n\nfunc F2() int { return 5 +%d }\n\nfunc Set() int { return set }\n\nfunc Lone() int { return 7 +%d }\n", uses, 1+r.IntN(9), 1+r.IntN(9), 1+r.IntN(9), 1+r.IntN(9))
		fmt.Fprintf(&test, "package p%d_test\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n\n\t\"example.com/r/p%d\"\n)\n", i, i)
		// A hash of the value passes or fails as the value does, so nearly every change of it shows.
		for n, expr := range []string{"p.F0()", "p.F1()", "p.F2()", "p.Var", "p.Value()", "len(fmt.Sprint(p.New()))", "p.Set()", "p.Lone()"} {
			expr = strings.ReplaceAll(expr, "p.", fmt.Sprintf("p%d.", i))
			fmt.Fprintf(&test, "\nfunc TestX%d(t *testing.T) {\n\tif n := %s; n >= 100 {\n\t\tt.Fatal(n)\n\t}\n}\n", n, expr)
		}
		test.WriteString("\nvar _ = fmt.Sprint\n")
		texts[fmt.Sprintf("p%d/p.go", i)], texts[fmt.Sprintf("p%d/p_test.go", i)] = b.String(), test.String()
	}
	return texts
}

// A one-function change in this repository: what is between the last edit and the start of its tests.
func BenchmarkPlan(b *testing.B) {
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	texts := map[string]string{}
	if err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".cache" || e.Name() == ".git") {
			return errOr(err, filepath.SkipDir)
		}
		if text, err := os.ReadFile(path); err == nil && e.Type().IsRegular() && (strings.HasSuffix(path, ".go") || e.Name() == "go.mod") {
			texts[strings.TrimPrefix(path, root+"/")] = string(text)
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	const name = "tools/textutil/textutil.go"
	p := projectOf(root, texts, map[string]string{name: strings.Replace(texts[name], `return "1 " + noun`, `return "one " + noun`, 1)})
	for b.Loop() {
		if len(Plan(p)) == 0 {
			b.Fatal("no test is affected")
		}
	}
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
