package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

const brokenGo = `package main

import "fmt"

func main() {
	fmt.Println(helper(1))
	missing()
}

func helper(n int) int { return n }
`

// lspSession is the lsp tool on a project, with everything allowed.
type lspSession struct {
	t    *testing.T
	dir  string
	tool tools.Tool
	call *tools.Call
}

func newLSPSession(t *testing.T, bridge func(dir string) Bridge, rules ...permission.Rule) *lspSession {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.24\n")
	put(t, filepath.Join(dir, "main.go"), brokenGo)
	put(t, filepath.Join(dir, ".env"), "SECRET=1\n")
	env := Env{Cwd: dir, Root: dir, StateDir: t.TempDir(), Tracker: &files.Tracker{}, Locks: &files.Locks{}, Bridge: bridge(dir)}
	rules = append([]permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}, rules...)
	gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }})
	return &lspSession{t, dir, LSP(env), &tools.Call{SessionID: "s", CallID: "c", Tool: "lsp", Host: tools.Host{Gate: gate}}}
}

func (s *lspSession) run(input string) (tools.Result, error) {
	return s.tool.Run(s.t.Context(), json.RawMessage(input), s.call)
}

func (s *lspSession) must(input, want string) tools.Result {
	s.t.Helper()
	r, err := s.run(input)
	if err != nil {
		s.t.Fatalf("%s: %v", input, err)
	}
	if !strings.Contains(r.Output, want) {
		s.t.Errorf("%s says\n%s\nwhich lacks\n%s", input, r.Output, want)
	}
	return r
}

func gopls(t *testing.T) func(string) Bridge {
	return func(dir string) Bridge {
		m := lspbridge.New(lspbridge.Options{Root: dir})
		t.Cleanup(func() { m.Close(context.Background()) })
		for _, l := range m.Doctor() {
			if l.ID == "gopls" && !l.Found {
				t.Skip("gopls is not installed: " + l.Install)
			}
		}
		return m
	}
}

// The whole ride of the built-in model: find the problems, list the fixes, apply one, look again.
func TestLSPFixesAProblem(t *testing.T) {
	s := newLSPSession(t, gopls(t))
	r := s.must(`{"operation":"diagnostics"}`, "1 error in 1 file.\n\nERROR main.go:7:2 undefined: missing [compiler UndeclaredName]")
	problems := r.Metadata["diagnostics"].([]change.Problem)
	if len(problems) != 1 || problems[0].Line != 7 || problems[0].Path != filepath.Join(s.dir, "main.go") || r.Metadata["state"] != "fresh" {
		t.Errorf("metadata %+v", r.Metadata)
	}
	s.must(`{"operation":"codeActions","filePath":"main.go","line":7,"character":9,"kind":"quickfix"}`, "a1  Create function missing [quickfix]")
	// The lines move before the action is applied.
	moved := strings.Replace(brokenGo, "func main", "// main starts.\nfunc main", 1)
	put(t, filepath.Join(s.dir, "main.go"), moved)
	s.must(`{"operation":"codeActions","apply":"a1"}`, "Change applied successfully.")
	b, _ := os.ReadFile(filepath.Join(s.dir, "main.go"))
	if !strings.Contains(string(b), "// main starts.") || !strings.Contains(string(b), "func missing()") {
		t.Errorf("the file is now\n%s", b)
	}
	s.must(`{"operation":"diagnostics","filePath":"main.go"}`, "No problems.")
}

// A server that is not installed for some files takes nothing from what another says of the rest.
func TestAMissingServerHidesNoOther(t *testing.T) {
	s := newLSPSession(t, func(dir string) Bridge {
		gopls(t)(dir)
		m := lspbridge.New(lspbridge.Options{Root: dir, Servers: map[string]lspbridge.ServerConfig{
			"absent": {Command: []string{"no-such-language-server"}, Extensions: []string{".absent"}},
		}})
		t.Cleanup(func() { m.Close(context.Background()) })
		return m
	})
	put(t, filepath.Join(s.dir, "a.absent"), "x\n")
	s.must(`{"operation":"diagnostics"}`, "1 error in 1 file. (partial: 1 .absent file not checked: ")
	put(t, filepath.Join(s.dir, "main.go"), "package main\n\nfunc main() {}\n")
	if r := s.must(`{"operation":"diagnostics"}`, "No problems in what was checked. (partial: 1 .absent file not checked: "); r.Metadata["state"] != "partial" {
		t.Errorf("state %v", r.Metadata["state"])
	}
	s.must(`{"operation":"diagnostics","filePath":"a.absent"}`, "Not known. (unavailable: ")
}

func TestSeveralMissingServersAreNamedBriefly(t *testing.T) {
	one := "1 .ts file not checked: tsls not found; install it with npm i -g tsls, or set lsp.typescript.command"
	if got := briefly([]string{one}); len(got) != 1 || got[0] != one {
		t.Errorf("one: %q", got)
	}
	got := strings.Join(briefly([]string{one, "2 .lua files not checked: luals not found; see its page", "gopls is starting"}), "; ")
	if want := "1 .ts file not checked: tsls not found; 2 .lua files not checked: luals not found; gopls is starting; pillion doctor says how to install what is missing"; got != want {
		t.Errorf("several: %q", got)
	}
}

func TestLSPAnswers(t *testing.T) {
	s := newLSPSession(t, gopls(t))
	s.must(`{"operation":"goToDefinition","filePath":"main.go","line":6,"character":15}`, "main.go:10:6  func helper(n int) int { return n }")
	s.must(`{"operation":"findReferences","filePath":"main.go","line":10,"character":6}`, "main.go:6:14  fmt.Println(helper(1))")
	s.must(`{"operation":"hover","filePath":"main.go","line":10,"character":6}`, "func helper(n int) int")
	s.must(`{"operation":"documentSymbol","filePath":"main.go"}`, "function helper func(n int) int  10:6-10")
	s.must(`{"operation":"workspaceSymbol","query":"helper"}`, "main.go:10:6")
	s.must(`{"operation":"incomingCalls","filePath":"main.go","line":10,"character":6}`, "function main  main.go:5:6  called at main.go:6:14")
	s.must(`{"operation":"outgoingCalls","filePath":"main.go","line":5,"character":6}`, "helper  main.go:10:6  called at main.go:6:14")
	put(t, filepath.Join(s.dir, "types.go"), "package main\n\ntype named interface{ name() string }\n\ntype dog struct{}\n\nfunc (dog) name() string { return \"\" }\n")
	s.must(`{"operation":"typeHierarchy","filePath":"types.go","line":5,"character":6}`, "class dog  types.go:5:6\n  supertype: interface named  types.go:3:6")
	s.must(`{"operation":"rename","filePath":"main.go","line":10,"newName":"twice","character":6}`, "Change applied successfully.")
	s.must(`{"operation":"goToDefinition","filePath":"main.go","line":6,"character":15}`, "main.go:10:6  func twice(n int) int")
	s.must(`{"operation":"format","filePath":"main.go"}`, "there is nothing to change")
	s.must(`{"operation":"goToDefinition","filePath":"main.go","line":2,"character":1}`, "") // an empty line
}

func TestLSPRefuses(t *testing.T) {
	s := newLSPSession(t, func(dir string) Bridge { return lspbridge.New(lspbridge.Options{Root: dir}) },
		permission.Rule{Permission: "read", Pattern: "*.env", Action: permission.Deny})
	for _, c := range []struct{ input, want string }{
		{`{"operation":"hover"}`, "hover needs filePath"},
		{`{"operation":"hover","filePath":"main.go"}`, "needs line and character"},
		{`{"operation":"hover","filePath":"main.go","line":99}`, "main.go has 11 lines; line 99 is beyond its end"},
		{`{"operation":"hover","filePath":"mian.go","line":1}`, "Did you mean one of these?"},
		{`{"operation":"hover","filePath":".","line":1}`, "is a folder"},
		{`{"operation":"hover","filePath":".env","line":1}`, "denies read"},
		{`{"operation":"rename","filePath":"main.go","line":1}`, "rename needs newName"},
		{`{"operation":"workspaceSymbol"}`, "needs query"},
		{`{"operation":"codeActions","apply":"a7"}`, `There is no action "a7"`},
		{`{"operation":"documentSymbol","filePath":"go.sum"}`, "File not found"},
		{`{"operation":"documentSymbol","filePath":"notes.txt"}`, "no language server for notes.txt"},
	} {
		put(t, filepath.Join(s.dir, "notes.txt"), "x")
		if _, err := s.run(c.input); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.input, err, c.want)
		}
	}
	none := newLSPSession(t, func(string) Bridge { return nil })
	var e *tools.Error
	if _, err := none.run(`{"operation":"diagnostics"}`); !errors.As(err, &e) || e.Kind != "unavailable" {
		t.Errorf("without servers: %v", err)
	}
}

// An edit that no server offers is found by checking the module, proposed like any other, and taken back by its id.
func TestFixesThatNoServerOffers(t *testing.T) {
	s := newLSPSession(t, gopls(t))
	path := filepath.Join(s.dir, "main.go")
	wrong := strings.Replace(brokenGo, "\tmissing()\n", "\tfmt.Prinln(1)\n", 1)
	put(t, path, wrong)
	r := s.must(`{"operation":"codeActions","filePath":"main.go","line":7,"character":6}`, "Change Prinln to Println [quickfix]  fixes 1, introduces 0")
	data, err := json.Marshal(r.Metadata["actions"])
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID, Title, Server string
		Effect            *effect
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, a := range list {
		if a.Title == "Change Prinln to Println" && a.Server == "pillion" && a.Effect != nil && a.Effect.Errors == -1 {
			id = a.ID
		}
	}
	s.must(`{"operation":"codeActions","apply":"`+id+`"}`, "Change applied successfully.")
	if got, _ := os.ReadFile(path); !strings.Contains(string(got), "fmt.Println(1)") {
		t.Fatalf("%s", got)
	}
	s.must(`{"operation":"codeActions","undo":"`+id+`"}`, "Change applied successfully.")
	if got, _ := os.ReadFile(path); string(got) != wrong {
		t.Errorf("not taken back:\n%s", got)
	}
	put(t, path, strings.Replace(wrong, "func main", "func  main", 1))
	if _, err := s.run(`{"operation":"codeActions","apply":"` + id + `"}`); kindOf(err) != "stale" {
		t.Errorf("an action computed from another text: %v", err)
	}
}

// An action that only silences an error about a value comes after others that fix as many.
func TestAnActionThatDiscardsAValueComesLast(t *testing.T) {
	const before = "package p\n\nfunc f() {\n\tn, err := g()\n\t_ = n\n}\n"
	for text, want := range map[string]bool{
		strings.Replace(before, "n, err :=", "_, _ =", 1):   true,
		strings.Replace(before, "_ = n", "_ = n; _ = n", 1): false, // not a line of its own
		strings.Replace(before, "_ = n", "_ = n\n\t_=n", 1): true,
		strings.Replace(before, "n, err :=", "n, _ :=", 1):  false,
		strings.Replace(before, "\t_ = n\n", "", 1):         false,
		strings.Replace(before, "n, err :=", "n, err =", 1): false,
		strings.Replace(before, "\tn, err := g()\n", "", 1): true,
		strings.Replace(before, "n, err := g", "g", 1):      true,
		strings.Replace(before, ":= g", ":= h", 1):          false,
	} {
		if got := discards([]lspbridge.FileEdit{{Path: "/p/a.go", Old: before, New: text}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if discards([]lspbridge.FileEdit{{Path: "/p/a.py", Old: before, New: text}}) {
			t.Errorf("%q discards nothing in Python", text)
		}
	}
	silent, real, more := &effect{Fixes: 1, Errors: -1, Discards: true}, &effect{Fixes: 1, Errors: -1}, &effect{Fixes: 2, Errors: -2, Discards: true}
	if better(silent, real) <= 0 || better(real, silent) >= 0 || better(more, real) >= 0 || better(silent, nil) >= 0 {
		t.Error("the order is wrong")
	}
}

// A declaration of the unknown name itself is as empty as a stub: a misspelt use is then no error any more, and no less wrong.
func TestAnActionThatDeclaresTheUnknownNameIsAStub(t *testing.T) {
	const before = "package p\n\nimport (\n\t\"os\"\n)\n\nfunc f(prefix string) string {\n\treturn prefx + os.Args[0]\n}\n"
	for name, c := range map[string]struct {
		old, new, word string
		stub           bool
	}{
		"a variable":             {before, strings.Replace(before, "\treturn", "\tprefx := \"\"\n\treturn", 1), "prefx", true},
		"a function":             {before, before + "\nfunc prefx() string { return \"\" }\n", "prefx", true},
		"the name it should be":  {before, strings.Replace(before, "prefx", "prefix", 1), "prefx", false},
		"a parameter renamed":    {before, strings.Replace(before, "prefix", "prefx", 1), "prefx", false},
		"an import of Go":        {before, strings.Replace(before, "\t\"os\"\n", "\t\"fmt\"\n\t\"os\"\n", 1), "fmt", false},
		"a named import":         {before, strings.Replace(before, "\t\"os\"\n", "\tprefx \"x/prefix\"\n\t\"os\"\n", 1), "prefx", false},
		"an import of a script":  {"a()\n", "import { a } from './b'\na()\n", "a", false},
		"require":                {"a()\n", "const a = require('./a')\na()\n", "a", false},
		"a constant of a script": {"a()\n", "const a = undefined\na()\n", "a", true},
		"an import of Python":    {"sys.exit()\n", "import sys\nsys.exit()\n", "sys", false},
		"no word":                {before, before + "var x int\n", "", false},
		"another word":           {before, before + "var prefxs int\n", "prefx", false},
	} {
		if got := declares([]lspbridge.FileEdit{{Old: c.old, New: c.new}}, c.word); got != c.stub {
			t.Errorf("%s: %v", name, got)
		}
	}
	at := lspbridge.Range{Start: lspbridge.Position{Line: 7, Character: 8}, End: lspbridge.Position{Line: 7, Character: 13}}
	if got := wordIn(before, at); got != "prefx" {
		t.Errorf("the word is %q", got)
	}
	at.End.Character++
	if got := wordIn(before, at); got != "" {
		t.Errorf("%q is no word", got)
	}
}
