package affected

import (
	"encoding/xml"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// pyTests is pytest, which has no graph of its own: the imports of all files are read as text. An import that is computed
// when the program runs is not seen.
type pyTests struct{}

var (
	// from a.b import c, d; from . import c; import a.b, c as d.
	pyFrom   = regexp.MustCompile(`(?m)^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]+)`)
	pyImport = regexp.MustCompile(`(?m)^[ \t]*import[ \t]+([^\n#;]+)`)
	// pytest's default python_files (docs.pytest.org, test discovery).
	pyTestFile = regexp.MustCompile(`^(test_.*|.*_test)\.py$`)
)

func (pyTests) plan(p *Project) []Run {
	var files []string
	for _, f := range p.List {
		if strings.HasSuffix(f, ".py") {
			files = append(files, f)
		}
	}
	uses := slices.ContainsFunc(files, func(f string) bool { return pyTestFile.MatchString(filepath.Base(f)) })
	changed := slices.DeleteFunc(p.changedPaths(), func(f string) bool { return !strings.HasSuffix(f, ".py") && !pySettings(f) })
	if !uses || len(changed) == 0 {
		return nil
	}
	program := "python3"
	if at, ok := p.installed(p.Root, ".venv/bin/python", "venv/bin/python"); ok {
		program = rel(p.Root, at)
	}
	// The report goes to the output, so that nothing is written into the project.
	args := []string{program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=/dev/stdout"}
	if slices.ContainsFunc(changed, pySettings) {
		return []Run{{Dir: p.Root, Args: args, Name: "pytest, all tests"}}
	}
	var tests []string
	reached := reach(changed, pyUsers(p, files))
	for _, f := range files {
		if reached[f] && pyTestFile.MatchString(filepath.Base(f)) {
			tests = append(tests, rel(p.Root, f))
		}
	}
	if len(tests) == 0 {
		return nil
	}
	return []Run{{Dir: p.Root, Args: append(args, tests...), Name: "pytest of " + textutil.Plural(len(tests), "affected file")}}
}

// pySettings reports files that decide about all tests.
func pySettings(f string) bool {
	switch filepath.Base(f) {
	case "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", "requirements.txt", "uv.lock", "poetry.lock":
		return true
	}
	return false
}

// pyUsers is which files use a file: by their imports; those below the folder of a conftest.py or a package's __init__.py use
// that too.
func pyUsers(p *Project, files []string) map[string][]string {
	known := map[string]bool{}
	for _, f := range files {
		known[f] = true
	}
	// A changed file that is gone is still imported.
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

// pyModule is an imported module: how many dots it begins with, and its name with slashes.
type pyModule struct {
	dots int
	name string
}

// pyImports are the modules that a text may import. "from a import b" may mean the module a/b or a name in a, so both are
// named.
func pyImports(text string) (out []pyModule) {
	for _, m := range pyFrom.FindAllStringSubmatch(text, -1) {
		base := pyModule{len(m[1]), strings.ReplaceAll(m[2], ".", "/")}
		out = append(out, base)
		for name := range strings.SplitSeq(strings.Trim(m[3], "()"), ",") {
			if words := strings.Fields(name); len(words) > 0 {
				out = append(out, pyModule{base.dots, path.Join(base.name, words[0])})
			}
		}
	}
	for _, m := range pyImport.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if words := strings.Fields(name); len(words) > 0 {
				out = append(out, pyModule{0, strings.ReplaceAll(words[0], ".", "/")})
			}
		}
	}
	return out
}

// pyPlaces are the files of the project that an import runs: the module, and the packages around it.
func pyPlaces(root, from string, m pyModule, known map[string]bool) (out []string) {
	var tops []string
	if m.dots > 0 {
		top := filepath.Dir(from)
		for range m.dots - 1 {
			top = filepath.Dir(top)
		}
		tops = []string{top}
	} else {
		// What is on the path is not known: the root, src, and every folder above the file are usual.
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

// only implements runner: the tests' files, by their ids where the report has them.
func (pyTests) only(r Run, tests []change.TestResult) Run {
	n := slices.IndexFunc(r.Args, func(a string) bool { return strings.HasPrefix(a, "--junit-xml") })
	args := slices.Clone(r.Args[:n+1])
	var files []string
	for _, a := range r.Args[n+1:] {
		// Suites are dotted: tests/test_a.py is tests.test_a, or tests.test_a.TestClass.
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

// results implements runner. The report is JUnit's XML among the other output.
func (pyTests) results(output string) (out []change.TestResult) {
	i := strings.Index(output, "<?xml")
	if i < 0 {
		return nil
	}
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
	// The decoder stops at the end of the element; pytest's summary follows it.
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
			if c.Skipped != nil {
				t.Status = change.EvidenceSkipped
			}
			out = append(out, t)
		}
	}
	return out
}
