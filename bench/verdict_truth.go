package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
)

// truth asks the compiler for a project's errors. edited, relative to the project, is the only file that differs from when the
// compiler was last asked about all ("" for all): where a file is compiled for itself, the others need not be.
type truth func(ctx context.Context, dir, edited string) ([]finding, error)

// finding is an error of a compiler.
type finding struct {
	File string `json:"file"` // relative to the project, with slashes
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// introduced are the findings that were not there before, each line once. Lines move, so what a file had is known by its words.
func introduced(before, after []finding) (out []finding) {
	had := map[finding]int{}
	for _, f := range before {
		had[finding{File: f.File, Text: f.Text}]++
	}
	for _, f := range after {
		if k := (finding{File: f.File, Text: f.Text}); had[k] > 0 {
			had[k]--
			continue
		}
		if !slices.ContainsFunc(out, func(x finding) bool { return x.File == f.File && x.Line == f.Line }) {
			out = append(out, f)
		}
	}
	return out
}

// parseFindings reads a compiler's output: place must match file, line and what is wrong, in this order.
func parseFindings(out []byte, dir string, place *regexp.Regexp) (all []finding) {
	for _, m := range place.FindAllStringSubmatch(string(out), -1) {
		line, _ := strconv.Atoi(m[2])
		file := m[1]
		if filepath.IsAbs(file) {
			file, _ = filepath.Rel(dir, file)
		}
		all = append(all, finding{filepath.ToSlash(filepath.Clean(file)), line, strings.TrimSpace(m[3])})
	}
	return all
}

// compilerOutput runs a compiler; that it finds errors is not an error of Pillion.
func compilerOutput(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	out, _, err := compile(ctx, dir, argv...)
	return out, err
}

// refusal is the output of a compiler that failed without finding an error.
type refusal struct{ said string }

func (r refusal) Error() string { return r.said }

// compilerFindings runs a compiler and reads what it finds with read. A compiler that fails without a finding has refused to compile, a project
// without go.mod for example: that is an error, because it would count as "no errors".
func compilerFindings(ctx context.Context, dir string, read func(out []byte) []finding, argv ...string) ([]finding, error) {
	out, failed, err := compile(ctx, dir, argv...)
	if err != nil {
		return nil, err
	}
	all := read(out)
	if failed && len(all) == 0 {
		return nil, refusal{fmt.Sprintf("%s refuses to compile: %s", strings.Join(argv[:min(2, len(argv))], " "), bytes.TrimSpace(out[:min(len(out), 2000)]))}
	}
	return all, nil
}

// compile is compilerOutput; failed reports whether the compiler's exit code says so.
func compile(ctx context.Context, dir string, argv ...string) (out []byte, failed bool, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=", "GOTOOLCHAIN=local")
	}
	out, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	if failed = errors.As(err, &exit); failed {
		err = nil
	}
	return out, failed, errors.Join(err, ctx.Err())
}

var (
	colonPlace = regexp.MustCompile(`(?m)^(?:vet: |# )?(?:\./)?([^\s:]+):(\d+):\d+: (?:fatal )?(?:error: )?(.*)$`)
	gccPlace   = regexp.MustCompile(`(?m)^([^\s:]+):(\d+):\d+: (?:fatal )?error: (.*)$`)
	unplaced   = regexp.MustCompile(`(?m)^.*(?:found packages |build constraints exclude all Go files|import cycle not allowed|go: errors parsing).*$`)
	noModule   = regexp.MustCompile(`(?m)^pattern `)
	workUse    = regexp.MustCompile(`(?m)^(?:use)?[ \t]+(\.\S*)`)
	// tscUnplaced is what keeps a project from being compiled at all: no files, for example.
	tscUnplaced = regexp.MustCompile(`(?m)^error (TS.*)$`)
	tscPlace    = regexp.MustCompile(`(?m)^([^\s(]+)\((\d+),\d+\): error (.*)$`)
)

func goTruth(ctx context.Context, dir, _ string) ([]finding, error) {
	read := func(out []byte) []finding {
		all := parseFindings(out, dir, colonPlace)
		// A package's errors are also those of what imports it, and of its tests.
		said := map[finding]bool{}
		all = slices.DeleteFunc(all, func(f finding) bool { was := said[f]; said[f] = true; return was })
		// What keeps a package from being loaded has no place: two package clauses in a folder, all files excluded.
		if line := unplaced.Find(out); len(all) == 0 && line != nil {
			all = append(all, finding{"go.mod", 1, string(line)})
		}
		return all
	}
	out, failed, err := compile(ctx, dir, append(append(goList, "{{with .Error}}{{.}}\n{{end}}{{range .DepsErrors}}{{.}}\n{{end}}"), goPackages(dir)...)...)
	if err != nil {
		return nil, err
	}
	all := read(out)
	// With -e, a folder that is no module is no failure.
	if len(all) == 0 && (failed || noModule.Match(out)) {
		return nil, refusal{fmt.Sprintf("go list refuses to compile: %s", bytes.TrimSpace(out[:min(len(out), 2000)]))}
	}
	// The go command's own rule for the names of tests: the package compiles, and gopls calls it a warning.
	return slices.DeleteFunc(all, func(f finding) bool { return strings.HasPrefix(f.Text, "wrong signature for ") }), nil
}

// goList compiles packages and their tests without linking them; a format and the packages follow. With go vet, the compiler would say only
// the first error of a package's tests.
var goList = []string{"go", "list", "-e", "-export", "-test", "-gcflags=-e", "-f"}

// goPackages are all packages of a module or a workspace.
func goPackages(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return []string{"./..."}
	}
	var all []string
	for _, m := range workUse.FindAllSubmatch(text, -1) {
		all = append(all, string(m[1])+"/...")
	}
	return all
}

// removeUncompiled removes the Go files of which the compiler says nothing, because something that they import does not compile, in whatever
// module that is. What is said of them would have no truth beside it.
func removeUncompiled(ctx context.Context, dir string) error {
	dir, err := filepath.EvalSymlinks(dir) // as the go command prints it
	if err != nil {
		return err
	}
	// Of a package with its tests, the package's other files are another row.
	format := `{{if and .DepsErrors (not .Error)}}{{$p := .}}{{range .GoFiles}}{{$p.ForTest}}` + "\t" + `{{$p.Dir}}/{{.}}` + "\n" + `{{end}}{{range .CgoFiles}}{{$p.ForTest}}` + "\t" + `{{$p.Dir}}/{{.}}` + "\n" + `{{end}}{{end}}`
	out, err := compilerOutput(ctx, dir, append(append(goList, format), goPackages(dir)...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		forTest, path, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || !paths.Within(dir, path) || forTest != "" && !strings.HasSuffix(path, "_test.go") {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func tscTruth(tsc string) truth {
	return func(ctx context.Context, dir, _ string) ([]finding, error) {
		argv := []string{tsc, "--noEmit", "--pretty", "false", "-p", "."}
		configured, built, err := tsProjects(dir)
		if err != nil {
			return nil, err
		}
		if built {
			argv = append([]string{tsc, "-b", "--pretty", "false"}, configured...) // it writes beside the sources, which are a copy
		}
		return compilerFindings(ctx, dir, func(out []byte) []finding {
			all := parseFindings(out, dir, tscPlace)
			for _, m := range tscUnplaced.FindAllSubmatch(out, -1) {
				all = append(all, finding{"tsconfig.json", 1, string(m[1])})
			}
			return all
		}, argv...)
	}
}

// tsProjects are the files tsconfig.json of a folder, relative to it: an editor takes the nearest one above a file, so each is a project whose
// errors a person sees. build is true where one run with -p would not compile them all.
func tsProjects(dir string) (configured []string, build bool, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == "node_modules" {
				err = filepath.SkipDir
			}
			return err
		}
		if d.Name() != "tsconfig.json" {
			return nil
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		configured = append(configured, filepath.ToSlash(rel))
		build = build || bytes.Contains(text, []byte(`"references"`))
		return err
	})
	return configured, build || len(configured) > 1, err
}

func pyrightTruth(pyright string) truth {
	return func(ctx context.Context, dir, _ string) ([]finding, error) {
		out, err := compilerOutput(ctx, dir, pyright, "--outputjson")
		if err != nil {
			return nil, err
		}
		return pyrightFindings(out, dir)
	}
}

// pyrightFindings reads what --outputjson prints.
func pyrightFindings(out []byte, dir string) ([]finding, error) {
	var r struct {
		GeneralDiagnostics []struct {
			File, Severity, Message string
			Range                   struct{ Start struct{ Line int } }
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, err
	}
	var all []finding
	for _, d := range r.GeneralDiagnostics {
		if rel, err := filepath.Rel(dir, d.File); err == nil && d.Severity == "error" {
			all = append(all, finding{filepath.ToSlash(rel), d.Range.Start.Line + 1, d.Message})
		}
	}
	return all, nil
}

var phpPlace = regexp.MustCompile(`(?m)PHP (?:Parse|Fatal) error: +(.*) in (\S+) on line (\d+)$`)

// phpTruth has PHP compile the files, each for itself, and run none. It stops at the first error of a file.
func phpTruth(php string) truth {
	return func(ctx context.Context, dir, edited string) (all []finding, err error) {
		files := []string{edited}
		if edited == "" {
			files = nil
			err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".php" {
					rel, _ := filepath.Rel(dir, path)
					files = append(files, rel)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		for _, f := range files {
			out, err := compilerOutput(ctx, dir, php, "-n", "-d", "display_errors=0", "-d", "log_errors=1", "-d", "error_log=/dev/stderr", "-l", f)
			if err != nil {
				return nil, err
			}
			for _, m := range phpPlace.FindAllStringSubmatch(string(out), -1) {
				line, _ := strconv.Atoi(m[3])
				all = append(all, finding{filepath.ToSlash(filepath.Clean(m[2])), line, m[1]})
			}
		}
		return all, nil
	}
}

// nativeSources are the files that a C compiler is called for.
func nativeSources(dir string) (all []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && slices.Contains([]string{".c", ".cc", ".cpp"}, filepath.Ext(path)) {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	return all, err
}

// nativeTruth compiles every file with gcc and, where it is installed, with clang: an error is what either of them rejects. After an edit of
// a source only that one is compiled, after an edit of a header what includes it.
func nativeTruth(flags ...string) truth {
	includes := map[string]map[string][]string{} // by folder and source
	return func(ctx context.Context, dir, edited string) ([]finding, error) {
		sources := []string{edited}
		if edited == "" || strings.HasPrefix(filepath.Ext(edited), ".h") {
			var err error
			if sources, err = nativeSources(dir); err != nil {
				return nil, err
			}
		}
		if len(sources) > 1 && includes[dir] == nil {
			// Read once for a project, before its first edit: which files include a header is decided by those files, not by the header's own text.
			of := map[string][]string{}
			for _, s := range sources {
				var err error
				if of[s], err = nativeIncludes(ctx, dir, s, flags); err != nil {
					return nil, err
				}
			}
			includes[dir] = of
		}
		if edited != "" && len(sources) > 1 {
			sources = slices.DeleteFunc(sources, func(s string) bool { return !slices.Contains(includes[dir][s], edited) })
		}
		var all []finding
		for _, s := range sources {
			for _, compiler := range nativeCompilers(s, flags) {
				found, err := compilerFindings(ctx, dir, func(out []byte) []finding { return parseFindings(out, dir, gccPlace) }, append(compiler, "-fsyntax-only", "-w", s)...)
				if err != nil {
					return nil, err
				}
				all = append(all, found...)
			}
		}
		return all, nil
	}
}

// nativeIncludes are the project's files that a source includes, directly or not.
func nativeIncludes(ctx context.Context, dir, source string, flags []string) (all []string, err error) {
	// -MG: a file that does not compile has includes too.
	out, err := compilerOutput(ctx, dir, append(nativeCompilers(source, flags)[0], "-MM", "-MG", source)...)
	for _, w := range strings.Fields(string(out)) {
		all = append(all, filepath.ToSlash(filepath.Clean(w)))
	}
	return all, err
}

// clang is another compiler of C than the server judged, whose library it shares; "" where it is not installed.
var clang = func() string {
	for _, name := range []string{"clang", "clang-19", "clang-14"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}()

// nativeCompilers are the commands that a source is compiled with, gcc's first, each with all errors.
func nativeCompilers(source string, flags []string) (all [][]string) {
	gcc, language := "gcc", []string{}
	if filepath.Ext(source) != ".c" {
		gcc, language = "g++", []string{"-std=c++17"}
	}
	all = append(all, slices.Concat([]string{gcc}, language, flags, []string{"-fmax-errors=0"}))
	if clang != "" {
		all = append(all, slices.Concat([]string{clang}, language, flags, []string{"-ferror-limit=0"}))
	}
	return all
}

// A standing compiler is one process that watches a project and reports its errors after each change: a compiler that has to be started
// for every edit would take most of the measurement. It can report too early, so a caller who doubts it runs the compiler itself.
type standing struct {
	dir     string
	reports chan []finding
	marker  func(n int) (name, text string) // a file of ours with an error of its own, which tells the reports apart
	said    func(n int) string              // a part of that error's text
	stop    func()
	asked   int
	// settle is how long the project is left alone between an edit and its marker, so that the compiler's watcher hears of them in order.
	settle time.Duration
}

// reportLimit is how long a standing compiler may take for a report. The first one, of the whole project, takes pyright a minute on a busy
// machine.
const reportLimit = 3 * time.Minute

// startStanding starts a watching compiler; split cuts its output into reports, read makes findings of one.
func startStanding(ctx context.Context, dir string, argv []string, split bufio.SplitFunc, read func([]byte) ([]finding, error), marker func(int) (string, string), said func(int) string) (*standing, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	s := &standing{dir: dir, reports: make(chan []finding, 16), marker: marker, said: said, settle: 150 * time.Millisecond}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(s.reports)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 64<<20)
		in.Split(split)
		for in.Scan() {
			all, err := read(in.Bytes())
			if err != nil {
				continue
			}
			select {
			case s.reports <- all:
			case <-ctx.Done():
				return
			}
		}
	}()
	s.stop = func() {
		cancel()
		for range s.reports {
		}
		<-ended
		_ = cmd.Wait()
		name, _ := marker(0)
		_ = os.Remove(filepath.Join(dir, name))
	}
	return s, nil
}

// errors returns the project's errors as it is now.
func (s *standing) errors(ctx context.Context) ([]finding, error) {
	select {
	case <-time.After(s.settle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.asked++
	name, text := s.marker(s.asked)
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		return nil, err
	}
	limit := time.After(reportLimit)
	for {
		select {
		case all, running := <-s.reports:
			if !running {
				return nil, errors.New("the watching compiler ended")
			}
			if slices.ContainsFunc(all, func(f finding) bool { return f.File == name && strings.Contains(f.Text, s.said(s.asked)) }) {
				return slices.DeleteFunc(all, func(f finding) bool { return f.File == name }), nil
			}
		case <-limit:
			return nil, errors.New("the watching compiler did not report")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// clear removes the marker, which is an error for a compiler that is run beside this one.
func (s *standing) clear() {
	name, _ := s.marker(0)
	_ = os.Remove(filepath.Join(s.dir, name))
}

// watchTSC starts tsc --watch.
func watchTSC(tsc string) func(context.Context, string) (*standing, error) {
	return func(ctx context.Context, dir string) (*standing, error) {
		end := regexp.MustCompile(`Found \d+ errors?\. Watching for file changes\.\n`)
		return startStanding(ctx, dir, []string{tsc, "--noEmit", "--watch", "--preserveWatchOutput", "--pretty", "false", "-p", "."},
			func(data []byte, _ bool) (int, []byte, error) {
				if at := end.FindIndex(data); at != nil {
					return at[1], data[:at[1]], nil
				}
				return 0, nil, nil
			},
			func(out []byte) ([]finding, error) { return parseFindings(out, dir, tscPlace), nil },
			func(n int) (string, string) { return "qxMarker.ts", fmt.Sprintf("export {}\nqxMarker%d\n", n) },
			func(n int) string { return fmt.Sprintf("'qxMarker%d'", n) })
	}
}

// watchPyright starts pyright --watch: one process that is not the server judged.
func watchPyright(pyright string) func(context.Context, string) (*standing, error) {
	return func(ctx context.Context, dir string) (*standing, error) {
		return startStanding(ctx, dir, []string{pyright, "--watch", "--outputjson"},
			func(data []byte, _ bool) (int, []byte, error) {
				if at := bytes.Index(data, []byte("\n}\n")); at >= 0 {
					return at + 3, data[:at+3], nil
				}
				return 0, nil, nil
			},
			func(out []byte) ([]finding, error) { return pyrightFindings(out, dir) },
			func(n int) (string, string) { return "qxmarker.py", fmt.Sprintf("qxmarker%d\n", n) },
			func(n int) string { return fmt.Sprintf("%q", fmt.Sprint("qxmarker", n)) })
	}
}
