package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is the test binaries of one package with all its mutants compiled in: each mutated function stands there once more for each mutant,
// and the number in a file beside the binary says which of them runs instead. Building them takes as long as building one.
type suite struct {
	dir      string // temporary; its owner removes it
	binaries []string
	folders  []string      // in which they run, in the order of binaries
	limit    time.Duration // of one run
}

// The file is read before the tests begin, so that the processes that a test starts from the same binary are mutated as well, whatever
// their environment is.
const chooser = `package %s

import (
	mutantOS "os"
	mutantStrconv "strconv"
)

var mutant__ = func() int {
	exe, _ := mutantOS.Executable()
	b, _ := mutantOS.ReadFile(exe + ".mutant")
	n, _ := mutantStrconv.Atoi(string(b))
	return n
}()
`

// build compiles the tests with the mutants of the folder dir and returns the mutants that compile. They are numbered from 1 in that order.
func build(dir string, all []mutant, tests []string) (*suite, []mutant, error) {
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, nil, err
	}
	s := &suite{dir: temp}
	for {
		overlay, regions, err := s.write(dir, all)
		if err != nil {
			return s, nil, err
		}
		out, err := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./"+dir).CombinedOutput()
		if err == nil {
			return s, all, s.compile(overlay, tests)
		}
		bad := blamed(string(out), regions)
		if len(bad) == 0 {
			return s, nil, fmt.Errorf("the mutants of %s do not compile together: %s", dir, out)
		}
		all = slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return bad[m.id()] })
	}
}

// compile builds the test binaries.
func (s *suite) compile(overlay string, tests []string) error {
	args := append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}} {{len .TestGoFiles}} {{len .XTestGoFiles}}"}, tests...)
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		var path, folder string
		var in, outside int
		if _, err := fmt.Sscan(line, &path, &folder, &in, &outside); err != nil {
			return err
		}
		if in+outside == 0 {
			continue
		}
		binary := filepath.Join(s.dir, strconv.Itoa(len(s.binaries))+".test")
		if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, path).CombinedOutput(); err != nil {
			return fmt.Errorf("go test -c %s: %w\n%s", path, err, out)
		}
		s.binaries, s.folders = append(s.binaries, binary), append(s.folders, folder)
	}
	if len(s.binaries) == 0 {
		return errors.New("there are no tests")
	}
	return nil
}

// region is where a mutant's function stands in the file that is compiled.
type region struct {
	from, to int // lines, from 1
	id       string
}

// write makes the changed files of a package and the overlay that puts them in place of its own.
func (s *suite) write(dir string, all []mutant) (overlay string, regions map[string][]region, err error) {
	replaced := map[string]string{}
	regions = map[string][]region{}
	numbers := map[string][]int{} // of the mutants, by file
	for i, m := range all {
		numbers[m.file] = append(numbers[m.file], i+1)
	}
	name := ""
	for path, list := range numbers {
		source, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		f, err := parse(source)
		if err != nil {
			return "", nil, err
		}
		name = f.file.Name.Name
		file := filepath.Join(s.dir, strconv.Itoa(len(replaced))+".go")
		var tail bytes.Buffer
		calls := map[int][]int{} // the mutants of each function
		lines := bytes.Count(source, []byte("\n")) + 2
		for _, n := range list {
			m := all[n-1]
			changed, err := parse(append([]byte("package p\n"), m.text...))
			if err != nil {
				return "", nil, err
			}
			text := changed.clone(n)
			calls[m.decl] = append(calls[m.decl], n)
			count := strings.Count(text, "\n") + 1
			regions[file] = append(regions[file], region{lines, lines + count - 1, m.id()})
			lines += count
			tail.WriteString(text + "\n")
		}
		var edits []edit
		for decl, list := range calls {
			edits = append(edits, f.dispatch(decl, list)...)
		}
		if err := os.WriteFile(file, []byte(apply(string(source), edits)+"\n"+tail.String()), 0o600); err != nil {
			return "", nil, err
		}
		original, err := filepath.Abs(path)
		if err != nil {
			return "", nil, err
		}
		replaced[original] = file
	}
	if name != "" {
		file := filepath.Join(s.dir, "chooser.go")
		if err := os.WriteFile(file, fmt.Appendf(nil, chooser, name), 0o600); err != nil {
			return "", nil, err
		}
		original, err := filepath.Abs(filepath.Join(dir, "zz_mutant_chooser.go"))
		if err != nil {
			return "", nil, err
		}
		replaced[original] = file
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(s.dir, "overlay.json")
	return overlay, regions, os.WriteFile(overlay, b, 0o600)
}

// blamed are the mutants in whose functions the compiler found errors.
func blamed(out string, regions map[string][]region) map[string]bool {
	bad := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(\S+/(\d+\.go)):(\d+):`).FindAllStringSubmatch(out, -1) {
		line, _ := strconv.Atoi(m[3])
		for path, list := range regions {
			if filepath.Base(path) != m[2] { // the compiler may name it relative to where it runs
				continue
			}
			for _, r := range list {
				if r.from <= line && line <= r.to {
					bad[r.id] = true
				}
			}
		}
	}
	return bad
}

// parsed is a file with its text.
type parsed struct {
	set    *token.FileSet
	file   *ast.File
	source string
}

func parse(source []byte) (parsed, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ParseComments)
	return parsed{set, file, string(source)}, err
}

func (f parsed) at(p token.Pos) int { return f.set.Position(p).Offset }

// edit replaces a range of a text.
type edit struct {
	from, to int
	text     string
}

func apply(s string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		s = s[:e.from] + e.text + s[e.to:]
	}
	return s
}

// signature gives every parameter and the receiver a name. It returns the edits for that, the call's receiver and its arguments.
func (f parsed) signature(d *ast.FuncDecl) (edits []edit, receiver, arguments string) {
	var args []string
	field := func(x *ast.Field) (names []string) {
		if len(x.Names) == 0 {
			name := fmt.Sprintf("p%d__", f.at(x.Pos()))
			edits = append(edits, edit{f.at(x.Type.Pos()), f.at(x.Type.Pos()), name + " "})
			return []string{name}
		}
		for _, n := range x.Names {
			name := n.Name
			if name == "_" {
				name = fmt.Sprintf("p%d__", f.at(n.Pos()))
				edits = append(edits, edit{f.at(n.Pos()), f.at(n.End()), name})
			}
			names = append(names, name)
		}
		return names
	}
	if d.Recv != nil {
		receiver = field(d.Recv.List[0])[0] + "."
	}
	for _, p := range d.Type.Params.List {
		args = append(args, field(p)...)
		if _, variadic := p.Type.(*ast.Ellipsis); variadic {
			args[len(args)-1] += "..."
		}
	}
	return edits, receiver, strings.Join(args, ", ")
}

func cloneName(d *ast.FuncDecl, n int) string { return fmt.Sprintf("%s__%d", d.Name.Name, n) }

// clone is the text of a file's only function, under the name of its nth mutant.
func (f parsed) clone(n int) string {
	d := f.file.Decls[0].(*ast.FuncDecl)
	edits, _, _ := f.signature(d)
	edits = append(edits, edit{f.at(d.Name.Pos()), f.at(d.Name.End()), cloneName(d, n)})
	start := f.at(d.Pos())
	if d.Doc != nil {
		start = f.at(d.Type.Pos())
	}
	for i := range edits {
		edits[i].from, edits[i].to = edits[i].from-start, edits[i].to-start
	}
	return apply(f.source[start:f.at(d.End())], edits)
}

// dispatch makes a function call one of its mutants when that is chosen.
func (f parsed) dispatch(decl int, numbers []int) []edit {
	d := f.file.Decls[decl].(*ast.FuncDecl)
	edits, receiver, arguments := f.signature(d)
	types := ""
	if d.Type.TypeParams != nil {
		var names []string
		for _, p := range d.Type.TypeParams.List {
			for _, n := range p.Names {
				names = append(names, n.Name)
			}
		}
		types = "[" + strings.Join(names, ", ") + "]"
	}
	var b strings.Builder
	b.WriteString(" switch mutant__ {")
	for _, n := range numbers {
		call := receiver + cloneName(d, n) + types + "(" + arguments + ")"
		if d.Type.Results == nil {
			fmt.Fprintf(&b, " case %d: %s; return;", n, call)
		} else {
			fmt.Fprintf(&b, " case %d: return %s;", n, call)
		}
	}
	b.WriteString(" }; ")
	at := f.at(d.Body.Lbrace) + 1
	return append(edits, edit{at, at, b.String()})
}

// run runs the tests with a mutant, 0 for none.
func (s *suite) run(n int, run string, limit time.Duration) (result outcome, by string, err error) {
	dir, err := os.MkdirTemp(s.dir, "run")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)
	for i, binary := range s.binaries {
		exe := filepath.Join(dir, filepath.Base(binary))
		if err := os.Link(binary, exe); err != nil {
			return 0, "", err
		}
		if err := os.WriteFile(exe+".mutant", []byte(strconv.Itoa(n)), 0o600); err != nil {
			return 0, "", err
		}
		// The binary ends itself at its limit; what it has started may hold the output open beyond that.
		ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
		cmd := exec.CommandContext(ctx, exe, "-test.short", "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+run)
		cmd.Dir, cmd.WaitDelay = s.folders[i], time.Second
		out, err := cmd.CombinedOutput()
		cancel()
		switch text := string(out); {
		case err == nil || errors.Is(err, exec.ErrWaitDelay):
			continue
		case ctx.Err() == context.DeadlineExceeded || strings.Contains(text, "panic: test timed out after "):
			return undecided, "time limit", nil
		default:
			if n == 0 {
				return noticed, text, nil
			}
			return noticed, firstFailure(text), nil
		}
	}
	return survived, "", nil
}
