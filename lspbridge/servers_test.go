package lspbridge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestServerTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Servers() {
		if s.ID == "" || seen[s.ID] || len(s.Commands) == 0 || s.Install == "" || len(s.Extensions)+len(s.Filenames) == 0 {
			t.Errorf("row %q is incomplete or twice", s.ID)
		}
		seen[s.ID] = true
		for _, e := range s.Extensions {
			if !strings.HasPrefix(e, ".") || e != strings.ToLower(e) {
				t.Errorf("%s: extension %q", s.ID, e)
			}
		}
		for _, j := range []string{s.Init, s.Settings} {
			if j != "" && !json.Valid([]byte(j)) {
				t.Errorf("%s: %s is no JSON", s.ID, j)
			}
		}
	}
	if !json.Valid([]byte(clientCapabilities)) {
		t.Error("clientCapabilities is no JSON")
	}
}

func TestOverrides(t *testing.T) {
	rows := configured(map[string]ServerConfig{
		"gopls":   {Env: map[string]string{"GOFLAGS": "-mod=mod"}, Initialization: json.RawMessage(`{"staticcheck":true}`)},
		"pyright": {Disabled: true},
		"mine":    {Command: []string{"my-ls"}, Extensions: []string{".mine"}},
		"nothing": {Extensions: []string{".x"}},
	})
	find := func(id string) int { return slices.IndexFunc(rows, func(s Server) bool { return s.ID == id }) }
	g := rows[find("gopls")]
	if !slices.Contains(g.Env, "GOFLAGS=-mod=mod") || !strings.Contains(g.Init, "staticcheck") || !strings.Contains(g.Init, "verboseWorkDoneProgress") || g.Commands[0][0] != "gopls" {
		t.Errorf("gopls is %+v", g)
	}
	if find("pyright") >= 0 || find("nothing") >= 0 || find("mine") != 0 {
		t.Errorf("pyright at %d, nothing at %d, mine at %d", find("pyright"), find("nothing"), find("mine"))
	}
}

func TestSlotsFor(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"go.mod", "a/go.mod", "a/x.go", "b/x.go", "web/package.json", "web/x.ts", "deno/deno.json", "deno/x.ts", "web/.eslintrc.json", "x.py",
		"work/go.work", "work/m/go.mod", "work/m/x.go", "mono/yarn.lock", "mono/pkg/package.json", "mono/pkg/x.ts"} {
		write(t, filepath.Join(root, f), "")
	}
	m := New(Options{Root: root, NoWatch: true})
	for _, c := range []struct{ file, want string }{
		{"a/x.go", "gopls a"},
		{"b/x.go", "gopls ."},
		{"go.mod", "gopls ."},
		{"web/x.ts", "typescript web, eslint web"},
		{"deno/x.ts", "deno deno"},
		{"x.py", "pyright ."},
		{"work/m/x.go", "gopls work"},
		{"mono/pkg/x.ts", "typescript mono"},
		{"x.unknown", ""},
	} {
		var got []string
		for _, s := range m.slotsFor(filepath.Join(root, c.file)) {
			rel, _ := filepath.Rel(root, s.root)
			got = append(got, s.spec.ID+" "+filepath.ToSlash(rel))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
}

// A checkout must not choose the programs that run, unless the person trusts it.
func TestProjectProgramsNeedTrust(t *testing.T) {
	root := t.TempDir()
	evil := filepath.Join(root, "node_modules", ".bin", "no-such-ls")
	write(t, evil, "#!/bin/sh\n")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	row := Server{ID: "x", Commands: [][]string{{"no-such-ls"}}, Install: "npm i -g x"}
	if _, _, err := New(Options{Root: root}).programs.find(row, root); err == nil || !strings.Contains(err.Error(), `no-such-ls not found; install it with npm i -g x, or set lsp.x.command`) {
		t.Errorf("untrusted: %v", err)
	}
	if _, argv, err := New(Options{Root: root, Trusted: true}).programs.find(row, root); err != nil || argv[0] != evil {
		t.Errorf("trusted: %v %v", argv, err)
	}
}

func TestSettingsBySection(t *testing.T) {
	const settings = `{"a":{"b":{"c":1}},"":{"all":true}}`
	for name, want := range map[string]string{"a.b": `{"c":1}`, "a.b.c": "1", "a.x": "null", "x": "null", "": `{"all":true}`} {
		if got := string(section(settings, name)); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if got := string(section("", "x")) + string(section("", "")); got != "null{}" {
		t.Errorf("no settings: %s", got)
	}
}

func TestWatchGlobs(t *testing.T) {
	c := newClient(Server{}, "/p", host{}, nil)
	globs := watchGlobs(c.root, json.RawMessage(`{"watchers":[{"globPattern":"**/*.go"},{"globPattern":{"baseUri":"file:///p/sub","pattern":"*.{ts,js}"},"kind":1},{"globPattern":"/abs/**/x"},
		{"globPattern":{"baseUri":{"uri":"file:///p/f","name":"f"},"pattern":"**"},"kind":4},{"globPattern":"[bad"}]}`))
	for _, x := range []struct {
		path string
		kind int
		want bool
	}{
		{"/p/a/b.go", 2, true}, {"/q/a.go", 2, false}, {"/p/sub/x.ts", 1, true}, {"/p/sub/x.ts", 2, false}, {"/p/sub/d/x.ts", 1, false},
		{"/abs/a/b/x", 2, true}, {"/p/f/any", 3, true}, {"/p/f/any", 1, false},
	} {
		got := slices.ContainsFunc(globs, func(g watchGlob) bool { return g.match(fileEvent{x.path, x.kind}) })
		if got != x.want {
			t.Errorf("%s kind %d: %v", x.path, x.kind, got)
		}
	}
}
