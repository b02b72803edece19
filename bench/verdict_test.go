package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

func TestMutantsAreSeededAndDiffer(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go":          "package a\n\nfunc F(n int) int {\n\tm := n\n\treturn m\n}\n\n\ntype T struct{ s string }\n\nfunc (t T) G() string {\n\treturn t.s\n}\n",
		"testdata/b.go": "package b\n\nfunc F() {}\n",
		"notes.txt":     "func F() {}\n\nx",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one, err := mutants(dir, "go", 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := mutants(dir, "go", 12, 1)
	other, _ := mutants(dir, "go", 12, 2)
	if !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, other) {
		t.Error("the seed does not decide")
	}
	if len(one) < 8 {
		t.Errorf("only %d edits", len(one))
	}
	for i, m := range one {
		if m.file != "a.go" || m.old == m.text || slices.ContainsFunc(one[:i], func(x mutant) bool { return x.text == m.text }) {
			t.Errorf("%d: %+v", i, m)
		}
		if calm := m.kind == "a comment" || m.kind == "a blank line"; calm != (i%4 == 3) {
			t.Errorf("%d is %q", i, m.kind)
		}
	}
	if _, err := mutants(dir, "ts", 1, 1); err == nil {
		t.Error("edits of a project without files of the language")
	}
}

func TestTally(t *testing.T) {
	truth := []finding{{"a.go", 3, "x"}, {"b.go", 9, "y"}}
	at := func(file string, line int) []finding { return []finding{{file, line, "m"}} }
	tl := &tally{}
	for _, c := range []verdictCase{
		{Edit: "caught, one of two named", Truth: truth, Certainty: change.Fresh, Introduced: at("a.go", 3)},
		{Edit: "missed and fresh", Truth: truth, Certainty: change.Fresh},
		{Edit: "missed, but not fresh", Truth: truth, Certainty: change.Partial},
		{Edit: "missed and pending", Truth: truth, Certainty: change.Pending},
		{Edit: "harmless", Certainty: change.Fresh},
		{Edit: "false alarm", Certainty: change.Fresh, Introduced: at("a.go", 1)},
	} {
		tl.add(c)
	}
	if tl.edits != 6 || tl.breaking != 4 || tl.caught != 1 || tl.errors != 8 || tl.named != 1 || tl.harmless != 2 || tl.alarms != 1 || tl.falseFresh != 1 || tl.certainty[change.Fresh] != 4 {
		t.Errorf("%+v", tl)
	}
}

// What is measured once is not measured again, also when the measurement was killed while it wrote.
func TestCasesOutliveAStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "cases.jsonl")
	log, err := openCases(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []verdictCase{
		{Language: "go", Project: "p", Edit: "1", Truth: []finding{{"a.go", 3, "x"}}, Certainty: change.Fresh, MS: 12.5},
		{Language: "go", Project: "p", Edit: "2", Certainty: change.Partial, Reason: "r"},
	} {
		if err := log.add(c); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-9], 0o600); err != nil { // the second line is cut off
		t.Fatal(err)
	}
	again, err := openCases(path)
	if err != nil || len(again.cases) != 1 {
		t.Fatalf("%v %v", again.cases, err)
	}
	if err := again.add(verdictCase{Language: "go", Project: "p", Edit: "1", Truth: []finding{{"a.go", 3, "x"}}, Introduced: []finding{{"a.go", 3, "y"}}}); err != nil {
		t.Fatal(err)
	}
	if again, err = openCases(path); err != nil || len(again.order) != 1 {
		t.Fatalf("%v %v", again.order, err)
	}
	c := again.cases[caseKey("go", "p", "1")]
	if !c.caught() || c.named() != 1 || c.differs() {
		t.Errorf("the later line does not count: %+v", c)
	}
}

func TestCompilersAreRead(t *testing.T) {
	for _, c := range []struct {
		out  string
		with func(string) []finding
		want []finding
	}{
		{"# x/lib\nlib/a.go:3:5: undefined: y\n./main.go:9:1: missing return\n", func(s string) []finding { return parseFindings([]byte(s), "/p", colonPlace) }, []finding{{"lib/a.go", 3, "undefined: y"}, {"main.go", 9, "missing return"}}},
		{"vet: ./a_test.go:7:2: undefined: z\n", func(s string) []finding { return parseFindings([]byte(s), "/p", colonPlace) }, []finding{{"a_test.go", 7, "undefined: z"}}},
		{"src/a.ts(3,9): error TS2304: Cannot find name 'x'.\n  note\n", func(s string) []finding { return parseFindings([]byte(s), "/p", tscPlace) }, []finding{{"src/a.ts", 3, "TS2304: Cannot find name 'x'."}}},
		{"In file included from b.c:1:\na.h:4:2: error: unknown type\nb.c:5:1: warning: w\n/p/b.c:6:1: fatal error: f\n", func(s string) []finding { return parseFindings([]byte(s), "/p", gccPlace) }, []finding{{"a.h", 4, "unknown type"}, {"b.c", 6, "f"}}},
	} {
		if got := c.with(c.out); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v", c.out, got)
		}
	}
}

func TestWhatWasThereIsNotNew(t *testing.T) {
	before := []finding{{"a", 1, "x"}, {"a", 5, "x"}, {"b", 2, "y"}}
	after := []finding{{"a", 2, "x"}, {"a", 6, "x"}, {"b", 2, "z"}, {"b", 2, "y2"}, {"a", 9, "x"}} // a line more in a; another error in b's line
	if got := introduced(before, after); !slices.Equal(got, []finding{{"b", 2, "z"}, {"a", 9, "x"}}) {
		t.Errorf("%v", got)
	}
}

// The small form of the part: a project of three packages, every edit judged by the compiler. Nothing that breaks it may be
// called fresh without an error.
func TestTheVerdictOfASmallProject(t *testing.T) {
	if testing.Short() {
		t.Skip("real servers are slow")
	}
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed: scripts/setup.sh")
	}
	project := corpus{"go", "small", func(_ context.Context, dir string) error {
		for name, text := range map[string]string{
			"go.mod":          "module small\n\ngo 1.24\n",
			"lib/lib.go":      "package lib\n\n// T counts.\ntype T struct {\n\tName string\n\tN int\n}\n\n// New makes one.\nfunc New(name string) *T {\n\tt := &T{Name: name}\n\treturn t\n}\n\n// Add adds.\nfunc (t *T) Add(n int) int {\n\tt.N += n\n\treturn t.N\n}\n",
			"lib/lib_test.go": "package lib\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := New(\"x\").Add(2); got != 2 {\n\t\tt.Error(got)\n\t}\n}\n",
			"user/user.go":    "package user\n\nimport \"small/lib\"\n\n// Twice counts twice.\nfunc Twice(name string) (string, int) {\n\tt := lib.New(name)\n\tt.Add(1)\n\tn := t.Add(1)\n\treturn t.Name, n\n}\n",
			"cmd/main.go":     "package main\n\nimport \"small/user\"\n\nfunc main() {\n\tname, n := user.Twice(\"x\")\n\tprintln(name, n)\n}\n",
		} {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}, goTruth, nil, 24}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	log, err := openCases(filepath.Join(t.TempDir(), "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r := &verdicts{log: log, print: func(line string) { t.Log(line) }}
	if err := r.run(ctx, project, filepath.Join(t.TempDir(), "small"), 24, nil); err != nil {
		t.Fatal(err)
	}
	tl := &tally{}
	for _, c := range log.cases {
		tl.add(c)
	}
	if tl.breaking < 10 || tl.harmless < 5 {
		t.Errorf("%d edits break it, %d do not: too few to show anything", tl.breaking, tl.harmless)
	}
	if tl.caught != tl.breaking || tl.falseFresh != 0 || tl.alarms != 0 {
		t.Errorf("caught %d of %d, %d false fresh, %d false alarms", tl.caught, tl.breaking, tl.falseFresh, tl.alarms)
	}
}

// After an edit of a header, what includes it is compiled, through another header as well; also what included it only before an edit of that one.
func TestWhatIncludesAHeaderIsCompiled(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"base.h": "int base(void);\n", "mid.h": "#include \"base.h\"\n", "a.c": "#include \"mid.h\"\nint a(void) { return base(); }\n", "b.c": "int b;\n",
	} {
		write(name, text)
	}
	check := nativeTruth("-Werror=implicit-function-declaration", "-I.")
	files := func(edited string) (names []string) {
		t.Helper()
		all, err := check(t.Context(), dir, edited)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range introduced(nil, all) {
			names = append(names, f.File)
		}
		return names
	}
	if got := files(""); got != nil {
		t.Fatalf("it has errors of its own in %v", got)
	}
	write("mid.h", "nothing\n")
	if got := files("mid.h"); !slices.Contains(got, "mid.h") && !slices.Contains(got, "a.c") {
		t.Errorf("mid.h: %v", got)
	}
	write("mid.h", "#include \"base.h\"\n")
	write("base.h", "int base(int);\n")
	write("b.c", "int b = wrong;\n") // was not edited, as far as the compiler is told
	if got := files("base.h"); !slices.Equal(got, []string{"a.c"}) {
		t.Errorf("base.h: %v", got)
	}
}

// An agent's edit tool gets a passage that occurs once, in whole lines.
func TestQuotationOccursOnce(t *testing.T) {
	for _, c := range []struct{ name, old, text, before, after string }{
		{"one line", "a\nb\nc\n", "a\nx\nc\n", "b\n", "x\n"},
		{"a line that repeats", "b\nb\nc\n", "b\nx\nc\n", "b\nb\nc\n", "b\nx\nc\n"},
		{"a deleted line", "a\nb\nc\n", "a\nc\n", "b\n", ""},
		{"an inserted line", "a\nb\n", "a\nx\nb\n", "a\nb\n", "a\nx\nb\n"},
		{"at the end", "a\nb\n", "a\nb\nx\n", "b\n", "b\nx\n"},
		{"without a line end", "a\nb", "a\nc", "b", "c"},
	} {
		before, after := quotation(c.old, c.text)
		if before != c.before || after != c.after {
			t.Errorf("%s: %q → %q, want %q → %q", c.name, before, after, c.before, c.after)
		}
		if strings.Count(c.old, before) != 1 || strings.Replace(c.old, before, after, 1) != c.text {
			t.Errorf("%s: %q does not make the edit", c.name, before)
		}
	}
}

// What is read from an edit's result, from Pillion's refusal, and from a message to the editor.
func TestErrorsThatAnAgentTells(t *testing.T) {
	result := "Edit applied successfully.\n\nLSP errors detected in this file, please fix:\n<diagnostics file=\"/p/a.go\">\nERROR [3:2] undefined: x\n\tmore\n</diagnostics>\n" +
		"LSP errors detected in other files:\n<diagnostics file=\"/p/b/b.go\">\nERROR [9:1] undefined: y\n</diagnostics>"
	if got := toldErrors(result, "/p"); !slices.Equal(got, []finding{{"a.go", 3, "undefined: x"}, {"b/b.go", 9, "undefined: y"}}) {
		t.Errorf("%v", got)
	}
	if got := refusedFor("Nothing was written, and the user was not asked yet: it introduces 1 error:\na.go:3:2: undefined: x\n\nPropose the change again"); !slices.Equal(got, []finding{{"a.go", 3, "undefined: x"}}) {
		t.Errorf("%v", got)
	}
	verdict := func(certainty string) []byte {
		return []byte(`{"params":{"update":{"_meta":{"pillion":{"diagnostics":{"certainty":"` + certainty + `","introduced":[{"path":"/p/a.go","line":3,"severity":"error","message":"m"},{"path":"/p/a.go","line":4,"severity":"warning","message":"w"}]}}}}}}`)
	}
	if got, final := shownVerdict(verdict("fresh"), "/p"); !final || !slices.Equal(got, []finding{{"a.go", 3, "m"}}) {
		t.Errorf("%v %v", got, final)
	}
	if got, final := shownVerdict(verdict("pending"), "/p"); final || len(got) > 0 {
		t.Errorf("a verdict that is not final: %v", got)
	}
	if _, final := shownVerdict([]byte(`{"params":{"diagnostics":[]}}`), "/p"); final {
		t.Error("no verdict at all")
	}
}

func TestPHPTruth(t *testing.T) {
	php, err := exec.LookPath("php")
	if err != nil {
		t.Skip("php is not installed")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a.php": "<?php\nfunction f() {\n  return 1\n}\n", "b.php": "<?php\nunknown();\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, edited := range []string{"", "a.php"} {
		if got, err := phpTruth(php)(t.Context(), dir, edited); err != nil || len(got) != 1 || got[0].File != "a.php" || got[0].Line != 4 {
			t.Errorf("%v %v", got, err)
		}
	}
}

// writer returns a function that makes files in a folder.
func writer(t *testing.T, dir string) func(name, text string) {
	return func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// An error that a compiler reports without a file and line counts as a finding; a compiler that does not compile at all is a refusal.
func TestACompilerThatRefuses(t *testing.T) {
	dir := t.TempDir()
	write := writer(t, dir)
	write("a.go", "package a\n")
	if got, err := goTruth(t.Context(), dir, ""); !errors.As(err, new(refusal)) {
		t.Errorf("without go.mod: %v %v", got, err)
	}
	write("go.mod", "module m\n\ngo 1.24\n")
	if got, err := goTruth(t.Context(), dir, ""); err != nil || len(got) > 0 {
		t.Errorf("without an error: %v %v", got, err)
	}
	write("b.go", "package b\n")
	if got, err := goTruth(t.Context(), dir, ""); err != nil || len(got) == 0 {
		t.Errorf("two packages in a folder: %v %v", got, err)
	}
}

// Every error of a package's tests is a finding, one that a package has with and without its tests is one, and a package of which the
// compiler says nothing, because it imports one that does not compile, is no part of a project.
func TestGoTruth(t *testing.T) {
	dir := t.TempDir()
	write := writer(t, dir)
	write("go.mod", "module m\n\ngo 1.24\n")
	write("a/a.go", "package a\n\nvar A int = \"\"\n")
	write("b/b.go", "package b\n\nimport _ \"m/a\"\n")
	write("c/c.go", "package c\n")
	write("c/c_test.go", "package c\n\nvar X int = \"\"\n\nvar Y int = \"\"\n")
	write("c/x_test.go", "package c_test\n\nimport _ \"m/a\"\n")
	write("d/d.go", "package d\n\nimport _ \"m/none\"\n")
	places := func() (all []string) {
		got, err := goTruth(t.Context(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range got {
			all = append(all, fmt.Sprintf("%s:%d", f.File, f.Line))
		}
		slices.Sort(all)
		return all
	}
	want := []string{"a/a.go:3", "c/c_test.go:3", "c/c_test.go:5", "d/d.go:3"}
	if got := places(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if err := removeUncompiled(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"a/a.go": true, "b/b.go": false, "c/c.go": true, "c/c_test.go": true, "c/x_test.go": false, "d/d.go": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := places(); !slices.Equal(got, want[:3]) {
		t.Errorf("without what does not compile: %v", got)
	}
}

// Every tsconfig.json is compiled: in an editor, a file's project is the nearest one above it.
func TestEveryTypeScriptProjectIsCompiled(t *testing.T) {
	_, _, with := corpusServers()
	if bin := os.Getenv("PILLION_TEST_SERVERS"); with.tsc == "" && bin != "" {
		with.tsc = filepath.Join(bin, "tsc")
	}
	if with.tsc == "" {
		t.Skip("tsc is not installed")
	}
	dir := t.TempDir()
	const options = `"compilerOptions":{"strict":true,"composite":true,"types":[],"lib":["es2022"],"module":"esnext","target":"es2022"}`
	for name, text := range map[string]string{
		"tsconfig.json":                `{"files":[],"references":[{"path":"./lib"}]}`,
		"lib/tsconfig.json":            `{` + options + `,"include":["*.ts"]}`,
		"lib/a.ts":                     "export const a: number = 1\n",
		"test/tsconfig.json":           `{` + options + `,"include":["*.ts"],"references":[{"path":"../lib"}]}`,
		"test/b.ts":                    "import { a } from '../lib/a'\nexport const b: string = a\n",
		"node_modules/x/tsconfig.json": `{"files":["none.ts"]}`,
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tscTruth(with.tsc)(t.Context(), dir, "")
	if err != nil || len(got) != 1 || got[0].File != "test/b.ts" || got[0].Line != 2 {
		t.Errorf("%v %v", got, err)
	}
}

// Files come, go and move, and what an edit has made is gone when it is taken back.
func TestEditsOfATree(t *testing.T) {
	dir := t.TempDir()
	texts := map[string]string{"go.mod": "module m\n\ngo 1.24\n", "a.go": "package m\n\nimport \"m/lib\"\n\nfunc F() int { return lib.N }\n", "lib/lib.go": "package lib\n\nvar N int\n"}
	for name, text := range texts {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	now := func() map[string]string {
		t.Helper()
		all := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(dir, path)
			if err == nil && d.IsDir() && rel != "." && rel != "lib" {
				all[rel] = "a folder"
			} else if err == nil && !d.IsDir() {
				b, _ := os.ReadFile(path)
				all[filepath.ToSlash(rel)] = string(b)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	edits, err := treeMutants(dir, "go", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, e := range edits {
		kinds[e.kind] = true
		for _, step := range []func(string) error{e.put, e.takeBack, e.put, e.reverse().put} {
			if err := step(dir); err != nil {
				t.Fatal(err)
			}
		}
		if got := now(); !reflect.DeepEqual(got, texts) {
			t.Fatalf("%s is not taken back: %v", e.kind, got)
		}
		if err := e.put(dir); err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(now(), texts) {
			t.Errorf("%s does nothing", e.kind)
		}
		if err := e.takeBack(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range treeKinds["go"] {
		if !kinds[k.name] {
			t.Errorf("no edit of the kind %q", k.name)
		}
	}
	if again, _ := treeMutants(dir, "go", 100, 1); !reflect.DeepEqual(edits, again) {
		t.Error("the seed does not decide")
	}
}
