package gofix

import (
	"context"
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

	"github.com/pillion-dev/pillion/tools/gofix/mutate"
)

// plainGo makes the go command, and so TypeCheck, work without the settings of the person who runs the tests.
func plainGo(t *testing.T) {
	t.Helper()
	t.Setenv("GOENV", "off")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOTOOLCHAIN", "local")
}

// packageDirs are the folders of a module that have Go files, without nested modules.
func packageDirs(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if b := e.Name(); path != root && (b == "vendor" || b == "testdata" || b == "node_modules" || b[0] == '.' || b[0] == '_' || exists(filepath.Join(path, "go.mod"))) {
			return filepath.SkipDir
		}
		if list, _ := filepath.Glob(filepath.Join(path, "*.go")); len(list) > 0 {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// checkedRoots are real modules: this one, the library, and others of the module cache. PILLION_MEND_MODULES names more.
func checkedRoots(t *testing.T) []string {
	t.Helper()
	own, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return append(modules(t), own, filepath.Join(shared().goroot, "src"))
}

// Real packages that compile have no error, whatever they import, and most of them can be judged.
func TestTypesOfPackagesThatCompile(t *testing.T) {
	plainGo(t)
	for _, root := range checkedRoots(t) {
		v := newView(t.Context(), root, nil)
		if v == nil {
			t.Errorf("%s is not read", root)
			continue
		}
		all, silent := 0, 0
		for i, dir := range packageDirs(t, root) {
			// documentation that does not compile, and a sample of the rest: there are hundreds of packages
			if inFolder(v.d.goroot, dir) && filepath.Base(dir) == "builtin" || i%4 != 0 {
				continue
			}
			of := withoutTests
			if i%20 == 0 { // what tests import may have to be loaded again
				of = []part{withTests, externalTests}[i/20%2]
			}
			found, sure := v.check(dir, of, false)
			if all++; !sure {
				silent++
			} else if len(found.errs) > 0 {
				t.Errorf("%s (part %d): %v", dir, of, found.errs[:min(3, len(found.errs))])
			}
		}
		t.Logf("%s: %d packages, %d not judged", root, all, silent)
		if silent > 1+all/8 {
			t.Errorf("%s: %d of %d packages are not judged", root, silent, all)
		}
	}
}

// compilerErrors are the places of the errors that the compiler reports in a package with another text of a file.
func compilerErrors(t *testing.T, path, text string) (places []string) {
	t.Helper()
	dir := t.TempDir()
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{path: filepath.Join(dir, "new.go")}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "new.go"), []byte(text), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-gcflags=-e", "-o", os.DevNull, ".")
	cmd.Dir = filepath.Dir(path)
	out, err := cmd.CombinedOutput()
	for _, m := range regexp.MustCompile(`(?m)^(?:\./)?([^\s:]+\.go):(\d+):`).FindAllStringSubmatch(string(out), -1) {
		name := filepath.Base(m[1])
		if m[1] == filepath.Join(dir, "new.go") || name == "new.go" {
			name = filepath.Base(path)
		}
		places = append(places, name+":"+m[2])
	}
	if err != nil && len(places) == 0 {
		t.Fatalf("%s: %s", path, out)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// Seeded mistakes in real packages: what types alone find is where the compiler finds errors, and nothing is found where it finds none.
func TestTypesOfSeededMistakes(t *testing.T) {
	plainGo(t)
	rng := rand.New(rand.NewPCG(11, 5))
	judged, wrong := 0, 0
	for _, root := range checkedRoots(t) {
		// The go command lays no text over files of the module cache.
		if inFolder(shared().modcache, root) {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(root)); err != nil {
				t.Fatal(err)
			}
			root = copied
		}
		dirs := packageDirs(t, root)
		rng.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
		done := 0
		for _, dir := range dirs {
			if done == seededRounds() {
				break
			}
			list, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			path := list[rng.IntN(len(list))]
			b, err := os.ReadFile(path)
			mistake, ok := mutate.Find(rng, mutate.Kinds[rng.IntN(len(mutate.Kinds))], string(b))
			if err != nil || !ok || strings.HasSuffix(path, "_test.go") {
				continue
			}
			text := mistake.Apply(string(b))
			report, sure := TypeCheck(t.Context(), []Edit{{Path: path, Text: text}}, nil)
			if !sure {
				continue
			}
			done++
			var places []string
			for _, e := range report.Errors {
				places = append(places, fmt.Sprintf("%s:%d", filepath.Base(e.Path), e.Line))
			}
			slices.Sort(places)
			places = slices.Compact(places)
			want := compilerErrors(t, path, text)
			if judged++; len(want) > 0 {
				wrong++
			}
			if !slices.Equal(places, want) {
				t.Errorf("%s: types alone find %q, the compiler %q\n%v", path, places, want, report.Errors)
			}
		}
	}
	t.Logf("%d edits, %d with errors", judged, wrong)
	if wrong == 0 {
		t.Errorf("none of %d edits is wrong, which compares nothing", judged)
	}
}

// seededRounds is how many mistakes are made in each module.
func seededRounds() int {
	rounds := 2
	_, _ = fmt.Sscan(os.Getenv("PILLION_MEND_ROUNDS"), &rounds)
	return rounds
}

// One module, whose packages use each other: what is judged, what is found, and where nothing is said.
func TestTypeCheckIsSilentWhereItWouldGuess(t *testing.T) {
	plainGo(t)
	replaced := func(how string) map[string]string {
		return map[string]string{"go.mod": "module example.com/m\n\ngo 1.24\n\nrequire example.com/x v1.0.0\n\nreplace example.com/x " + how + "\n", "x/go.mod": "module example.com/x\n", "x/x.go": "package x\n\nvar X = 1\n"}
	}
	const lib, use = "package lib\n\nfunc Twice(n int) int { return 2 * n }\n", "package use\n\nimport \"example.com/m/lib\"\n\nvar Four = lib.Twice(2)\n"
	for name, c := range map[string]struct {
		files map[string]string // beside the two packages; "" removes one of their files
		edits map[string]string // "" deletes
		env   [2]string
		want  string // the errors, or "?" where nothing is said
	}{
		"an error":                      {edits: map[string]string{"lib/lib.go": "package lib\n\nfunc Twice(n int) int { return 2 * m }\n"}, want: "lib.go:3: undefined: m"},
		"none":                          {edits: map[string]string{"lib/lib.go": lib + "\nvar x = Twice(1)\n"}},
		"a user breaks":                 {edits: map[string]string{"use/use.go": use + "\nvar x string = lib.Twice(1)\n"}, want: "use.go:7: cannot use lib.Twice(1) (value of type int) as string value in variable declaration"},
		"renamed with its user":         {edits: map[string]string{"lib/lib.go": strings.ReplaceAll(lib, "Twice", "Double"), "use/use.go": strings.ReplaceAll(use, "Twice", "Double")}},
		"renamed, and its user is not":  {edits: map[string]string{"lib/lib.go": strings.ReplaceAll(lib, "Twice", "Double"), "use/use.go": use + "\n"}, want: "use.go:5: undefined: lib.Twice"},
		"wrong, and its user is judged": {edits: map[string]string{"lib/lib.go": "package lib\n\nfunc Twice(n int) T { return 2 * n }\n", "use/use.go": use + "\n"}, want: "lib.go:3: undefined: T"},
		"a test":                        {edits: map[string]string{"lib/lib_test.go": "package lib\n\nvar x string = Twice(2)\n"}, want: "lib_test.go:3: cannot use Twice(2) (value of type int) as string value in variable declaration"},
		"a test of a user":              {edits: map[string]string{"lib/lib_test.go": "package lib\n\nimport \"example.com/m/use\"\n\nvar x = use.Four\n"}, want: "?"},
		"a test beside the package":     {edits: map[string]string{"lib/lib_test.go": "package lib_test\n\nimport \"example.com/m/lib\"\n\nvar x string = lib.Twice(2)\n"}, want: "lib_test.go:5: cannot use lib.Twice(2) (value of type int) as string value in variable declaration"},
		"beside it, with a user":        {edits: map[string]string{"lib/lib_test.go": "package lib_test\n\nimport (\n\t\"example.com/m/lib\"\n\t\"example.com/m/use\"\n)\n\nvar x, y string = lib.T{}, use.T\n"}, files: map[string]string{"lib/export_test.go": "package lib\n\ntype T = string\n\nvar unused = Twice(1)\n", "use/t.go": "package use\n\nimport \"example.com/m/lib\"\n\nvar T = lib.Twice\n"}, want: "lib_test.go:8: invalid composite literal type lib.T\nlib_test.go:8: cannot use use.T (variable of type func(n int) int) as string value in variable declaration"},
		"a test that others beside use": {edits: map[string]string{"lib/export_test.go": "package lib\n\nvar Exported = \"\"\n"}, files: map[string]string{"lib/export_test.go": "package lib\n\nvar Exported = 1\n", "lib/lib_test.go": "package lib_test\n\nimport \"example.com/m/lib\"\n\nvar x int = lib.Exported\n"}, want: "lib_test.go:5: cannot use lib.Exported (variable of type string) as int value in variable declaration"},
		"beside it, one that is wrong":  {edits: map[string]string{"lib/lib_test.go": "package lib_test\n\nvar x = m\n"}, files: map[string]string{"lib/other_test.go": "package lib_test\n\nvar y = m\n"}, want: "?"},
		"beside it, none can be read":   {edits: map[string]string{"lib/export_test.go": "package lib\n\nvar x = m\n"}, files: map[string]string{"lib/a_test.go": "package lib_test\n", "lib/b_test.go": "package other_test\n"}, want: "?"},
		"what only tests export":        {edits: map[string]string{"lib/lib_test.go": "package lib_test\n\nimport \"example.com/m/lib\"\n\nvar x = lib.T(1)\n", "use/use.go": use + "\nvar x = lib.T(1)\n"}, files: map[string]string{"lib/export_test.go": "package lib\n\ntype T int\n"}, want: "use.go:7: undefined: lib.T"},
		"beside it, another's":          {edits: map[string]string{"lib/lib_test.go": "package other_test\n\nvar x = m\n"}, want: "?"},
		"beside it, two packages":       {edits: map[string]string{"lib/lib_test.go": "package lib_test\n\nvar x = m\n"}, files: map[string]string{"lib/other_test.go": "package other_test\n"}, want: "?"},
		"a new package":                 {edits: map[string]string{"new/new.go": "package new\n\nvar x int = \"\"\n"}, want: "new.go:3: cannot use \"\" (untyped string constant) as int value in variable declaration"},
		"a new file, a deleted one":     {edits: map[string]string{"lib/lib.go": "", "lib/other.go": lib + "\nvar x = Twice(m)\n"}, want: "other.go:5: undefined: m"},
		"a deleted package":             {edits: map[string]string{"lib/lib.go": ""}, want: "?"},
		"it does not parse":             {edits: map[string]string{"lib/lib.go": "package lib\n\nfunc Twice(\n"}, want: "?"},
		"it was wrong before":           {files: map[string]string{"lib/wrong.go": "package lib\n\nvar x = m\n"}, edits: map[string]string{"lib/lib.go": lib + "\nvar y = m\n"}, want: "?"},
		"what it uses is wrong":         {files: map[string]string{"lib/wrong.go": "package lib\n\nvar X = m\n"}, edits: map[string]string{"use/use.go": use + "\nvar y = lib.X.Name\n"}, want: "?"},
		"not on this machine":           {edits: map[string]string{"lib/lib.go": "package lib\n\nimport \"example.com/missing\"\n\nvar x = missing.Y\n"}, want: "?"},
		"cgo":                           {files: map[string]string{"lib/c.go": "package lib\n\n// int f(void);\nimport \"C\"\n\nfunc F() int { return int(C.f()) }\n"}, edits: map[string]string{"lib/lib.go": lib + "\nvar x = m\n"}, want: "?"},
		"it imports what uses cgo":      {files: map[string]string{"lib/c.go": "package lib\n\n// typedef int t;\nimport \"C\"\n\ntype T C.t\n"}, edits: map[string]string{"use/use.go": use + "\nvar x = func() { for range lib.T(3) {} }\n"}, want: "?"},
		"another system":                {edits: map[string]string{"lib/lib_plan9.go": "package lib\n\nvar x = m\n"}, want: "?"},
		"a tag":                         {edits: map[string]string{"lib/lib.go": "//go:build special\n\n" + lib}, want: "?"},
		"tags of the go command":        {env: [2]string{"GOFLAGS", "-tags=special"}, edits: map[string]string{"lib/lib.go": lib + "\nvar x = m\n"}, want: "?"},
		"harmless flags":                {env: [2]string{"GOFLAGS", "-mod=mod -trimpath"}, edits: map[string]string{"lib/lib.go": lib + "\nvar x = m\n"}, want: "lib.go:5: undefined: m"},
		"a workspace":                   {files: map[string]string{"go.work": "go 1.24\n\nuse .\n"}, edits: map[string]string{"lib/lib.go": lib + "\nvar x = m\n"}, want: "?"},
		"a later library":               {files: map[string]string{"go.mod": "module example.com/m\n\ngo 1.24\n\ntoolchain go1.99.0\n"}, edits: map[string]string{"lib/lib.go": lib + "\nvar x = m\n"}, want: "?"},
		"an older language":             {files: map[string]string{"go.mod": "module example.com/m\n\ngo 1.17\n"}, edits: map[string]string{"lib/lib.go": lib + "\nfunc F[T any]() {}\n"}, want: "lib.go:5: type parameter requires go1.18 or later\nlib.go:5: predeclared any requires go1.18 or later"},
		"a replaced module":             {files: replaced("v1.0.0 => ./x"), edits: map[string]string{"use/use.go": "package use\n\nimport \"example.com/x\"\n\nvar y string = x.X\n"}, want: "use.go:5: cannot use x.X (variable of type int) as string value in variable declaration"},
		"another version is replaced":   {files: replaced("v1.1.0 => ./x"), edits: map[string]string{"use/use.go": "package use\n\nimport \"example.com/x\"\n\nvar y string = x.X\n"}, want: "?"},
		"a module below":                {files: map[string]string{"lib/go.mod": "module example.com/m/lib\n"}, edits: map[string]string{"use/use.go": use + "\nvar x = m\n"}, want: "?"},
		"two packages in a folder":      {edits: map[string]string{"lib/other.go": "package other\n"}, want: "?"},
		"not Go":                        {edits: map[string]string{"lib/lib.go": lib + "\nvar x = m\n", "lib/a.txt": "x"}, want: "?"},
		"a //line comment":              {edits: map[string]string{"lib/lib.go": lib + "\n//line other.y:90\nvar x = m\n"}, want: "lib.go:6: undefined: m"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			root := t.TempDir()
			all := map[string]string{"go.mod": "module example.com/m\n\ngo 1.24\n", "lib/lib.go": lib, "use/use.go": use}
			maps.Copy(all, c.files)
			for name, text := range all {
				path := filepath.Join(root, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var edits []Edit
			for name, text := range c.edits {
				edits = append(edits, Edit{Path: filepath.Join(root, filepath.FromSlash(name)), Text: text, Delete: text == ""})
			}
			got := "?"
			if report, ok := TypeCheck(t.Context(), edits, nil); ok {
				var all []string
				for _, e := range report.Errors {
					all = append(all, fmt.Sprintf("%s:%d: %s", filepath.Base(e.Path), e.Line, e.Message))
				}
				got = strings.Join(all, "\n")
			}
			if got != c.want {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

// What the person has not saved yet counts for the packages that are imported, too.
func TestTypesOfUnsavedFiles(t *testing.T) {
	plainGo(t)
	root := t.TempDir()
	lib, use := filepath.Join(root, "lib", "lib.go"), filepath.Join(root, "use.go")
	for path, text := range map[string]string{filepath.Join(root, "go.mod"): "module m\n", lib: "package lib\n", use: "package m\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unsaved := func(path string) (string, bool) { return "package lib\n\nvar New = 1\n", path == lib }
	report, ok := TypeCheck(t.Context(), []Edit{{Path: use, Text: "package m\n\nimport \"m/lib\"\n\nvar x = lib.New\n"}}, unsaved)
	if !ok || len(report.Errors) > 0 || !slices.Equal(report.Packages, []string{"m"}) {
		t.Errorf("got %+v %v", report, ok)
	}
}

// A check that nobody waits for any more ends, and says nothing.
func TestTypeCheckIsCancelled(t *testing.T) {
	plainGo(t)
	own, err := filepath.Abs(filepath.Join("..", "..", "sidecar", "acp", "methods.go"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	report, ok := TypeCheck(ctx, []Edit{{Path: own, Text: "package acp\n"}}, func(string) (string, bool) {
		if read++; read == 3 {
			cancel()
		}
		return "", false
	})
	if ok || read > 4 {
		t.Errorf("it went on: %d files were read, %+v", read, report)
	}
}
