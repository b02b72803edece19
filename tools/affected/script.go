package affected

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// scriptTests are vitest and jest: both know by the import graph which test files can reach a file, and both print the same
// JSON (jestjs.io/docs/cli, vitest.dev/guide/cli).
type scriptTests struct {
	program string
	related []string // options before the changed files
	whole   []string // options that run everything
}

// scripts are the extensions that a bundler resolves, and data that scripts import.
var scripts = regexp.MustCompile(`\.([cm]?[jt]sx?|vue|svelte|json)$`)

// settings are files that decide about more than what imports them: options of the tests, versions of packages.
var settings = regexp.MustCompile(`^(package(-lock)?\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|tsconfig.*\.json|(vite|vitest|jest|babel)\.config\..*)$`)

func (s scriptTests) plan(p *Project) (out []Run) {
	related := map[string][]string{} // changed files by the package's folder
	whole := map[string]bool{}
	for _, f := range p.changedPaths() {
		name := filepath.Base(f)
		if !scripts.MatchString(name) && !settings.MatchString(name) {
			continue
		}
		dir, ok := s.home(p, filepath.Dir(f))
		if !ok {
			continue
		}
		if _, there := p.Read(f); settings.MatchString(name) || !there {
			// What imported a file that is gone is not in the graph any more.
			whole[dir] = true
		}
		related[dir] = append(related[dir], f)
	}
	for _, dir := range slices.Sorted(maps.Keys(related)) {
		program, ok := p.installed(dir, "node_modules/.bin/"+s.program)
		args := []string{rel(dir, program)}
		if !ok {
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

// home is the nearest folder whose package.json depends on the program; in a workspace that is often the outermost one.
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

// only implements runner: the files of the tests, as both programs take paths.
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

// scriptReport is the part of jest's JSON that is read. vitest prints the same, without failureMessage where a test says it.
type scriptReport struct {
	TestResults []struct {
		Name             string // the file
		Status           string
		Message          string // why the file could not be run
		AssertionResults []struct {
			AncestorTitles  []string
			Title           string
			Status          string
			Duration        float64 // milliseconds
			FailureMessages []string
		}
	}
}

// colours are the escape sequences of terminals that messages are full of (ECMA-48, SGR).
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// results implements runner. The report is one line, after or before what the tests themselves print.
func (scriptTests) results(output string) (out []change.TestResult) {
	var r scriptReport
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "{") && strings.Contains(line, `"testResults"`) {
			_ = json.Unmarshal([]byte(line), &r)
		}
	}
	status := map[string]change.EvidenceStatus{"passed": change.EvidencePassed, "failed": change.EvidenceFailed, "pending": change.EvidenceSkipped, "skipped": change.EvidenceSkipped, "todo": change.EvidenceSkipped, "disabled": change.EvidenceSkipped}
	for _, f := range r.TestResults {
		// A file that does not load has no tests of its own.
		if len(f.AssertionResults) == 0 && f.Status == "failed" {
			out = append(out, change.TestResult{Suite: f.Name, Name: "(file)", Status: change.EvidenceFailed, Output: colours.ReplaceAllString(f.Message, "")})
		}
		for _, t := range f.AssertionResults {
			if status[t.Status] == "" {
				continue
			}
			out = append(out, change.TestResult{Suite: f.Name, Name: strings.Join(append(slices.Clone(t.AncestorTitles), t.Title), " › "), Status: status[t.Status], Seconds: t.Duration / 1000,
				Output: colours.ReplaceAllString(strings.Join(t.FailureMessages, "\n"), "")})
		}
	}
	return out
}
