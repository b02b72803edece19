package affected

import (
	"bufio"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// pyTests runs pytest. pytest has no import graph, so the imports of all files are read as text and resolved with the project's
// files. An import that is computed at run time is not found, so its test can be missed.
type pyTests struct{}

var (
	// pyFrom and pyImport match "from a.b import c, d", "from . import c" and "import a.b, c as d". They also match indented lines,
	// because imports inside a function are common. Lines of a string that look like an import only add tests. Names in parentheses
	// may be on several lines.
	pyFrom = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]+)`)
	})
	pyImport = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*import[ \t]+([^\n#;]+)`) })
	// pyTestFile is pytest's default python_files (docs.pytest.org, "Conventions for Python test discovery"). If a project sets
	// another pattern, only files that match this one are found.
	pyTestFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(test_.*|.*_test)\.py$`) })
)

// plan implements runner. A project without files that look like tests is assumed not to use pytest.
func (pyTests) plan(p *Project) []Run {
	var files []string
	for _, f := range p.List {
		if strings.HasSuffix(f, ".py") {
			files = append(files, f)
		}
	}
	uses := slices.ContainsFunc(files, func(f string) bool { return pyTestFile().MatchString(filepath.Base(f)) })
	changed := slices.DeleteFunc(p.changedPaths(), func(f string) bool { return !strings.HasSuffix(f, ".py") && !pySettings(f) })
	if !uses || len(changed) == 0 {
		return nil
	}
	// The project's own interpreter has its dependencies.
	program := pyPython()
	if at, ok := p.installed(p.Root, ".venv/bin/python", "venv/bin/python"); ok {
		program = rel(p.Root, at)
	}
	// The run must write nothing into the project: no .pytest_cache, and the report on standard output. -q keeps the other text
	// short.
	args := []string{program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=/dev/stdout"}
	if slices.ContainsFunc(changed, pySettings) {
		return []Run{{Dir: p.Root, Args: args, Name: "pytest, all tests"}}
	}
	var tests []string
	reached := reach(changed, pyUsers(p, files))
	for _, f := range files {
		if reached[f] && pyTestFile().MatchString(filepath.Base(f)) {
			tests = append(tests, rel(p.Root, f))
		}
	}
	if len(tests) == 0 {
		return nil
	}
	return []Run{{Dir: p.Root, Args: append(args, tests...), Name: "pytest of " + textutil.Plural(len(tests), "affected file")}}
}

// pyPython is the interpreter for a project that has none of its own: the one that runs the pytest of the PATH. python3 of the PATH is
// another one where a version manager has put its own in front, and that may have no pytest.
func pyPython() string {
	pytest, err := exec.LookPath("pytest")
	if err != nil {
		return "python3"
	}
	f, err := os.Open(pytest)
	if err != nil {
		return "python3"
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	program, ok := strings.CutPrefix(strings.TrimSpace(line), "#!")
	program = strings.TrimSpace(program)
	usual, err := exec.LookPath("python3")
	// A shim of a version manager is a script of the shell, and chooses the interpreter as its python3 does.
	if !ok || !filepath.IsAbs(program) || !strings.HasPrefix(filepath.Base(program), "python") || strings.ContainsAny(program, " \t") || err == nil && sameFile(usual, program) {
		return "python3"
	}
	return program
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// pySettings reports whether a file can affect every test: pytest's options and the versions of packages.
func pySettings(f string) bool {
	switch filepath.Base(f) {
	case "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", "requirements.txt", "uv.lock", "poetry.lock":
		return true
	}
	return false
}

// pyUsers maps each file to the files that use it, by their imports. Files below the folder of a conftest.py use it without an
// import, because pytest loads it (docs.pytest.org, "conftest.py: sharing fixtures across multiple files").
func pyUsers(p *Project, files []string) map[string][]string {
	known := map[string]bool{}
	for _, f := range files {
		known[f] = true
	}
	// A deleted file is in no list, but the files that still import it must be tested: they fail.
	for _, f := range p.changedPaths() {
		known[f] = true
	}
	users := map[string][]string{}
	for _, f := range files {
		text, _ := p.Read(f)
		for _, m := range pyImports(text) {
			for _, at := range pyPlaces(p.Root, f, m, known) {
				users[at] = append(users[at], f)
			}
		}
		for dir := filepath.Dir(f); ; dir = filepath.Dir(dir) {
			if at := filepath.Join(dir, "conftest.py"); known[at] && at != f {
				users[at] = append(users[at], f)
			}
			if dir == p.Root || dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return users
}

// pyModule is a module as an import names it.
type pyModule struct {
	dots int    // leading dots of a relative import: 1 is the file's own package, each further one a level up; 0 is absolute
	name string // with slashes for dots: "a/b"; empty for "from . import c"
}

// pyImports are the modules that a text may import. In "from a import b", b may be a module or a name in a; only the files show
// which, so the result has both, and pyPlaces removes what is not a file.
func pyImports(text string) (out []pyModule) {
	for _, m := range pyFrom().FindAllStringSubmatch(text, -1) {
		base := pyModule{len(m[1]), strings.ReplaceAll(m[2], ".", "/")}
		out = append(out, base)
		for name := range strings.SplitSeq(strings.Trim(m[3], "()"), ",") {
			if words := strings.Fields(name); len(words) > 0 {
				out = append(out, pyModule{base.dots, path.Join(base.name, words[0])})
			}
		}
	}
	for _, m := range pyImport().FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if words := strings.Fields(name); len(words) > 0 {
				out = append(out, pyModule{0, strings.ReplaceAll(words[0], ".", "/")})
			}
		}
	}
	return out
}

// pyPlaces are the known files that an import runs: the module, and the __init__.py of each package around it, which Python runs
// first (docs.python.org/3/reference/import.html, "Regular packages"). from is the importing file; it is never in the result.
func pyPlaces(root, from string, m pyModule, known map[string]bool) (out []string) {
	var tops []string
	if m.dots > 0 {
		top := filepath.Dir(from)
		for range m.dots - 1 {
			top = filepath.Dir(top)
		}
		tops = []string{top}
	} else {
		// sys.path is unknown; usually it has the root, src, and a folder above the file. If several of them have the module, all
		// are used.
		tops = []string{root, filepath.Join(root, "src")}
		for dir := filepath.Dir(from); dir != root && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			tops = append(tops, dir)
		}
	}
	for _, top := range tops {
		for name := m.name; ; name = path.Dir(name) {
			at := filepath.Join(top, filepath.FromSlash(name))
			for _, f := range []string{at + ".py", filepath.Join(at, "__init__.py")} {
				if known[f] && f != from {
					out = append(out, f)
				}
			}
			if name == "." || name == "" || !strings.Contains(name, "/") {
				break
			}
		}
	}
	return out
}

// only implements runner: the result runs the files with the tests. JUnit's report has no node ids, and in a class name the end of
// the file's part is not marked, so files are matched with the beginning of the suite. A run of all tests names no files and does
// not change.
func (pyTests) only(r Run, tests []change.TestResult) Run {
	n := slices.IndexFunc(r.Args, func(a string) bool { return strings.HasPrefix(a, "--junit-xml") })
	args := slices.Clone(r.Args[:n+1])
	var files []string
	for _, a := range r.Args[n+1:] {
		// Suites have dots and are relative to pytest's root: tests/test_a.py is tests.test_a, or tests.test_a.TestClass.
		module := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(a, "./"), ".py"), "/", ".")
		if slices.ContainsFunc(tests, func(t change.TestResult) bool { return t.Suite == module || strings.HasPrefix(t.Suite, module+".") }) {
			files = append(files, a)
		}
	}
	if len(files) == 0 {
		files = r.Args[n+1:]
	}
	r.Args = append(args, files...)
	return r
}

// results implements runner. The report is JUnit's XML within the other output. If it is cut off there are no results, because the
// decoder needs the closing tag.
func (pyTests) results(output string) (out []change.TestResult) {
	i := strings.Index(output, "<?xml")
	if i < 0 {
		return nil
	}
	// The elements that pytest writes (docs.pytest.org, "Creating JUnitXML format files"). An error is a failed fixture or a
	// file that cannot be imported: no test ran, and that counts as failed.
	type outcome struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var r struct {
		Suites []struct {
			Cases []struct {
				Class   string   `xml:"classname,attr"`
				Name    string   `xml:"name,attr"`
				Seconds float64  `xml:"time,attr"`
				Failure *outcome `xml:"failure"`
				Error   *outcome `xml:"error"`
				Skipped *outcome `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	// The decoder stops at the end of the element; pytest's summary comes after it.
	if xml.NewDecoder(strings.NewReader(output[i:])).Decode(&r) != nil {
		return nil
	}
	for _, s := range r.Suites {
		for _, c := range s.Cases {
			t := change.TestResult{Suite: c.Class, Name: c.Name, Status: change.EvidencePassed, Seconds: c.Seconds}
			for _, o := range []*outcome{c.Failure, c.Error} {
				if o != nil {
					t.Status, t.Output = change.EvidenceFailed, strings.TrimSpace(o.Message+"\n"+o.Text)
				}
			}
			// A file that cannot be imported is a case without a class.
			if c.Class == "" && c.Error != nil {
				t.Suite, t.Name = c.Name, change.WholeFile
			}
			if c.Skipped != nil {
				t.Status = change.EvidenceSkipped
			}
			out = append(out, t)
		}
	}
	return out
}
