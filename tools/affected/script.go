package affected

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// scriptTests are vitest and jest. Both know from their import graph which test files can reach a file, and both print the same
// JSON (jestjs.io/docs/cli, vitest.dev/guide/cli), so one type serves both.
type scriptTests struct {
	program string   // name in node_modules/.bin, and of the npm package
	related []string // arguments before the changed files
	whole   []string // arguments that run everything, or the test files that follow
}

// scripts matches source files that a bundler resolves, and JSON, which scripts import as data.
var scripts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.([cm]?[jt]sx?|vue|svelte|json)$`) })

// settings matches files that can affect tests which do not import them: options of the tests, versions of packages. If one
// changes, all tests run.
var settings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(package(-lock)?\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|tsconfig.*\.json|(vite|vitest|jest|babel)\.config\..*)$`)
})

// plan implements runner: one command for each package that depends on the program.
func (s scriptTests) plan(p *Project) (out []Run) {
	related := map[string][]string{} // changed files by the package's folder
	whole := map[string]bool{}       // folders of packages in which every test runs
	for _, f := range p.changedPaths() {
		name := filepath.Base(f)
		if !scripts().MatchString(name) && !settings().MatchString(name) {
			continue
		}
		dir, ok := s.home(p, filepath.Dir(f))
		if !ok {
			continue
		}
		if _, there := p.Read(f); settings().MatchString(name) || !there {
			// The program builds its graph from the existing files: the importers of a deleted file are not in it.
			whole[dir] = true
		}
		related[dir] = append(related[dir], f)
	}
	for _, dir := range slices.Sorted(maps.Keys(related)) {
		program, ok := p.installed(dir, "node_modules/.bin/"+s.program)
		args := []string{rel(dir, program)}
		if !ok {
			// npx finds programs of global folders and other package managers. --no-install is given because a test run must not
			// download code.
			args = []string{"npx", "--no-install", s.program}
		}
		in := ""
		if dir != p.Root {
			in = " in " + strings.TrimPrefix(rel(p.Root, dir), "./")
		}
		if whole[dir] {
			out = append(out, Run{Dir: dir, Args: append(args, s.whole...), Name: s.program + ", all tests" + in})
			continue
		}
		args = append(args, s.related...)
		for _, f := range related[dir] {
			args = append(args, rel(dir, f))
		}
		out = append(out, Run{Dir: dir, Args: args, Name: s.program + ", tests related to " + textutil.Plural(len(related[dir]), "changed file") + in})
	}
	return out
}

// home is the nearest folder, from dir up to the root, whose package.json depends on the program. In a workspace often only the
// outermost package.json does, so the search continues above one without the dependency.
func (s scriptTests) home(p *Project, dir string) (string, bool) {
	for {
		at, ok := p.above(dir, "package.json")
		if !ok {
			return "", false
		}
		text, _ := p.Read(filepath.Join(at, "package.json"))
		var m struct {
			Dependencies, DevDependencies map[string]string
		}
		if json.Unmarshal([]byte(text), &m) == nil {
			if _, ok := m.DevDependencies[s.program]; ok {
				return at, true
			}
			if _, ok := m.Dependencies[s.program]; ok {
				return at, true
			}
		}
		if at == p.Root {
			return "", false
		}
		dir = filepath.Dir(at)
	}
}

// only implements runner: the result runs the files with the tests, because a suite is a file's path. The first argument of related
// or whole marks the end of the program's own words, such as node_modules/.bin/jest or "npx --no-install jest".
func (s scriptTests) only(r Run, tests []change.TestResult) Run {
	n := slices.IndexFunc(r.Args, func(a string) bool { return a == s.related[0] || a == s.whole[0] })
	args := append(slices.Clone(r.Args[:max(n, 1)]), s.whole...)
	var files []string
	for _, t := range tests {
		files = append(files, rel(r.Dir, t.Suite))
	}
	slices.Sort(files)
	r.Args = append(args, slices.Compact(files)...)
	return r
}

// scriptReport is the part of jest's --json output that is read (jestjs.io/docs/cli, --json). vitest's reporter "json" prints
// the same fields. encoding/json ignores case, so the names need no tags.
type scriptReport struct {
	TestResults []struct {
		Name             string // the file, absolute
		Status           string // also "failed" if the file could not be loaded
		Message          string // why the file could not be run
		AssertionResults []struct {
			AncestorTitles  []string // titles of the describe blocks around the test, outermost first
			Title           string
			Status          string  // a key of the map in results; any other is not counted
			Duration        float64 // milliseconds
			FailureMessages []string
		}
	}
}

// colours matches terminal colours (ECMA-48, SGR), which jest and vitest put into messages. They mean nothing outside of a terminal.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;]*m") })

// results implements runner. The report is one line, before or after the output of the tests themselves; a line that looks like it
// but does not parse is skipped. If the run was cut off there is no report and no result.
func (scriptTests) results(output string) (out []change.TestResult) {
	var r scriptReport
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "{") && strings.Contains(line, `"testResults"`) {
			_ = json.Unmarshal([]byte(line), &r)
		}
	}
	status := map[string]change.EvidenceStatus{"passed": change.EvidencePassed, "failed": change.EvidenceFailed, "pending": change.EvidenceSkipped, "skipped": change.EvidenceSkipped, "todo": change.EvidenceSkipped, "disabled": change.EvidenceSkipped}
	for _, f := range r.TestResults {
		// A file that does not load has no tests. Without this entry its failure would be missing from the results.
		if len(f.AssertionResults) == 0 && f.Status == "failed" {
			out = append(out, change.TestResult{Suite: f.Name, Name: change.WholeFile, Status: change.EvidenceFailed, Output: colours().ReplaceAllString(f.Message, "")})
		}
		for _, t := range f.AssertionResults {
			if status[t.Status] == "" {
				continue
			}
			out = append(out, change.TestResult{Suite: f.Name, Name: strings.Join(append(slices.Clone(t.AncestorTitles), t.Title), " › "), Status: status[t.Status], Seconds: t.Duration / 1000,
				Output: colours().ReplaceAllString(strings.Join(t.FailureMessages, "\n"), "")})
		}
	}
	return out
}
