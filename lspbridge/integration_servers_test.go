package lspbridge

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// serverCase is one small project per server, with one broken file.
type serverCase struct {
	server string
	files  map[string]string
	broken string   // the file with the problem
	says   string   // part of the message, lower case
	fix    []string // old, new: makes it clean
}

// Every installed server answers the same questions: what is wrong, what would a proposal fix and break, is the answer
// of the text as it is now.
func TestServers(t *testing.T) {
	for _, c := range []serverCase{
		{"typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["*.ts"]}`,
			"a.ts": "import { twice } from './b';\nconst s: string = twice(2);\nconsole.log(s);\n", "b.ts": "export function twice(n: number): number { return 2 * n; }\n"},
			"a.ts", "type 'number' is not assignable to type 'string'", []string{"s: string", "s: number"}},
		{"pyright", map[string]string{"pyproject.toml": "", "a.py": "from b import twice\n\ns: str = twice(2)\nprint(s)\n", "b.py": "def twice(n: int) -> int:\n    return 2 * n\n"},
			"a.py", "not assignable to", []string{"s: str", "s: int"}},
		{"clangd", map[string]string{"compile_flags.txt": "-std=c++17\n", "a.cpp": "#include \"b.h\"\nint main() { return twice(undefined_name); }\n", "b.h": "#pragma once\ninline int twice(int n) { return 2 * n; }\n"},
			"a.cpp", "use of undeclared identifier", []string{"undefined_name", "2"}},
		{"bash", map[string]string{"a.sh": "#!/bin/bash\necho $1\nif true; then\n  echo \"$2\"\nfi\n"}, "a.sh", "double quote", []string{"echo $1", "echo \"$1\""}},
		{"json", map[string]string{"a.json": "{\"a\": 1,,}\n"}, "a.json", "property expected", []string{",,", ""}},
		{"css", map[string]string{"a.css": "p { colour: red; color }\n"}, "a.css", "", []string{"colour: red; color ", "color: red;"}},
		{"yaml", map[string]string{"a.yaml": "a: [1, 2\nb: 3\n"}, "a.yaml", "", []string{"[1, 2", "[1, 2]"}},
	} {
		t.Run(c.server, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, c.files)
			path := filepath.Join(root, c.broken)
			old := c.files[c.broken]
			ctx := longer(t)
			r := m.Diagnostics(ctx, path)
			if r.Certainty != change.Fresh || len(r.Items) == 0 || !strings.Contains(strings.ToLower(messages(r.Items)), c.says) {
				t.Fatalf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
			}
			fixed := strings.Replace(old, c.fix[0], c.fix[1], 1)
			for round := range 3 { // again and again: nothing may be left over from the round before
				d := m.Check(ctx, []Proposal{{Path: path, Text: fixed}})
				if d.Certainty != change.Fresh || len(d.Fixed) == 0 || len(d.Introduced) != 0 {
					t.Errorf("round %d: the fix is %s %q, fixed %q, introduced %q", round, d.Certainty, d.Reason, messages(d.Fixed), messages(d.Introduced))
				}
				if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || len(r.Items) == 0 {
					t.Errorf("round %d: after rolling back %s %q: %q", round, r.Certainty, r.Reason, messages(r.Items))
				}
			}
			write(t, path, fixed)
			d := m.Changed(ctx, []Proposal{{Path: path, Text: fixed}})
			if d.Certainty != change.Fresh || len(d.Fixed) == 0 || len(d.Introduced) != 0 || len(d.Files[0].Items) != 0 {
				t.Errorf("after the write %s %q, fixed %q, left %q", d.Certainty, d.Reason, messages(d.Fixed), messages(d.Files[0].Items))
			}
			d = m.Check(ctx, []Proposal{{Path: path, Text: old}})
			if d.Certainty != change.Fresh || len(d.Introduced) == 0 {
				t.Errorf("breaking it again: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	}
}

// Servers that see only part of a proposal say so instead of crying wolf.
func TestNewFilesInProposals(t *testing.T) {
	for _, c := range []struct {
		server, importer, from, to, file, text string
		state                                  change.Certainty
	}{
		{"typescript", "a.ts", "export {};\n", "import { n } from './new';\nconsole.log(n);\n", "new.ts", "export const n = 1;\n", change.Fresh},
		{"typescript", "a.ts", "export {};\n", "import { n } from './dir/new';\nconsole.log(n);\n", "dir/new.ts", "export const n = 1;\n", change.Partial},
		{"pyright", "a.py", "print(1)\n", "from new import n\nprint(n)\n", "new.py", "n = 1\n", change.Partial},
	} {
		t.Run(c.server+" "+c.file, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, map[string]string{c.importer: c.from, "tsconfig.json": "{}", "pyproject.toml": ""})
			ctx := longer(t)
			importer, file := filepath.Join(root, c.importer), filepath.Join(root, c.file)
			files := []Proposal{{Path: importer, Text: c.to}, {Path: file, Text: c.text}}
			d := m.Check(ctx, files)
			if d.Certainty != c.state || slices.ContainsFunc(d.Introduced, func(d change.Problem) bool { return d.Severity == change.SeverityError }) {
				t.Errorf("before: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
			write(t, importer, c.to)
			write(t, file, c.text)
			d = m.Changed(ctx, files)
			if d.Certainty != change.Fresh || slices.ContainsFunc(d.Introduced, func(d change.Problem) bool { return d.Severity == change.SeverityError }) {
				t.Errorf("written: %s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	}
}

// The very first question waits for the project: a symbol that other files use is not said to be unused because they have
// not been read yet.
func TestFirstReferencesAreOfTheWholeProject(t *testing.T) {
	for server, files := range map[string][3]string{
		"typescript": {"a.ts", "b.ts", "export function twice(n: number) { return 2 * n; }\n"},
		"gopls":      {"a.go", "b.go", "package x\n\nfunc twice(n int) int { return 2 * n }\n"},
		"pyright":    {"a.py", "b.py", "def twice(n: int):\n    return 2 * n\n"},
	} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			use := map[string]string{"typescript": "import { twice } from './a';\ntwice(1);\n", "gopls": "package x\n\nvar n = twice(1)\n", "pyright": "from a import twice\n\ntwice(1)\n"}[server]
			m, root := project(t, server, map[string]string{files[0]: files[2], files[1]: use, "tsconfig.json": "{}", "package.json": "{}", "go.mod": "module x\n\ngo 1.24\n", "pyproject.toml": ""})
			found, err := m.References(longer(t), filepath.Join(root, files[0]), at(files[2], "twice"))
			if err != nil || !slices.ContainsFunc(found, func(l Location) bool { return filepath.Base(l.Path) == files[1] }) {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

func TestTypeScriptActions(t *testing.T) {
	const a = "console.log(twice(2));\nexport {};\n"
	m, root := project(t, "typescript", map[string]string{"tsconfig.json": "{}", "a.ts": a, "b.ts": "export function twice(n: number) { return 2 * n; }\n"})
	path := filepath.Join(root, "a.ts")
	ctx := longer(t)
	r := m.Diagnostics(ctx, path)
	if r.Certainty != change.Fresh || len(r.Items) == 0 {
		t.Fatalf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
	}
	actions, err := m.CodeActions(ctx, path, ProblemRange(r.Items[0]), []string{"quickfix"}, r.Items[:1])
	i := slices.IndexFunc(actions, func(a Action) bool { return strings.Contains(a.Title, "import") })
	if err != nil || i < 0 {
		t.Fatalf("%+v %v", actions, err)
	}
	edits, err := m.ResolveAction(ctx, actions[i])
	if err != nil || len(edits) != 1 || !strings.HasPrefix(edits[0].New, "import { twice } from") {
		t.Errorf("%+v %v", edits, err)
	}
	edits, err = m.Rename(ctx, filepath.Join(root, "b.ts"), Position{0, 17}, "double")
	if err != nil || len(edits) == 0 || !strings.Contains(edits[0].New, "function double") {
		t.Errorf("%+v %v", edits, err)
	}
}

// TypeScript 7 is a server itself; it is taken where it is the TypeScript that is installed.
func TestTypeScript7(t *testing.T) {
	m, root := project(t, "typescript", map[string]string{"tsconfig.json": "{}", "a.ts": "const s: string = 1;\nexport { s };\n"})
	bin := filepath.Join(filepath.Dir(filepath.Dir(m.o.Bin[0])), "ts7", "node_modules", ".bin")
	m = New(Options{Root: root, Bin: []string{bin}, Idle: -1})
	t.Cleanup(func() { m.Close(context.Background()) })
	if m.programs.typescript7(root) == nil {
		t.Skip("TypeScript 7 is not installed: testdata/install-servers.sh")
	}
	ctx, path := longer(t), filepath.Join(root, "a.ts")
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || !strings.Contains(messages(r.Items), "is not assignable") {
		t.Fatalf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
	}
	if c := m.running()[0].current(); c.mode() != byPull {
		t.Errorf("diagnostics come by way %d", c.mode())
	}
	d := m.Check(ctx, []Proposal{
		{Path: path, Text: "import { n } from './new';\nconst c = '𝄞', s: string = n;\nexport { c, s };\n"},
		{Path: filepath.Join(root, "new.ts"), Text: "export const n = 1;\n"},
	})
	// The pair before it makes the column tell whether the negotiated encoding (UTF-8 here) was converted.
	if d.Certainty != change.Fresh || len(d.Files) != 2 || len(d.Files[0].Items) == 0 || ProblemRange(d.Files[0].Items[0]).Start != (Position{1, 16}) {
		t.Errorf("%s %q: %+v", d.Certainty, d.Reason, d.Files)
	}
}
