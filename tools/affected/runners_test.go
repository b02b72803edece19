package affected

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// What the other languages' runners are told to run, and for a baseline.
func TestWhatOtherRunnersRun(t *testing.T) {
	script := func(program string) map[string]string {
		return map[string]string{"package.json": `{"devDependencies":{"` + program + `":"1"}}`, "node_modules/.bin/" + program: "", "src/a.ts": "a", "src/it's.ts": "b", "README.md": "r",
			"packages/x/package.json": `{"name":"x"}`, "packages/x/i.ts": "i"}
	}
	python := map[string]string{"pyproject.toml": "", "pkg/__init__.py": "", "pkg/a.py": "x = 1\n", "pkg/b.py": "from .a import x\n", "pkg/c.py": "import os\n", "tests/conftest.py": "from pkg import c\n",
		"tests/test_b.py": "from pkg.b import (\n    y,\n)\n", "tests/test_c.py": "import pkg.c as c\n", "tests/deep/test_d.py": "def test(): pass\n", "src/lib/m.py": "", "other/test_m.py": "from lib import m\n"}
	cargo := map[string]string{"Cargo.toml": "[workspace]\nmembers = [\"a\", \"b\", \"c\"]\n", "a/Cargo.toml": "[package]\nname = \"alpha\"\n", "a/src/lib.rs": "a", "b/Cargo.toml": "[package]\nedition = \"2021\"\nname = \"beta\"\n\n[dependencies]\nalpha = { path = \"../a\" }\n", "b/src/lib.rs": "b",
		"c/Cargo.toml": "[package]\nname = \"gamma\"\n", "c/src/main.rs": "c"}
	t.Setenv("PATH", t.TempDir()) // no pytest of this machine
	pytest := "cd /p && python3 -m pytest -q -p no:cacheprovider --junit-xml=/dev/stdout"
	for _, c := range []struct {
		name     string
		texts    map[string]string
		proposed map[string]string
		want     []string
	}{
		{"vitest", script("vitest"), map[string]string{"src/a.ts": "b", "src/it's.ts": "c"}, []string{`cd /p && ./node_modules/.bin/vitest related --run --reporter=json --passWithNoTests ./src/a.ts './src/it'\''s.ts'`}},
		{"jest", script("jest"), map[string]string{"src/a.ts": "b"}, []string{"cd /p && ./node_modules/.bin/jest --json --passWithNoTests --findRelatedTests ./src/a.ts"}},
		{"a package of a workspace", script("jest"), map[string]string{"packages/x/i.ts": "j"}, []string{"cd /p && ./node_modules/.bin/jest --json --passWithNoTests --findRelatedTests ./packages/x/i.ts"}},
		{"versions", script("jest"), map[string]string{"package.json": `{"devDependencies":{"jest":"2"}}`}, []string{"cd /p && ./node_modules/.bin/jest --json --passWithNoTests"}},
		{"a script that is gone", script("jest"), map[string]string{"src/a.ts": ""}, []string{"cd /p && ./node_modules/.bin/jest --json --passWithNoTests"}},
		{"a page", script("jest"), map[string]string{"README.md": "s"}, nil},
		{"python through a module", python, map[string]string{"pkg/a.py": "x = 2\n"}, []string{pytest + " ./tests/test_b.py"}},
		{"python through conftest", python, map[string]string{"pkg/c.py": "import sys\n"}, []string{pytest + " ./tests/deep/test_d.py ./tests/test_b.py ./tests/test_c.py"}},
		{"python below src", python, map[string]string{"src/lib/m.py": "x"}, []string{pytest + " ./other/test_m.py"}},
		{"python settings", python, map[string]string{"pyproject.toml": "x"}, []string{pytest}},
		{"rust with a dependent", cargo, map[string]string{"a/src/lib.rs": "x"}, []string{"cd /p && cargo test --no-fail-fast -p alpha -p beta"}},
		{"rust, inherited from the workspace", map[string]string{"Cargo.toml": "[workspace]\nmembers = [\"a\", \"b\", \"c\"]\n\n[workspace.dependencies]\nalpha = { path = \"a\" }\n", "a/Cargo.toml": "[package]\nname = \"alpha\"\n", "a/src/lib.rs": "a",
			"b/Cargo.toml": "[package]\nname = \"beta\"\n\n[dependencies]\nalpha.workspace = true\n", "b/src/lib.rs": "b", "c/Cargo.toml": "[package]\nname = \"gamma\"\n", "c/src/lib.rs": "c"},
			map[string]string{"a/src/lib.rs": "x"}, []string{"cd /p && cargo test --no-fail-fast -p alpha -p beta"}},
		{"rust alone", cargo, map[string]string{"c/src/main.rs": "x"}, []string{"cd /p && cargo test --no-fail-fast -p gamma"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := commands(Plan(projectOf("/p", c.texts, c.proposed))); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	failed := []change.TestResult{{Suite: "/p/src/a.test.ts", Name: "x", Status: change.EvidenceFailed}}
	if got := Plan(projectOf("/p", script("vitest"), map[string]string{"src/a.ts": "b"}))[0].Only(failed).Command(); got != "cd /p && ./node_modules/.bin/vitest run --reporter=json --passWithNoTests ./src/a.test.ts" {
		t.Error(got)
	}
	failed = []change.TestResult{{Suite: "tests.test_c", Name: "x", Status: change.EvidenceFailed}}
	if got := Plan(projectOf("/p", python, map[string]string{"pkg/c.py": "import sys\n"}))[0].Only(failed).Command(); got != pytest+" ./tests/test_c.py" {
		t.Error(got)
	}
}

// Recorded output of the real programs, with what tests print themselves in it: one test of each kind passes, fails and is
// skipped.
func TestResultsOfOtherRunners(t *testing.T) {
	for name, c := range map[string]struct {
		r    runner
		want string
		says string
	}{
		"jest":   {scriptTests{}, "/p/src/a.test.js a › one is one passed|/p/src/a.test.js a › one is two failed|/p/src/a.test.js a › later skipped", "Received: 1"},
		"vitest": {scriptTests{}, "/p/vt/a.test.mjs a › one is one passed|/p/vt/a.test.mjs a › one is two failed|/p/vt/a.test.mjs a › later skipped", "expected 1 to be 2"},
		"pytest": {pyTests{}, "tests.test_a test_good passed|tests.test_a test_bad failed|tests.test_a test_later skipped|tests.test_b test_setup failed", "assert 1 == 2"},
		"cargo":  {cargoTests{}, "src/lib.rs tests::good passed|src/lib.rs tests::later skipped|src/lib.rs tests::bad failed|u src/lib.rs - one (line 1) passed", "left: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			output := ""
			for _, r := range (Run{runner: c.r}).Results(string(text)) {
				got = append(got, r.Suite+" "+r.Name+" "+string(r.Status))
				if (r.Output != "") != (r.Status == change.EvidenceFailed) {
					t.Errorf("%s: %s with output %q", r.Name, r.Status, r.Output)
				}
				output += r.Output
			}
			if strings.Join(got, "|") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.ReplaceAll(c.want, "|", "\n"))
			}
			if !strings.Contains(output, c.says) {
				t.Errorf("%q is not in %q", c.says, output)
			}
		})
	}
}

// Output that is cut off, empty or something else entirely gives what can be read of it and never a panic.
func FuzzResults(f *testing.F) {
	for _, name := range []string{"jest", "vitest", "pytest", "cargo"} {
		if text, err := os.ReadFile(filepath.Join("testdata", name+".txt")); err == nil {
			f.Add(string(text))
		}
	}
	f.Add(`{"Action":"fail","Package":"p","Test":"T","Elapsed":0.1}` + "\n" + `{"Action":"fail","Package":"p"}`)
	f.Add("{\"testResults\":[{\"assertionResults\":null,\"status\":\"failed\"}]}")
	f.Fuzz(func(t *testing.T, output string) {
		for _, r := range runners {
			for _, x := range (Run{runner: r}).Results(output) {
				if x.Status != change.EvidencePassed && x.Status != change.EvidenceFailed && x.Status != change.EvidenceSkipped {
					t.Errorf("status %q", x.Status)
				}
			}
		}
	})
}

// A file that cannot be imported is the file's failure, so that the baseline runs that file and no other.
func TestAFileThatPytestCannotImport(t *testing.T) {
	got := pyTests{}.results(`<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="0" skipped="0" tests="1" time="0.1"><testcase classname="" name="tests.test_c" time="0.000"><error message="collection failure">E   ImportError</error></testcase></testsuite></testsuites>`)
	if len(got) != 1 || !got[0].Whole() || got[0].Suite != "tests.test_c" || got[0].Status != change.EvidenceFailed {
		t.Fatalf("%+v", got)
	}
	r := Run{Args: []string{"python3", "-m", "pytest", "--junit-xml=/dev/stdout", "./tests/test_b.py", "./tests/test_c.py"}}
	if only := (pyTests{}).only(r, got); !slices.Equal(only.Args[4:], []string{"./tests/test_c.py"}) {
		t.Errorf("%q", only.Args)
	}
}

// What real programs print where the runner is not installed says why nothing was tested; a test that fails does not.
func TestAMissingRunnerIsNoFailure(t *testing.T) {
	python := Run{Dir: "/p", Args: []string{"python3", "-m", "pytest"}}
	npx := Run{Dir: "/p", Args: []string{"npx", "--no-install", "vitest", "related"}}
	for _, c := range []struct {
		run    Run
		output string
		exit   int
		want   string
	}{
		{python, "/usr/local/bin/python3: No module named pytest\n", 1, "python3 has no pytest; install it there"},
		{python, "E   ModuleNotFoundError: No module named 'pytest_mock'\n", 2, ""},
		{python, "E   ModuleNotFoundError: No module named 'requests'\n", 2, ""},
		{python, "bash: line 1: python3: command not found\n", 127, "python3 was not found"},
		{npx, "npm error npx canceled due to missing packages and no YES option: [\"vitest@4.1.12\"]\n", 1, "vitest is not installed; install the packages of p"},
		{npx, "FAIL a.test.ts\n", 1, ""},
	} {
		if got := c.run.NotInstalled(c.output, c.exit); got != c.want {
			t.Errorf("%q: %q, want %q", c.output, got, c.want)
		}
	}
}

// The tests run with the interpreter that has pytest: a version manager's python3 may be in front of it on PATH.
func TestThePythonThatHasPytest(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	system := filepath.Join(second, "python3")
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", first+string(filepath.ListSeparator)+second)
	for _, c := range []struct{ name, pytest, want string }{
		{"no pytest", "", "python3"},
		{"pytest of the other one", "#! " + system + "\nimport pytest\n", system},
		{"a shim", "#!/usr/bin/env bash\nexec pyenv\n", "python3"},
		{"whatever python3 is", "#!/usr/bin/env python3\n", "python3"},
		{"pytest of the first one", "#!" + filepath.Join(first, "python3") + "\n", "python3"},
		{"no script", "\x7fELF", "python3"},
	} {
		put(filepath.Join(first, "python3"), "#!/bin/sh\n")
		put(system, "#!/bin/sh\n")
		if c.pytest != "" {
			put(filepath.Join(second, "pytest"), c.pytest)
		}
		if got := pyPython(); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
