// Package affected finds the tests that a proposal can affect, by each language's own means, and reads their results. It
// starts no process and reads no disk: a Run is a command that the caller runs, and texts come from the caller, because the
// proposed ones exist only in a draft.
//
//	for _, r := range affected.Plan(p) {
//		output, exit := run(r.Command())
//		results := r.Results(output)
//	}
//
// If the reach of a change is unknown, Plan names more tests, never fewer: a test that is left out would look like one that passed.
package affected

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Project is a project with the proposal applied.
type Project struct {
	Root  string        // absolute
	Files []change.File // the proposed files
	// List is all its files without the ignored ones: absolute, with the files that the proposal creates and without those
	// that it deletes. Its order decides the order of arguments, so it must not be random: the same change must give the same
	// commands.
	List []string
	// Read returns a file's proposed text; false if it does not exist.
	Read func(path string) (string, bool)
	// Exists reports whether a path exists, including ignored ones such as node_modules.
	Exists func(path string) bool
}

// Run is a command that runs tests.
type Run struct {
	Dir  string   // where it starts; absolute
	Args []string // the program and its arguments
	Name string   // for people, if the command is too long: "go test of 5 affected tests in 2 packages"

	runner runner // set by Plan and Only; it reads the output of this command
}

// runner plans and reads one kind of test program. All of them are in runners.
type runner interface {
	// plan returns the commands that run what the proposal can affect; none if it has no file of this kind.
	plan(p *Project) []Run
	// results reads a run's output: standard output and standard error mixed, and cut off if the run did not end in time. It
	// returns the results that can be read, and nil if the output is not a report.
	results(output string) []change.TestResult
	// only limits a run to some of its tests, as exactly as the program allows. It must not write into r.Args, which the original
	// run still uses.
	only(r Run, tests []change.TestResult) Run
}

// runners are the known test programs. For others, the setting verify names the commands.
//
// --passWithNoTests: a changed file that no test imports is not a failure. --run: "vitest related" may otherwise watch for changes
// and never end.
var runners = []runner{goTests{}, scriptTests{program: "vitest", related: []string{"related", "--run", "--reporter=json", "--passWithNoTests"}, whole: []string{"run", "--reporter=json", "--passWithNoTests"}},
	scriptTests{program: "jest", related: []string{"--json", "--passWithNoTests", "--findRelatedTests"}, whole: []string{"--json", "--passWithNoTests"}}, pyTests{}, cargoTests{}}

// Plan lists the commands that run the tests which the proposal can affect; none if no runner knows its files. There can be several
// commands, because a project may use several languages.
func Plan(p *Project) (out []Run) {
	for _, r := range runners {
		for _, run := range r.plan(p) {
			run.runner = r
			out = append(out, run)
		}
	}
	return out
}

// Results reads the output of the run. Only failed tests keep their output, cut to its end, and only the first maxOutputs of
// them.
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

// absent matches what Python and npx print when the program that would run the tests is not installed.
var absent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`No module named '?_?pytest\b|npx canceled due to missing packages|could not determine executable to run`)
})

// NotInstalled says why a run that failed without any result tested nothing: its program is missing. "" if that is not the reason.
// exit is its exit code; 127 is a shell's for a command that it does not find (POSIX, "Exit Status for Commands").
func (r Run) NotInstalled(output string, exit int) string {
	switch found := absent().MatchString(output); {
	case exit == 127:
		return r.Args[0] + " was not found"
	case found && r.Args[0] == "npx":
		return r.Args[2] + " is not installed; install the packages of " + filepath.Base(r.Dir)
	case found:
		return r.Args[0] + " has no pytest; install it there"
	}
	return ""
}

// Only returns the run for some of its tests. The caller runs it without the proposal, to see which tests failed before. It may run
// more tests than asked for; that does no harm, because results are matched by suite and name.
func (r Run) Only(tests []change.TestResult) Run {
	next := r.runner.only(r, tests)
	next.runner = r.runner
	return next
}

// Command is the run as a line for bash. File names in it come from the project, so every word is quoted unless plain matches.
func (r Run) Command() string {
	words := make([]string, len(r.Args))
	for i, a := range r.Args {
		words[i] = quote(a)
	}
	return "cd " + quote(r.Dir) + " && " + strings.Join(words, " ")
}

// plain matches a word that needs no quotes in bash. "~" is not included, because bash expands it at the start of a word.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`) })

func quote(word string) string {
	if plain().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// maxOutput is how much of a failed test's output is kept, in bytes: it is stored with the proposal and sent to editors.
const maxOutput = 4 << 10

// maxOutputs is how many failed tests keep their output: if hundreds fail, the first ones show why.
const maxOutputs = 50

// end keeps the last maxOutput bytes of an output, where most programs print the reason of a failure. A rune that the cut
// splits is dropped, since the text goes into JSON.
func end(s string) string {
	if s = strings.TrimSpace(s); len(s) <= maxOutput {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-maxOutput:], "")
}

// above finds the nearest folder, from dir up to the project's root, that contains a file of this name with the proposal applied.
// It does not search above the root, because files there belong to another project.
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

// installed finds a program that is installed in the project, such as node_modules/.bin/jest, from dir up to the root. It uses
// Exists and not Read, because such programs are in ignored folders and are often symbolic links.
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

// changedPaths are the absolute paths that the proposal changes, both paths of a rename: users of the old path break, and users of
// the new path may now find it.
func (p *Project) changedPaths() (out []string) {
	for _, f := range p.Files {
		out = append(out, f.Path)
		if f.NewPath != "" {
			out = append(out, f.NewPath)
		}
	}
	return out
}

// reach is the set of everything that uses one of from, directly or indirectly, and from itself. users maps each item to those that
// use it; cycles do no harm, because each item is visited once.
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

// rel is a path as an argument of a program that starts in dir. It begins with "./", so that a file named "-x" is not read as an
// option, and so that go reads it as a folder and not as an import path.
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
