// Command mutants breaks the code on purpose, one small change at a time, and lists the changes that no test notices.
//
//	go run ./scripts/mutants ./tools/permission             every mutant of a package
//	go run ./scripts/mutants -n 60 -seed 3 ./tools/...      a sample of each package
//	go run ./scripts/mutants -base HEAD~5 ./...             only lines that differ from a commit
//	go run ./scripts/mutants -only survivors.txt ./tools/…  those of an earlier output
//
// A mutant changes one function: it negates a condition, drops one side of && or ||, moves a comparison or a number by one, or removes
// a statement. The mutants of a package are compiled into one test binary, from an overlay, so the tree is never touched. The tests
// of the package run with -short, and those that -also names; a mutant that does not compile is not counted. One that exceeds the
// time limit counts as noticed only when the unchanged code, tried again at once, is much faster: on a loaded machine everything is
// slow. A survivor is either a missing test or code that makes no difference; accepted ones are in ACCEPTED.txt beside this file,
// each with a reason.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// mutant is one change of one file.
type mutant struct {
	file string // relative to the module
	line int    // from 1
	what string // the change in words, which names it in ACCEPTED.txt
	decl int    // which declaration of the file it changes, from 0
	text []byte // the changed function
}

func (m mutant) id() string { return fmt.Sprintf("%s: %s", m.file, m.what) }

func main() {
	sample := flag.Int("n", 0, "mutants of each package at most, chosen by chance; 0: all")
	seed := flag.Uint64("seed", 1, "of the chance")
	base := flag.String("base", "", "only lines that differ from this commit")
	also := flag.String("also", "", "packages whose tests run as well, separated by blanks")
	limit := flag.Duration("limit", 2*time.Minute, "of one test run at most; the limit of a package is ten times what its unchanged code takes, if that is less")
	run := flag.String("run", "", "only tests whose names match")
	jobs := flag.Int("jobs", 2, "mutants tried at once")
	only := flag.String("only", "", "file with mutants to try again, in lines as this program prints them; others are left out")
	list := flag.Bool("list", false, "print the mutants, for -only, and try none")
	verbose := flag.Bool("v", false, "list the noticed mutants too, with the first test that failed")
	least := flag.Float64("least", 0, "percent that must be noticed; fewer is exit code 1")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [-n N] [-base REV] PACKAGE…")
		os.Exit(2)
	}
	accepted, err := readAccepted("scripts/mutants/ACCEPTED.txt")
	if err != nil {
		fatal(err)
	}
	var lines map[string]map[int]bool
	if *base != "" {
		if lines, err = changedLines(*base); err != nil {
			fatal(err)
		}
	}
	var again []byte
	if *only != "" {
		if again, err = os.ReadFile(*only); err != nil {
			fatal(err)
		}
	}
	seen, counted, failed := 0, 0, false
	for _, dir := range packages(flag.Args()) {
		all, err := mutants(dir)
		if err != nil {
			fatal(err)
		}
		if lines != nil {
			all = slices.DeleteFunc(all, func(m mutant) bool { return !lines[m.file][m.line] })
		}
		if again != nil { // by file and words: lines move
			all = slices.DeleteFunc(all, func(m mutant) bool {
				return !slices.ContainsFunc(strings.Split(string(again), "\n"), func(line string) bool {
					return strings.Contains(line, m.file+":") && (strings.HasSuffix(line, ": "+m.what) || strings.Contains(line, ": "+m.what+" ("))
				})
			})
		}
		if *sample > 0 && len(all) > *sample {
			r := rand.New(rand.NewPCG(*seed, uint64(len(all))))
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			all = all[:*sample]
		}
		tests := append([]string{"./" + dir}, strings.Fields(*also)...)
		all = slices.DeleteFunc(all, func(m mutant) bool { return accepted[m.id()] })
		if *list {
			for _, m := range all {
				fmt.Printf("%s:%d: %s\n", m.file, m.line, m.what)
			}
			continue
		}
		if len(all) == 0 {
			continue
		}
		n, k, err := examine(dir, all, tests, *run, *limit, *jobs, *verbose)
		if err != nil {
			fatal(err)
		}
		if n > 0 {
			fmt.Printf("%-28s %d of %d noticed (%.0f %%)\n", dir, k, n, 100*float64(k)/float64(n))
			failed = failed || 100*float64(k) < *least*float64(n)
		}
		seen, counted = seen+k, counted+n
	}
	if !*list {
		fmt.Printf("%d of %d mutants noticed\n", seen, counted)
	}
	if failed {
		os.Exit(1)
	}
}

// examine tries the mutants of one package.
func examine(dir string, all []mutant, tests []string, run string, limit time.Duration, jobs int, verbose bool) (counted, seen int, err error) {
	s, all, err := build(dir, all, tests)
	if s != nil {
		defer os.RemoveAll(s.dir)
	}
	if err == nil {
		err = s.measure(run, limit)
	}
	if err != nil {
		return 0, 0, err
	}
	return s.try(all, run, jobs, verbose)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "mutants:", err)
	os.Exit(2)
}

// readAccepted reads the survivors that were looked at: "file: what # reason", one a line.
func readAccepted(path string) (map[string]bool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for n, line := range strings.Split(string(b), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, ok := strings.Cut(line, " # ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: no reason (file: what # reason)", path, n+1)
		}
		out[strings.TrimSpace(id)] = true
	}
	return out, nil
}

// packages are the folders of the patterns, relative to the module.
func packages(patterns []string) []string {
	root, err := os.Getwd()
	if err != nil {
		fatal(err)
	}
	out, err := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, patterns...)...).Output()
	if err != nil {
		fatal(fmt.Errorf("go list: %w", err))
	}
	var dirs []string
	for dir := range strings.FieldsSeq(string(out)) {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			fatal(err)
		}
		dirs = append(dirs, filepath.ToSlash(rel))
	}
	return dirs
}

// changedLines are the lines of the present tree that a commit does not have, by file.
func changedLines(base string) (map[string]map[int]bool, error) {
	out, err := exec.Command("git", "diff", "-U0", "--no-color", base, "--", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w", base, err)
	}
	lines, file := map[string]map[int]bool{}, ""
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
			lines[file] = map[int]bool{}
		}
		if !strings.HasPrefix(line, "@@") || file == "" {
			continue
		}
		_, place, _ := strings.Cut(line, "+")
		place, _, _ = strings.Cut(place, " ")
		start, count, many := strings.Cut(place, ",")
		first, _ := strconv.Atoi(start)
		n := 1
		if many {
			n, _ = strconv.Atoi(count)
		}
		for i := range n {
			lines[file][first+i] = true
		}
	}
	return lines, nil
}

// mutants makes every change of a package's files that this system builds.
func mutants(dir string) ([]mutant, error) {
	out, err := exec.Command("go", "list", "-f", `{{join .GoFiles "\n"}}`, "./"+dir).Output()
	if err != nil {
		return nil, fmt.Errorf("go list ./%s: %w", dir, err)
	}
	var all []mutant
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(name, "_gen.go") {
			continue
		}
		list, err := mutantsOf(dir + "/" + name)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func mutantsOf(path string) ([]mutant, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []mutant
	function, decl := "", 0
	// try prints the function as the tree stands, which the caller has just changed and changes back.
	try := func(at token.Pos, what string) {
		var b bytes.Buffer
		if err := format.Node(&b, set, file.Decls[decl]); err == nil {
			all = append(all, mutant{path, set.Position(at).Line, function + ": " + what, decl, b.Bytes()})
		}
	}
	text := func(n ast.Node) string {
		var b bytes.Buffer
		_ = format.Node(&b, set, n)
		s := strings.Join(strings.Fields(b.String()), " ")
		if len(s) > 80 {
			s = s[:80] + "…"
		}
		return s
	}
	block := func(list []ast.Stmt) {
		for i, s := range list {
			switch s.(type) {
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt:
			case *ast.AssignStmt:
				if s.(*ast.AssignStmt).Tok == token.DEFINE {
					continue
				}
			default:
				continue
			}
			list[i] = &ast.EmptyStmt{Semicolon: s.Pos(), Implicit: false}
			try(s.Pos(), "without "+text(s))
			list[i] = s
		}
	}
	inspect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			function = n.Name.Name
		case *ast.IfStmt:
			cond := n.Cond
			n.Cond = &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: cond}}
			try(cond.Pos(), "negated if "+text(cond))
			n.Cond = cond
		case *ast.BinaryExpr:
			op := n.Op
			switch op {
			case token.LAND, token.LOR:
				// One side decides alone: the other becomes what makes no difference.
				neutral := ast.NewIdent(map[token.Token]string{token.LAND: "true", token.LOR: "false"}[op])
				x, y, words, at := n.X, n.Y, text(n), n.Pos()
				n.X = neutral
				try(at, "right side only of "+words)
				n.X, n.Y = x, neutral
				try(at, "left side only of "+words)
				n.Y = y
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				words := text(n)
				n.Op = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}[op]
				try(n.Pos(), "boundary of "+words)
				n.Op = op
			case token.EQL, token.NEQ:
				words := text(n)
				n.Op = map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL}[op]
				try(n.Pos(), "turned "+words)
				n.Op = op
			}
		case *ast.BlockStmt:
			block(n.List)
		case *ast.CaseClause:
			block(n.Body)
		case *ast.BasicLit:
			if n.Kind == token.INT {
				value := n.Value
				if v, err := strconv.ParseInt(value, 0, 64); err == nil && v > 1 {
					n.Value = strconv.FormatInt(v+1, 10)
					try(n.Pos(), value+" made one larger")
					n.Value = value
				}
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				name := n.Name
				n.Name = map[string]string{"true": "false", "false": "true"}[name]
				try(n.Pos(), name+" turned")
				n.Name = name
			}
		}
		return true
	}
	for i, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			decl = i
			ast.Inspect(f, inspect)
		}
	}
	return all, nil
}

// outcome is what the tests make of a mutant.
type outcome int

const (
	survived outcome = iota
	noticed
	undecided // it exceeded the limit, and the unchanged code was slow as well
)

// try runs the tests on each mutant, jobs at once, and prints those that survive as soon as they do. It counts those that were decided and
// those of them that were noticed.
func (s *suite) try(all []mutant, run string, jobs int, verbose bool) (counted, seen int, err error) {
	next := make(chan int)
	var group sync.WaitGroup
	var mu sync.Mutex // guards the results and the output
	for range jobs {
		group.Go(func() {
			for i := range next {
				m := all[i]
				result, by, e := s.judge(i+1, run)
				mu.Lock()
				switch {
				case e != nil:
					err = e
				case result == survived:
					counted++
					fmt.Printf("survived  %s:%d: %s\n", m.file, m.line, m.what)
				case result == undecided:
					fmt.Printf("undecided %s:%d: %s (over %v, and the unchanged code is slow now)\n", m.file, m.line, m.what, s.limit)
				default:
					counted++
					seen++
					if verbose {
						fmt.Printf("noticed   %s:%d: %s (%s)\n", m.file, m.line, m.what, by)
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	group.Wait()
	return counted, seen, err
}

// judge runs the tests on the nth mutant. by is the first test that failed, or what happened instead.
func (s *suite) judge(n int, run string) (result outcome, by string, err error) {
	result, by, err = s.run(n, run, s.limit)
	if err != nil || result != undecided {
		return result, by, err
	}
	// The limit is ten times what the unchanged code took before, so a third of it now still leaves it far behind.
	start := time.Now()
	now, _, err := s.run(0, run, s.limit)
	if err != nil || now != survived || time.Since(start) > s.limit/3 {
		return undecided, by, err
	}
	return noticed, by, nil
}

// measure runs the unchanged code and sets the limit from it. The tests must pass: with tests that fail anyway every mutant would count as
// noticed.
func (s *suite) measure(run string, most time.Duration) error {
	start := time.Now()
	result, out, err := s.run(0, run, most)
	if err == nil && result != survived {
		err = fmt.Errorf("the tests fail without any change: %s", out)
	}
	s.limit = min(most, 10*time.Since(start)+10*time.Second)
	return err
}

// firstFailure is the name of the first test that go test reports as failed, else the line that says what ended it.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return "exit code"
}
