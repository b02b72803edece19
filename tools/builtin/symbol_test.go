package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/symbol"
)

const shopGo = `package main

import "fmt"

// Cart holds things.
type Cart struct {
	items []string
}

// Add adds one.
func (c *Cart) Add(item string) {
	c.items = append(c.items, item)
}

// Len counts.
func (c *Cart) Len() int { return len(c.items) }

func main() {
	var c Cart
	c.Add("a")
	fmt.Println(c.Len())
}

func unused() {}

var (
	one = 1
	two = 2 // both
)
`

// symbolSession calls symbol tools on a project of two Go files, everything allowed.
type symbolSession struct {
	t     *testing.T
	dir   string
	tools map[string]tools.Tool
	gate  *permission.Gate
}

func newSymbolSession(t *testing.T, bridge func(dir string) Bridge, rules ...permission.Rule) *symbolSession {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module shop\n\ngo 1.24\n", "main.go": shopGo, "other/other.go": "package other\n\n// Add is another.\nfunc Add() int { return two }\n\nconst two = 2\n", "secret.env": "SECRET=1\n"} {
		put(t, filepath.Join(dir, name), text)
	}
	s := &symbolSession{t: t, dir: dir, tools: map[string]tools.Tool{}}
	for _, tool := range All(Env{Cwd: dir, Root: dir, StateDir: t.TempDir(), Tracker: &files.Tracker{}, Locks: &files.Locks{}, Bridge: bridge(dir)}) {
		s.tools[tool.ID] = tool
	}
	rules = append([]permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}, rules...)
	s.gate = permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }})
	return s
}

func (s *symbolSession) run(tool, input string) (tools.Result, error) {
	return s.tools[tool].Run(s.t.Context(), json.RawMessage(input), &tools.Call{SessionID: "s", CallID: "c", Tool: tool, Host: tools.Host{Gate: s.gate}})
}

func (s *symbolSession) says(tool, input string, want ...string) string {
	s.t.Helper()
	r, err := s.run(tool, input)
	out := r.Output
	if err != nil {
		var e *tools.Error
		if !errors.As(err, &e) {
			s.t.Fatalf("%s %s: %v", tool, input, err)
		}
		out = e.Kind + ": " + e.Message
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			s.t.Errorf("%s %s says\n%s\nwhich lacks\n%s", tool, input, out, w)
		}
	}
	return out
}

func (s *symbolSession) file(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// The same work with gopls and without any server.
func TestSymbols(t *testing.T) {
	if !symbol.Supported("a.go") {
		t.Skip("built without cgo: no grammars")
	}
	for _, name := range []string{"gopls", "no server"} {
		t.Run(name, func(t *testing.T) {
			served := name == "gopls"
			bridge := func(string) Bridge { return nil }
			if served {
				bridge = gopls(t)
			}
			s := newSymbolSession(t, bridge)
			s.says("symbol_find", `{"query":"Cart.Len","bodies":true}`, "main.go\n  method Cart.Len  15-16\n15: // Len counts.\n16: func (c *Cart) Len() int { return len(c.items) }")
			s.says("symbol_find", `{"query":"add"}`, "method Cart.Add  10-13", "other/other.go\n  function Add  3-4")
			s.says("symbol_find", `{"query":"add","path":"other"}`, "other/other.go\n  function Add  3-4")
			s.says("symbol_find", `{"path":"main.go","kind":"type"}`, "main.go\n  struct Cart  5-8")
			s.says("symbol_find", `{"query":"nowhereToBeFound"}`, "No symbols found.")
			read := s.says("symbol_read", `{"symbol":"Cart.Add"}`, "method Cart.Add  main.go:10-13\n10: // Add adds one.\n11: func (c *Cart) Add(item string) {\n12: \tc.items = append(c.items, item)\n13: }")
			if said := strings.Contains(read, "tree-sitter"); said == served {
				t.Errorf("where it comes from: %s", read)
			}
			s.says("symbol_read", `{"symbol":"Add"}`, "multiple: 2 symbols are called Add; give filePath, line or a longer name path:", "method Cart.Add  main.go:10-13", "function Add  other/other.go:3-4")
			s.says("symbol_read", `{"symbol":"Add","filePath":"other/other.go"}`, "3: // Add is another.")
			s.says("symbol_read", `{"symbol":"Add","line":12}`, "method Cart.Add  main.go:10-13")
			s.says("symbol_read", `{"symbol":"Cart.Remove"}`, "not_found: There is no symbol Cart.Remove in this project")
			s.says("symbol_read", `{"symbol":"Lenn","filePath":"main.go"}`, "there are Cart.Len")

			s.says("symbol_read", `{"symbol":"Cart.Len"}`, "method Cart.Len")
			s.says("symbol_replace", `{"symbol":"Cart.Len","body":"func (c *Cart) Len() int {\n\treturn len(c.items)\n}"}`, "Change applied successfully.")
			s.says("symbol_insert_after", `{"symbol":"Cart.Len","body":"// Empty empties.\nfunc (c *Cart) Empty() { c.items = nil }"}`, "Change applied successfully.")
			s.says("symbol_insert_before", `{"symbol":"two","filePath":"main.go","body":"half = 0"}`, "Change applied successfully.")
			if want := "// Len counts.\nfunc (c *Cart) Len() int {\n\treturn len(c.items)\n}\n\n// Empty empties.\nfunc (c *Cart) Empty() { c.items = nil }\n\nfunc main"; !strings.Contains(s.file("main.go"), want) {
				t.Errorf("lacks\n%s\nin\n%s", want, s.file("main.go"))
			}
			if want := "\tone = 1\n\thalf = 0\n\ttwo = 2 // both\n"; !strings.Contains(s.file("main.go"), want) {
				t.Errorf("lacks\n%s\nin\n%s", want, s.file("main.go"))
			}
			before := s.file("main.go")
			s.says("symbol_replace", `{"symbol":"Cart.Len","body":"return 1"}`, "not_whole: symbol_replace Cart.Len: body is not a whole declaration")
			s.says("symbol_replace", `{"symbol":"Cart.Len","body":"func (c *Cart) Len() int { return (1 }"}`, "not_whole: symbol_replace Cart.Len: with this body the file would have a syntax error")
			s.says("symbol_replace", `{"symbol":"Cart.Len","body":" "}`, "needs body")
			places := "3 places" // by name: the other Add and its comment too
			if served {
				places = "1 place"
			}
			s.says("symbol_delete", `{"symbol":"Cart.Add"}`, "referenced: Cart.Add is still used in "+places+"; nothing was deleted. Change these first:\nmain.go:", `c.Add("a")`)
			if s.file("main.go") != before {
				t.Error("a refused change was made")
			}
			s.says("symbol_delete", `{"symbol":"unused"}`, "Change applied successfully.")
			if strings.Contains(s.file("main.go"), "unused") {
				t.Errorf("unused is still there:\n%s", s.file("main.go"))
			}
			if !served {
				s.says("symbol_references", `{"symbol":"Cart.Add"}`, "unsupported: ")
				s.says("symbol_rename", `{"symbol":"Cart.Add","newName":"Put"}`, "unsupported: ")
				return
			}
			s.says("symbol_references", `{"symbol":"Cart.Add"}`, "method Cart.Add (main.go:10) is used 1 time in 1 file\nmain.go\n  ", " in main  c.Add(\"a\")")
			s.says("symbol_references", `{"symbol":"Cart.Empty"}`, "is not used in any file that the language server checks")
			s.says("symbol_rename", `{"symbol":"Cart.Add","newName":"Put"}`, "Change applied successfully.", "(Add still occurs at other/other.go:3: another symbol of that name")
			if now := s.file("main.go"); !strings.Contains(now, `c.Put("a")`) || !strings.Contains(now, "func (c *Cart) Put(item") || strings.Contains(s.file("other/other.go"), "Put") {
				t.Errorf("renamed:\n%s", now)
			}
			s.says("symbol_read", `{"symbol":"Cart.Put"}`, "Cart.Put")
			s.says("symbol_replace", `{"symbol":"Cart.Put","body":"func (c *Cart) Put(item int) {}"}`, "LSP errors detected in this file", "cannot use \"a\"")
		})
	}
}

// What may not be read is not found by name, and not read by being found; what may not be edited stays.
func TestSymbolsArePermitted(t *testing.T) {
	if !symbol.Supported("a.go") {
		t.Skip("built without cgo: no grammars")
	}
	none := func(string) Bridge { return nil }
	s := newSymbolSession(t, none, permission.Rule{Permission: "read", Pattern: "other/*", Action: permission.Deny})
	if out := s.says("symbol_find", `{"query":"Add"}`, "Cart.Add"); strings.Contains(out, "other") {
		t.Errorf("found what may not be read: %s", out)
	}
	s.says("symbol_read", `{"symbol":"Add"}`, "method Cart.Add")
	s.says("symbol_read", `{"symbol":"Add","filePath":"other/other.go"}`, "denied: ")
	s.says("symbol_find", `{"path":"other/other.go"}`, "denied: ")
	s = newSymbolSession(t, none, permission.Rule{Permission: "edit", Pattern: "main.go", Action: permission.Deny})
	s.says("symbol_read", `{"symbol":"unused"}`, "unused")
	for tool, input := range map[string]string{"symbol_replace": `{"symbol":"unused","body":"func unused() { main() }"}`, "symbol_insert_after": `{"symbol":"unused","body":"func unused2() {}"}`, "symbol_delete": `{"symbol":"unused"}`} {
		s.says(tool, input, "denied: ")
	}
	s.says("symbol_replace", `{"symbol":"unused","body":"func unused() {}"}`, "Nothing to do")
	if s.file("main.go") != shopGo {
		t.Error("a denied change was made")
	}
	s = newSymbolSession(t, none, permission.Rule{Permission: "lsp", Pattern: "*", Action: permission.Deny})
	s.says("symbol_find", `{"query":"Add"}`, "denied: ")
	s.says("symbol_read", `{"symbol":"unused"}`, "denied: ")
	s.says("symbol_read", `{"symbol":" "}`, "needs symbol")
	s = newSymbolSession(t, none)
	s.says("symbol_find", `{}`, "needs query")
	s.says("symbol_read", `{"symbol":"x","filePath":"other"}`, "is a folder")
	s.says("symbol_read", `{"symbol":"x","filePath":"mian.go"}`, "Did you mean")
	s.says("symbol_read", `{"symbol":"x","filePath":"secret.env"}`, "unsupported: no language server is configured")
}

// C++ has no grammar here: clangd's range is widened by lines, to the template line and the semicolon it leaves out.
func TestSymbolsWithoutAGrammar(t *testing.T) {
	s := newSymbolSession(t, func(dir string) Bridge {
		m := lspbridge.New(lspbridge.Options{Root: dir})
		t.Cleanup(func() { m.Close(context.Background()) })
		for _, l := range m.Doctor() {
			if l.ID == "clangd" && !l.Found || testing.Short() {
				t.Skip("clangd is not installed: " + l.Install)
			}
		}
		return m
	})
	put(t, filepath.Join(s.dir, "compile_flags.txt"), "-std=c++17\n")
	put(t, filepath.Join(s.dir, "a.cpp"), "namespace n {\n/// A box.\ntemplate <typename T>\nstruct Box {\n  T get() { return v; }\n  T v;\n};\n}\n\nint main() {\n  n::Box<int> b;\n  return b.get();\n}\n")
	s.says("symbol_read", `{"symbol":"n::Box","filePath":"a.cpp"}`, "struct n.Box  a.cpp:2-7\n2: /// A box.\n3: template <typename T>\n4: struct Box {", "7: };")
	s.says("symbol_replace", `{"symbol":"Box.get","filePath":"a.cpp","body":"T get() {\n  return v;\n}"}`, "Change applied successfully.")
	if !strings.Contains(s.file("a.cpp"), "struct Box {\n  T get() {\n    return v;\n  }\n  T v;\n};") {
		t.Errorf("%s", s.file("a.cpp"))
	}
	s.says("symbol_delete", `{"symbol":"Box","filePath":"a.cpp"}`, "referenced: n.Box is still used", "a.cpp:")
}

// What servers leave out of their ranges (export, decorators, the value of a variable) belongs to the declaration.
func TestSymbolsOfOtherServers(t *testing.T) {
	if !symbol.Supported("a.go") || testing.Short() {
		t.Skip("needs cgo and real servers")
	}
	bin, _ := filepath.Abs("../../.cache/servers/node_modules/.bin")
	for _, c := range []struct{ server, file, text, find, read, name, body, want, used, deleted string }{
		{"typescript", "a.ts", "/** Doc. */\nexport const twice = (n: number) => {\n  return n * 2;\n};\n\nexport class Box {\n  // Size of it.\n  size(): number { return twice(2); }\n}\n\ndescribe('x', () => { const y = 1; });\ndeclare function describe(name: string, f: () => void): void;\n",
			"  function twice  1-4\n", "1: /** Doc. */\n2: export const twice = ", "Box.size", "size(): number {\n  return twice(3);\n}", "  // Size of it.\n  size(): number {\n    return twice(3);\n  }\n}\n", "in Box.size", "Box"},
		{"pyright", "a.py", "import functools\n\nLIMIT = 3\n\n\n@functools.cache\ndef twice(n):\n    return n * LIMIT\n\n\nclass Box:\n    # Size of it.\n    def size(self):\n        return twice(2)\n",
			"  function twice  6-8\n", "6: @functools.cache\n7: def twice", "Box.size", "def size(self):\n    return twice(3)", "    # Size of it.\n    def size(self):\n        return twice(3)\n", "in Box.size", "Box"},
	} {
		t.Run(c.server, func(t *testing.T) {
			var m *lspbridge.Manager
			s := newSymbolSession(t, func(dir string) Bridge {
				put(t, filepath.Join(dir, "tsconfig.json"), "{}")
				m = lspbridge.New(lspbridge.Options{Root: dir, Bin: []string{bin}})
				t.Cleanup(func() { m.Close(context.Background()) })
				for _, l := range m.Doctor() {
					if l.ID == c.server && !l.Found {
						t.Skip(c.server + " is not installed: " + l.Install)
					}
				}
				return m
			})
			put(t, filepath.Join(s.dir, c.file), c.text)
			up, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the first answer takes a busy machine longer than the tool waits
			defer cancel()
			m.Diagnostics(up, filepath.Join(s.dir, c.file))
			in := func(name string) string { return `{"symbol":"` + name + `","filePath":"` + c.file + `"}` }
			if out := s.says("symbol_find", `{"path":"`+c.file+`"}`, c.find); strings.Contains(out, "tree-sitter") {
				t.Errorf("the server was not asked: %s", out)
			}
			s.says("symbol_read", in("twice"), c.read)
			s.says("symbol_replace", `{"symbol":"`+c.name+`","filePath":"`+c.file+`","body":"no lines of it"}`, "conflict", "was not read in this session")
			body, _ := json.Marshal(c.body)
			s.says("symbol_replace", `{"symbol":"`+c.name+`","body":`+string(body)+`}`, "Change applied successfully.")
			if !strings.Contains(s.file(c.file), c.want) {
				t.Errorf("lacks\n%s\nin\n%s", c.want, s.file(c.file))
			}
			s.says("symbol_references", in("twice"), c.used)
			s.says("symbol_delete", in("twice"), "referenced: twice is still used in 1 place")
			s.says("symbol_delete", in(c.deleted), "Change applied successfully.")
			s.says("symbol_delete", in("twice"), "Change applied successfully.")
			s.says("symbol_rename", `{"symbol":"nothing","newName":"x","filePath":"`+c.file+`"}`, "not_found")
		})
	}
}
