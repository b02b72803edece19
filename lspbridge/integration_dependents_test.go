package lspbridge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// A declaration that is renamed breaks what uses it, also in files that nobody has opened: said before the approval, of
// deletions too, and after a write that nobody checked.
func TestOtherFilesBreak(t *testing.T) {
	for _, c := range []struct {
		server        string
		files         map[string]string
		file, user    string
		from, to      string
		says          string
		deletionShows bool
	}{
		{"gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib/lib.go": "package lib\n\n// Twice doubles.\nfunc Twice(n int) int { return 2 * n }\n\nfunc other() {}\n", "main.go": "package main\n\nimport \"x/lib\"\n\nfunc main() { println(lib.Twice(2)) }\n"},
			"lib/lib.go", "main.go", "Twice(", "Double(", "undefined: lib.Twice", true},
		{"typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`, "lib.ts": "export function twice(n: number): number {\n  return 2 * n;\n}\nexport const other = 1;\n", "sub/user.ts": "import { twice } from '../lib';\nconsole.log(twice(2));\n"},
			"lib.ts", "sub/user.ts", "twice(", "double(", "has no exported member", true},
		{"typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`, "lib.ts": "export interface Shape {\n  size: number;\n}\n", "sub/user.ts": "import type { Shape } from '../lib';\nexport const s: Shape = { size: 1 };\n"},
			"lib.ts", "sub/user.ts", "  size: number;\n", "  size: number;\n  colour: string;\n", "property 'colour' is missing", true},
		// The body alone is changed: the result is inferred from it.
		{"typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`, "lib.ts": "export function twice(n: number) {\n  const m = 2;\n  return m * n;\n}\n", "sub/user.ts": "import { twice } from '../lib';\nexport const n: number = twice(2);\n"},
			"lib.ts", "sub/user.ts", "m * n", "`${m * n}`", "type 'string' is not assignable to type 'number'", false},
		// The user names another declaration, whose type follows from the changed one.
		{"typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`, "lib.ts": "function decode(data: string): number {\n  return data.length;\n}\nexport const codec = { decode };\n", "sub/user.ts": "import { codec } from '../lib';\nconst f: (data: string) => number = codec.decode;\nf('');\n"},
			"lib.ts", "sub/user.ts", "decode(data", "decode(extra: symbol, data", "not assignable", false},
		{"gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib/lib.go": "package lib\n\nfunc twice(n int) int { return 2 * n }\n\n// Double doubles.\nvar Double = twice\n", "main.go": "package main\n\nimport \"x/lib\"\n\nfunc main() { println(lib.Double(2)) }\n"},
			"lib/lib.go", "main.go", "twice(n int)", "twice(extra string, n int)", "not enough arguments", false},
		{"pyright", map[string]string{"pyproject.toml": "", "lib.py": "def inner(n: int):\n    m = 2\n    return m * n\n\n\ndef outer(n: int):\n    return inner(n)\n", "sub/__init__.py": "", "sub/user.py": "from lib import outer\n\nn: int = outer(2)\n"},
			"lib.py", "sub/user.py", "m * n", "str(m * n)", "\"str\" is not assignable to \"int\"", false},
		{"pyright", map[string]string{"pyproject.toml": "", "lib.py": "def twice(n: int):\n    m = 2\n    return m * n\n", "sub/__init__.py": "", "sub/user.py": "from lib import twice\n\nn: int = twice(2)\n"},
			"lib.py", "sub/user.py", "m * n", "str(m * n)", "\"str\" is not assignable to \"int\"", false},
		{"clangd", map[string]string{"compile_flags.txt": "-std=c++17\n", "lib.h": "#pragma once\ninline auto twice(int n) {\n  int m = 2;\n  return m * n;\n}\n", "user.cpp": "#include \"lib.h\"\nvoid take(int *);\nvoid use(int *p) { take(p + twice(2)); }\n"},
			"lib.h", "user.cpp", "return m * n", "return nullptr", "invalid operands", false},
		{"pyright", map[string]string{"pyproject.toml": "", "lib.py": "def twice(n: int) -> int:\n    return 2 * n\n\n\nother = 1\n", "sub/__init__.py": "", "sub/user.py": "from lib import twice\n\nprint(twice(2))\n"},
			"lib.py", "sub/user.py", "twice(", "double(", "unknown import symbol", true},
		{"clangd", map[string]string{"compile_flags.txt": "-std=c++17\n", "lib.h": "#pragma once\ninline int twice(int n) { return 2 * n; }\n", "user.cpp": "#include \"lib.h\"\nint use() { return twice(2); }\n"},
			"lib.h", "user.cpp", "twice(", "doubled(", "use of undeclared identifier", false},
	} {
		t.Run(c.server+" "+c.from, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, c.files)
			ctx := longer(t)
			path, user := filepath.Join(root, c.file), filepath.Join(root, c.user)
			old := c.files[c.file]
			now := strings.Replace(old, c.from, c.to, 1)
			if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh {
				t.Fatalf("%s %q", r.Certainty, r.Reason)
			}
			if c.server == "clangd" { // its index of what nobody opened comes when it likes
				m.Diagnostics(ctx, user)
			}
			breaks := func(d Delta) bool {
				for _, x := range d.Introduced {
					if x.Path == user && strings.Contains(strings.ToLower(x.Message), strings.ToLower(c.says)) {
						return true
					}
				}
				return false
			}
			for round := range 2 {
				if d := m.Check(ctx, []Proposal{{Path: path, Text: now}}); d.Certainty != change.Fresh || !breaks(d) {
					t.Errorf("round %d: %s %q, introduced %q", round, d.Certainty, d.Reason, messages(d.Introduced))
				}
				if r := m.Diagnostics(ctx, user); r.Certainty != change.Fresh || len(r.Items) != 0 {
					t.Errorf("round %d: afterwards the user is %s %q %q", round, r.Certainty, r.Reason, messages(r.Items))
				}
			}
			// The user is changed with it: nothing is broken.
			both := []Proposal{{Path: path, Text: now}, {Path: user, Text: strings.ReplaceAll(c.files[c.user], strings.TrimRight(c.from, "("), strings.TrimRight(c.to, "("))}}
			if strings.HasSuffix(c.from, "(") {
				if d := m.Check(ctx, both); d.Certainty != change.Fresh || len(d.Introduced) != 0 {
					t.Errorf("both: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
				}
			}
			if d := m.Check(ctx, []Proposal{{Path: path, Delete: true}}); c.deletionShows && !breaks(d) && len(d.Introduced) == 0 {
				t.Errorf("the deletion: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
			write(t, path, now)
			if d := m.Changed(ctx, []Proposal{{Path: path, Text: now, Old: old}}); d.Certainty != change.Fresh || !breaks(d) {
				t.Errorf("written: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	}
}

// clangd looks into the functions of a header only where the header is the file it compiles. One that needs its user's macros cannot be
// compiled by itself: a mistake in its functions is found by the compiler alone, and the verdict must not be fresh. Nor can it be where clangd
// has ended its list of errors.
func TestClangdSaysWhatItCannotSee(t *testing.T) {
	many := "int f(void) {\n"
	for i := range 30 {
		many += fmt.Sprintf("  missing%d();\n", i)
	}
	many += "  return 0;\n}\n"
	for name, c := range map[string]struct{ file, text, from, to, why string }{
		"a header behind macros": {"sort.h", "#ifndef TYPE\n#error \"declare TYPE\"\n#endif\nstatic inline TYPE smaller(TYPE a, TYPE b) {\n  TYPE one = a;\n  return one < b ? one : b;\n}\n", "return one", "return onQx", "does not compile by itself"},
		"after 20 errors":        {"many.cpp", many, "return 0", "return zero", "ends after 20 errors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, "clangd", map[string]string{"compile_flags.txt": "-std=c++17\n", c.file: c.text, "user.cpp": "#define TYPE int\n#include \"sort.h\"\nint use() { return smaller(1, 2); }\n"})
			ctx, path := longer(t), filepath.Join(root, c.file)
			now := strings.Replace(c.text, c.from, c.to, 1)
			if d := m.Check(ctx, []Proposal{{Path: path, Text: now}}); d.Certainty != change.Partial || !strings.Contains(d.Reason, c.why) {
				t.Errorf("proposed: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
			write(t, path, now)
			if d := m.Changed(ctx, []Proposal{{Path: path, Text: now, Old: c.text}}); d.Certainty != change.Partial || !strings.Contains(d.Reason, c.why) {
				t.Errorf("written: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	}
}

// Allowed without a question, the first write of a session is compared with what was there before, too.
func TestFirstWriteIsCompared(t *testing.T) {
	const lib = "export function twice(n: number): number {\n  return 2 * n;\n}\n"
	m, root := project(t, "typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`, "lib.ts": lib, "user.ts": "import { twice } from './lib';\nconsole.log(twice(2));\n", "third.ts": "export {};\n"})
	ctx, path := longer(t), filepath.Join(root, "lib.ts")
	if r := m.Diagnostics(ctx, filepath.Join(root, "third.ts")); r.Certainty != change.Fresh {
		t.Fatalf("%s %q", r.Certainty, r.Reason)
	}
	now := strings.Replace(lib, "twice", "double", 1)
	write(t, path, now)
	d := m.Changed(ctx, []Proposal{{Path: path, Text: now, Old: lib}})
	if d.Certainty != change.Fresh || !strings.Contains(messages(d.Introduced), "user.ts: ") || d.Reason != "" {
		t.Errorf("%s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
	}
}

// The first file of a Go package is diagnosed as well: as a proposal in a folder that does not exist, once it is written, and where another
// program has written it.
func TestTheFirstFileOfAPackage(t *testing.T) {
	m, root := project(t, "gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib/lib.go": "package lib\n"})
	ctx := longer(t)
	m.Diagnostics(ctx, filepath.Join(root, "lib", "lib.go"))
	const says = "cannot use \"\" (untyped string constant) as int value in variable declaration"
	wrong := func(name string) Proposal {
		return Proposal{Path: filepath.Join(root, filepath.FromSlash(name)), Text: "package p\n\nvar X int = \"\"\n"}
	}
	for range 2 {
		if d := m.Check(ctx, []Proposal{wrong("new/deep/a.go")}); d.Certainty != change.Fresh || messages(d.Introduced) != "a.go: "+says {
			t.Errorf("proposed: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
		}
	}
	if d := m.Check(ctx, []Proposal{wrong("two/a.go"), wrong("two/b.go")}); d.Certainty != change.Fresh || !strings.Contains(messages(d.Introduced), says) {
		t.Errorf("two files: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
	}
	for _, name := range []string{"written/a.go", "other/a.go"} {
		f := wrong(name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o755), os.WriteFile(f.Path, []byte(f.Text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if name == "written/a.go" {
			if d := m.Changed(ctx, []Proposal{f}); d.Certainty != change.Fresh || messages(d.Introduced) != "a.go: "+says {
				t.Errorf("written: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		} else if r := m.Diagnostics(ctx, f.Path); r.Certainty != change.Fresh || messages(r.Items) != "a.go: "+says {
			t.Errorf("asked: %s %q %q", r.Certainty, r.Reason, messages(r.Items))
		}
	}
}

// Where go.mod is proposed too, gopls loads nothing of the new module, and the verdict says so.
func TestAModuleThatIsOnlyProposed(t *testing.T) {
	m, root := project(t, "gopls", map[string]string{"README": ""})
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	d := m.Check(longer(t), []Proposal{{Path: at("go.mod"), Text: "module x\n\ngo 1.24\n"}, {Path: at("lib/a.go"), Text: "package lib\n\nvar X int = \"\"\n"}})
	if d.Certainty == change.Fresh && !strings.Contains(messages(d.Introduced), "untyped string") || strings.Contains(messages(d.Introduced), "initialization failed") {
		t.Errorf("%s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
	}
	t.Logf("%s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
}

// A new file breaks who imports it without a change of their own: it takes an import over from another file, or is found where nothing was and
// lacks what is imported.
func TestANewFileBreaksItsImporters(t *testing.T) {
	const strict = `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`
	for _, c := range []struct {
		name, server string
		files        map[string]string
		made, text   string
		says         string
		seen         bool // the server sees the file before it is written
	}{
		{"a header in front", "clangd", map[string]string{"compile_flags.txt": "-Iinc\n", "inc/lib.h": "int twice(int n);\n", "src/user.c": "#include \"lib.h\"\nint (*use)(int) = twice;\n"},
			"src/lib.h", "int other;\n", "use of undeclared identifier 'twice'", true},
		{"a file in front of a folder", "typescript", map[string]string{"tsconfig.json": strict, "lib/index.ts": "export const twice = 2;\n", "user.ts": "import { twice } from './lib';\nconsole.log(twice);\n"},
			"lib.ts", "export const other = 1;\n", "has no exported member 'twice'", false},
		{"a file that was missing", "typescript", map[string]string{"tsconfig.json": strict, "user.ts": "import { twice } from './lib';\nconsole.log(twice);\n"},
			"lib.ts", "export const other = 1;\n", "has no exported member 'twice'", false},
		{"a stub", "pyright", map[string]string{"pyrightconfig.json": "{}", "pkg/__init__.py": "", "pkg/lib.py": "def twice(n): return n\n", "pkg/user.py": "from .lib import twice\n\nprint(twice)\n"},
			"pkg/lib.pyi", "other: int\n", "\"twice\" is unknown import symbol", false},
		{"a module that was missing", "pyright", map[string]string{"pyrightconfig.json": "{}", "pkg/__init__.py": "", "pkg/user.py": "from .lib import twice\n\nprint(twice)\n"},
			"pkg/lib.py", "other = 1\n", "\"twice\" is unknown import symbol", false},
	} {
		t.Run(c.server+" "+c.name, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, c.files)
			ctx := longer(t)
			f := Proposal{Path: filepath.Join(root, filepath.FromSlash(c.made)), Text: c.text}
			if d := m.Check(ctx, []Proposal{f}); c.seen && !strings.Contains(strings.ToLower(messages(d.Introduced)), c.says) || d.Certainty == change.Fresh && len(d.Introduced) == 0 {
				t.Errorf("proposed: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
			write(t, f.Path, f.Text)
			if d := m.Changed(ctx, []Proposal{f}); !strings.Contains(strings.ToLower(messages(d.Introduced)), c.says) || d.Reason != "" {
				t.Errorf("written: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	}
}

// A deleted file breaks who imports it, also where no name of it is used.
func TestADeletedFileBreaksItsImporters(t *testing.T) {
	for _, c := range []struct {
		server     string
		files      map[string]string
		gone, says string
	}{
		{"typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["**/*.ts"]}`, "lib.ts": "export const twice = 2;\n", "index.ts": "export * from './lib';\n"},
			"lib.ts", "cannot find module './lib'"},
		{"pyright", map[string]string{"pyrightconfig.json": "{}", "pkg/__init__.py": "", "pkg/lib.py": "twice = 2\n", "pkg/user.py": "from . import lib\n"}, "pkg/lib.py", "\"lib\" is unknown import symbol"},
		{"clangd", map[string]string{"compile_flags.txt": "-I.\n", "lib.h": "#define TWICE 2\n", "user.c": "#include \"lib.h\"\n"}, "lib.h", "'lib.h' file not found"},
	} {
		t.Run(c.server, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, c.files)
			ctx := longer(t)
			f := Proposal{Path: filepath.Join(root, filepath.FromSlash(c.gone)), Old: c.files[c.gone], Delete: true}
			if d := m.Check(ctx, []Proposal{f}); d.Certainty == change.Fresh {
				t.Errorf("proposed: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
			if err := os.Remove(f.Path); err != nil {
				t.Fatal(err)
			}
			if d := m.Changed(ctx, []Proposal{f}); !strings.Contains(strings.ToLower(messages(d.Introduced)), c.says) {
				t.Errorf("written: %s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	}
}

// Where a new file was written without a check, those that import it are first looked at when it is there: which of their errors are new is not
// known, and the verdict is not fresh.
func TestANewFileThatWasNotChecked(t *testing.T) {
	m, root := project(t, "clangd", map[string]string{"compile_flags.txt": "-Iinc\n", "inc/lib.h": "int twice(int n);\n", "src/user.c": "#include \"lib.h\"\nint (*use)(int) = twice;\n"})
	f := Proposal{Path: filepath.Join(root, "src", "lib.h"), Text: "int other;\n"}
	write(t, f.Path, f.Text)
	if d := m.Changed(longer(t), []Proposal{f}); d.Certainty != change.Partial || !strings.Contains(d.Reason, "did not know which problems the files that import the new or deleted one had before") {
		t.Errorf("%s %q %q", d.Certainty, d.Reason, messages(d.Introduced))
	}
}

// Of more users than are looked at, those come first that import the changed file themselves: they break where a name is no longer exported, and
// the many users of a file that passes it on do not.
func TestImportersComeFirst(t *testing.T) {
	files := map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true,"types":[]}}`, "lib.ts": "export function twice(n: number): number {\n  return 2 * n;\n}\n", "zz_index.ts": "export { twice } from './lib';\n"}
	for i := range maxDependents + 5 {
		files[fmt.Sprintf("user%02d.ts", i)] = "import { twice } from './zz_index';\nexport const n = twice(twice(2));\n"
	}
	m, root := project(t, "typescript", files)
	path := filepath.Join(root, "lib.ts")
	d := m.Check(longer(t), []Proposal{{Path: path, Text: strings.Replace(files["lib.ts"], "export ", "", 1)}})
	if d.Certainty != change.Partial || !strings.Contains(messages(d.Introduced), "zz_index.ts: ") {
		t.Errorf("%s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
	}
}
