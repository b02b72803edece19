package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/pillion-dev/pillion/"

// allowed reads the import table of ARCHITECTURE.md.
func allowed(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code := regexp.MustCompile("`([^`]+)`")
	words := func(cell string) (out []string) {
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
		return out
	}
	table := map[string][]string{}
	in := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "## "):
			in = strings.HasPrefix(line, "## Who may import whom")
		case in && strings.HasPrefix(line, "| `"):
			cells := strings.Split(line, "|")
			may := words(cells[2])
			if strings.Contains(cells[2], "anything") {
				may = []string{"*"}
			}
			for _, p := range words(cells[1]) {
				table[p] = may
			}
		}
	}
	if len(table) < 10 {
		t.Fatalf("the table was not found: %v", table)
	}
	return table
}

func TestImportsFollowTheTableInArchitecture(t *testing.T) {
	table := allowed(t)
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "../agent/...", "../lspbridge/...", "../tools/...", "../sidecar/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		may, ok := table[name]
		if !ok {
			if strings.HasPrefix(name, "sidecar/") || name == "sidecar" {
				may = []string{"*"}
			} else {
				t.Errorf("%s has no row in the table of ARCHITECTURE.md", name)
				continue
			}
		}
		for _, i := range p.Imports {
			to, ours := strings.CutPrefix(i, module)
			if !ours {
				continue
			}
			if to == "sidecar" || strings.HasPrefix(to, "sidecar/") && !strings.HasPrefix(name, "sidecar") {
				t.Errorf("%s imports %s: nothing below may know the sidecar", name, to)
			}
			if !slices.ContainsFunc(may, func(pattern string) bool {
				ok, _ := path.Match(pattern, to)
				return ok || pattern == "*"
			}) {
				t.Errorf("%s imports %s, which the table of ARCHITECTURE.md does not allow", name, to)
			}
		}
	}
}

// TestTheLifeOfAnEditIsAsWritten finds each function of the walk in ARCHITECTURE.md in the file that is named beside it.
func TestTheLifeOfAnEditIsAsWritten(t *testing.T) {
	page, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, _ := strings.Cut(string(page), "## The life of an edit\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)\\.(\\w+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(walk, -1)
	if len(rows) != 15 {
		t.Fatalf("the walk has %d functions, not 15", len(rows))
	}
	for _, row := range rows {
		source, err := os.ReadFile("../" + row[3])
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func \(\w+ \*?` + row[1] + `\) ` + row[2] + `\(`).Match(source) {
			t.Errorf("%s has no method %s of %s", row[3], row[2], row[1])
		}
	}
}

// product are the files of the program, without tests, by their paths from here. They are read once for all tests: under the race detector
// that takes seconds.
func product(t *testing.T) map[string]*ast.File {
	t.Helper()
	files, err := readProduct()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var readProduct = sync.OnceValues(func() (map[string]*ast.File, error) {
	files := map[string]*ast.File{}
	for _, room := range []string{"../agent", "../lspbridge", "../sidecar", "../tools"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
})

// Every child gets an environment without keys, since guard.Command makes it. A process started otherwise fails here.
func TestEveryProcessStartsThroughGuard(t *testing.T) {
	own := map[string]string{
		"../tools/guard/environ.go": "guard.Command itself", "../tools/guard/guard_linux.go": "starts the same command again", "../tools/guard/watch_unix.go": "this program as its own watcher",
		"../tools/shell/sandbox/probe_linux.go": "this program as its own helper", "../tools/shell/sandbox/enter_linux.go": "the helper becomes the command, with the environment it was given",
		"../tools/draft/enter_linux.go":         "the helper becomes the program, with the environment it was given",
		"../tools/draft/worker/launch_linux.go": "a shell takes the relay's place, with the environment it was given",
		"../tools/search/index_build_linux.go":  "the build of an index begins anew at the lowest priority, with the environment it was given",
		"../lspbridge/process_windows.go":       "taskkill",
		"../tools/treesitter/gen/main.go":       "a generator that developers run; it is not part of the program",
	}
	starts := map[string]bool{"exec.Command": true, "exec.CommandContext": true, "exec.Cmd": true, "os.StartProcess": true, "syscall.StartProcess": true, "syscall.ForkExec": true, "syscall.Exec": true, "unix.Exec": true}
	seen := 0
	for path, file := range product(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			var at ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				at = n.Fun
			case *ast.CompositeLit: // exec.Cmd{…} is a start without a constructor
				at = n.Type
			}
			sel, ok := at.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name, _ := sel.X.(*ast.Ident)
			if name == nil {
				return true
			}
			switch call := name.Name + "." + sel.Sel.Name; {
			case call == "guard.Command" || call == "guard.CommandContext":
				seen++
			case starts[call] && own[path] == "":
				t.Errorf("%s: %s starts a process with all keys in its environment; use guard.Command", path, call)
			}
			return true
		})
	}
	if seen < 12 {
		t.Errorf("only %d uses of guard.Command were found; does the test still read them?", seen)
	}
}

// The program starts many times a day, as a helper too. An expression at package level is compiled at each start, whoever needs it.
func TestNoExpressionIsCompiledAtTheStart(t *testing.T) {
	for path, file := range product(t) {
		for _, decl := range file.Decls {
			if vars, ok := decl.(*ast.GenDecl); !ok || vars.Tok != token.VAR {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "MustCompile") {
					t.Errorf("%s: compile %s at its first use, with sync.OnceValue", path, sel.Sel.Name)
				}
				_, later := n.(*ast.FuncLit)
				return !later
			})
		}
	}
}

// The race detector sees only what runs at the same time. A package that starts a goroutine, itself or through what it imports of ours, is
// tested with it.
func TestPackagesWithoutTheRaceDetectorStartNoGoroutine(t *testing.T) {
	list, err := os.ReadFile("../test/without_race.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var check func(pkg string, tests bool)
	check = func(pkg string, tests bool) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		found, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %d files, %v", pkg, len(found), err)
		}
		for _, name := range found {
			if !tests && strings.HasSuffix(name, "_test.go") {
				continue
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: starts a goroutine", files.Position(n.Pos()))
				case *ast.SelectorExpr:
					if slices.Contains([]string{"Go", "Parallel", "RunParallel", "AfterFunc"}, n.Sel.Name) {
						t.Errorf("%s: %s starts a goroutine", files.Position(n.Pos()), n.Sel.Name)
					}
				}
				return true
			})
			for _, i := range file.Imports {
				if of, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
					check(of, false)
				}
			}
		}
	}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			check(line, true)
		}
	}
	if len(seen) < 3 {
		t.Errorf("only %v were read", seen)
	}
}
