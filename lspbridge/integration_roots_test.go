package lspbridge

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// roots are the roots of the servers that run, by the server's id.
func roots(m *Manager, top string) (out []string) {
	for _, s := range m.running() {
		rel, _ := filepath.Rel(top, s.root)
		out = append(out, s.spec.ID+" "+filepath.ToSlash(rel))
	}
	slices.Sort(out)
	return out
}

// Two Go modules, one inside the other's folder, and a go.work that joins two more: a server for each root, and each
// file is answered by its own.
func TestGoMonorepo(t *testing.T) {
	const broken = "\n\nfunc f() int { return \"x\" }\n"
	m, root := project(t, "gopls", map[string]string{
		"one/go.mod": "module one\n\ngo 1.24\n", "one/a.go": "package one" + broken,
		"one/tools/go.mod": "module tools\n\ngo 1.24\n", "one/tools/b.go": "package tools" + broken,
		"work/go.work": "go 1.24\n\nuse (\n\t./x\n\t./y\n)\n", "work/x/go.mod": "module x\n\ngo 1.24\n", "work/x/x.go": "package x\n\nimport \"y\"\n\nvar _ = y.Missing\n",
		"work/y/go.mod": "module y\n\ngo 1.24\n", "work/y/y.go": "package y\n\nconst Here = 1\n"})
	ctx := longer(t)
	for _, f := range []string{"one/a.go", "one/tools/b.go", "work/x/x.go", "work/y/y.go"} {
		r := m.Diagnostics(ctx, filepath.Join(root, f))
		if want := 1; r.Certainty != change.Fresh || len(r.Items) != want && f != "work/y/y.go" {
			t.Errorf("%s: %s %q %q", f, r.Certainty, r.Reason, messages(r.Items))
		}
	}
	if got := roots(m, root); !slices.Equal(got, []string{"gopls one", "gopls one/tools", "gopls work"}) {
		t.Errorf("%q", got)
	}
	// A change in one module of the workspace fixes the other.
	d := m.Check(ctx, []Proposal{{Path: filepath.Join(root, "work/y/y.go"), Text: "package y\n\nconst Missing = 1\n"}})
	if d.Certainty != change.Fresh || !strings.Contains(messages(d.Fixed), "x.go: undefined: y.Missing") {
		t.Errorf("%s %q fixed %q", d.Certainty, d.Reason, messages(d.Fixed))
	}
}

// References between TypeScript projects, and a package inside one with a lock file above: one server for all of it.
func TestTypeScriptMonorepo(t *testing.T) {
	m, root := project(t, "typescript", map[string]string{
		"package-lock.json": "{}", "package.json": `{"private":true,"workspaces":["packages/*"]}`,
		"packages/lib/tsconfig.json": `{"compilerOptions":{"composite":true,"strict":true,"outDir":"dist"},"include":["src"]}`, "packages/lib/src/lib.ts": "export const size: number = 1;\n",
		"packages/app/tsconfig.json": `{"compilerOptions":{"strict":true,"noEmit":true},"references":[{"path":"../lib"}],"include":["src"]}`,
		"packages/app/src/app.ts":    "import { size } from '../../lib/src/lib';\nexport const text: string = size;\n"})
	ctx := longer(t)
	app, lib := filepath.Join(root, "packages/app/src/app.ts"), filepath.Join(root, "packages/lib/src/lib.ts")
	if r := m.Diagnostics(ctx, app); r.Certainty != change.Fresh || !strings.Contains(messages(r.Items), "not assignable") {
		t.Fatalf("%s %q %q", r.Certainty, r.Reason, messages(r.Items))
	}
	d := m.Check(ctx, []Proposal{{Path: lib, Text: "export const size: string = '';\n"}})
	if d.Certainty != change.Fresh || !strings.Contains(messages(d.Fixed), "app.ts: ") {
		t.Errorf("%s %q fixed %q introduced %q", d.Certainty, d.Reason, messages(d.Fixed), messages(d.Introduced))
	}
	if got := roots(m, root); !slices.Equal(got, []string{"typescript ."}) {
		t.Errorf("%q", got)
	}
}

// A Python project in a folder of a repository: its own root, its own import paths.
func TestPythonBelow(t *testing.T) {
	m, root := project(t, "pyright", map[string]string{"README.md": "", "services/api/pyproject.toml": "[tool.pyright]\n", "services/api/app/__init__.py": "", "services/api/app/a.py": "from app.b import n\n\nprint(n.missing)\n", "services/api/app/b.py": "n = 1\n"})
	r := m.Diagnostics(longer(t), filepath.Join(root, "services/api/app/a.py"))
	if got := roots(m, root); r.Certainty != change.Fresh || len(r.Items) != 1 || !strings.Contains(r.Items[0].Message, "missing") || !slices.Equal(got, []string{"pyright services/api"}) {
		t.Errorf("%s %q %q %q", r.Certainty, r.Reason, messages(r.Items), got)
	}
}

// With a compilation database clangd knows each file's own flags.
func TestCompileCommands(t *testing.T) {
	m, root := project(t, "clangd", map[string]string{"src/a.cpp": "#ifndef WANTED\n#error not wanted\n#endif\nint main() { return WANTED; }\n", "src/b.cpp": "int b() { return WANTED; }\n"})
	b, c := filepath.Join(root, "src/a.cpp"), filepath.Join(root, "src/b.cpp")
	write(t, filepath.Join(root, "compile_commands.json"), `[{"directory":"`+root+`","file":"src/a.cpp","command":"c++ -DWANTED=3 -c src/a.cpp"},{"directory":"`+root+`","file":"src/b.cpp","command":"c++ -c src/b.cpp"}]`)
	if r := m.Diagnostics(longer(t), b); r.Certainty != change.Fresh || len(r.Items) != 0 {
		t.Errorf("%s %q %q", r.Certainty, r.Reason, messages(r.Items))
	}
	if r := m.Diagnostics(longer(t), c); r.Certainty != change.Fresh || !strings.Contains(messages(r.Items), "undeclared identifier 'WANTED'") {
		t.Errorf("%s %q %q", r.Certainty, r.Reason, messages(r.Items))
	}
	if got := roots(m, root); !slices.Equal(got, []string{"clangd ."}) {
		t.Errorf("%q", got)
	}
}

// One gopls for several clients, as people set it up by themselves: what one proposes is not in the other's view.
func TestSharedGopls(t *testing.T) {
	m, root := goProject(t)
	runtime := t.TempDir() // where the shared one listens; and it goes soon when nobody is there
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	shared := map[string]ServerConfig{"gopls": {Command: []string{"gopls", "-remote.listen.timeout=2s"}, Share: true}}
	var all []*Manager
	for range 2 {
		x := New(Options{Root: root, Servers: shared, Bin: m.o.Bin, Idle: -1, NoWatch: true})
		t.Cleanup(func() { x.Close(context.Background()) })
		all = append(all, x)
	}
	ctx, main, lib := longer(t), filepath.Join(root, "main.go"), filepath.Join(root, "lib.go")
	for _, x := range all {
		if r := x.Diagnostics(ctx, main); r.Certainty != change.Fresh || len(r.Items) != 2 {
			t.Fatalf("%s %q %q", r.Certainty, r.Reason, messages(r.Items))
		}
	}
	seen := make(chan FileReport, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			seen <- all[1].Diagnostics(ctx, main)
		}
	}()
	for i := range 10 {
		d := all[0].Check(ctx, []Proposal{{Path: lib, Text: strings.Replace(goLib, "Add(", "Sum(", 1)}})
		if d.Certainty != change.Fresh || !strings.Contains(messages(d.Introduced), "undefined: Add") {
			t.Errorf("%d: %s %q introduced %q", i, d.Certainty, d.Reason, messages(d.Introduced))
		}
	}
	<-done
	close(seen)
	for r := range seen {
		if r.Certainty != change.Fresh || len(r.Items) != 2 {
			t.Errorf("the other client saw %s %q", r.Certainty, messages(r.Items))
		}
	}
	if _, err := os.Stat(lib); err != nil {
		t.Error(err)
	}
}
