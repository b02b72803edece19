// Package affected finds the tests that a proposal can affect, by each language's own means, and reads their results. It
// starts nothing: a Run is a command for somebody else to run, and texts come from the caller, who may have them in a draft.
//
//	for _, r := range affected.Plan(p) {
//		output, exit := run(r.Command())
//		results := r.Results(output)
//	}
//
// Where it is not known what a change reaches, more tests are named, never fewer: a test that is left out looks like one that
// passed.
package affected

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Project is a project as a proposal would leave it.
type Project struct {
	Root  string        // absolute
	Files []change.File // what is proposed
	List  []string      // all its files without the ignored ones, absolute; those that the proposal makes are among them
	// Read is a file's text as proposed; false where there is none.
	Read func(path string) (string, bool)
	// Exists reports whether a path is there, ignored ones such as node_modules too.
	Exists func(path string) bool
}

// Run is a command that runs tests.
type Run struct {
	Dir  string   // where it starts; absolute
	Args []string // the program and its arguments
	Name string   // for people: "5 Go tests in 2 packages"

	runner runner
}

// runner is what one kind of test program needs. All of them are in runners.
type runner interface {
	// plan names the commands that run what the proposal can affect; none where it has no file of this kind.
	plan(p *Project) []Run
	// results reads a run's output, which may be cut off at its end. Passed tests have no output.
	results(output string) []change.TestResult
	// only narrows a run to some of its tests, as exactly as the program allows.
	only(r Run, tests []change.TestResult) Run
}

// runners are the test programs that are known. Others are named in the setting verify.
var runners = []runner{goTests{}, scriptTests{program: "vitest", related: []string{"related", "--run", "--reporter=json", "--passWithNoTests"}, whole: []string{"run", "--reporter=json", "--passWithNoTests"}},
	scriptTests{program: "jest", related: []string{"--json", "--passWithNoTests", "--findRelatedTests"}, whole: []string{"--json", "--passWithNoTests"}}, pyTests{}, cargoTests{}}

// Plan is what tests a proposal; nothing where no runner knows its files.
func Plan(p *Project) (out []Run) {
	for _, r := range runners {
		for _, run := range r.plan(p) {
			run.runner = r
			out = append(out, run)
		}
	}
	return out
}

// Results reads the output of the run.
func (r Run) Results(output string) []change.TestResult {
	list := r.runner.results(output)
	failed := 0
	for i := range list {
		if list[i].Status == change.EvidenceFailed {
			failed++
		}
		if list[i].Status != change.EvidenceFailed || failed > maxOutputs {
			list[i].Output = ""
		} else {
			list[i].Output = end(list[i].Output)
		}
	}
	return list
}

// Only is the run for some of its tests.
func (r Run) Only(tests []change.TestResult) Run {
	next := r.runner.only(r, tests)
	next.runner = r.runner
	return next
}

// Command is the run as a line for bash.
func (r Run) Command() string {
	words := make([]string, len(r.Args))
	for i, a := range r.Args {
		words[i] = quote(a)
	}
	return "cd " + quote(r.Dir) + " && " + strings.Join(words, " ")
}

// plain is a word that bash takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// maxOutput is how much of a failed test's output is kept, in bytes: it is stored with the proposal and sent to editors.
const maxOutput = 4 << 10

// maxOutputs is how many failed tests keep their output: where hundreds fail, the first show why.
const maxOutputs = 50

// end keeps the end of an output, where the reason of a failure stands.
func end(s string) string {
	if s = strings.TrimSpace(s); len(s) <= maxOutput {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-maxOutput:], "")
}

// above finds the nearest folder, from dir up to the project's root, that holds a file of this name as proposed.
func (p *Project) above(dir, name string) (string, bool) {
	for ; paths.Within(p.Root, dir); dir = filepath.Dir(dir) {
		if _, ok := p.Read(filepath.Join(dir, name)); ok {
			return dir, true
		}
		if dir == p.Root {
			break
		}
	}
	return "", false
}

// installed finds a program that a project brings along, such as node_modules/.bin/jest, from dir upwards.
func (p *Project) installed(dir string, names ...string) (string, bool) {
	for ; paths.Within(p.Root, dir); dir = filepath.Dir(dir) {
		for _, name := range names {
			if at := filepath.Join(dir, filepath.FromSlash(name)); p.Exists(at) {
				return at, true
			}
		}
		if dir == p.Root {
			break
		}
	}
	return "", false
}

// changedPaths are the paths that the proposal touches, both ends of a rename.
func (p *Project) changedPaths() (out []string) {
	for _, f := range p.Files {
		out = append(out, f.Path)
		if f.NewPath != "" {
			out = append(out, f.NewPath)
		}
	}
	return out
}

// reach is everything from which one of these can be reached, themselves included: users is who uses what.
func reach(from []string, users map[string][]string) map[string]bool {
	seen := map[string]bool{}
	queue := slices.Clone(from)
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		if seen[x] {
			continue
		}
		seen[x] = true
		queue = append(queue, users[x]...)
	}
	return seen
}

// rel is a path as it is given to a program that starts in dir; it begins with "./" so that no name passes for an option.
func rel(dir, path string) string {
	r, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	if r == "." {
		return "."
	}
	return "./" + filepath.ToSlash(r)
}
