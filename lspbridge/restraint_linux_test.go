package lspbridge

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// hostile is a repository in which everything that a language server might run is a trap: it leaves a mark.
func hostile(t *testing.T) (root, mark string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mark = filepath.Join(t.TempDir(), "ran") // a trap that is sprung makes files whose names begin so
	program := func(name string) {
		write(t, filepath.Join(root, name), "#!/bin/sh\ntouch "+mark+"-"+filepath.Base(name)+"\nexit 1\n")
		if err := os.Chmod(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	js := func(name string) {
		write(t, filepath.Join(root, name), fmt.Sprintf("require('fs').writeFileSync(%q, '');\nmodule.exports = { rules: {}, plugins: [], ESLint: class {}, CLIEngine: class {} };\n", mark+"-"+filepath.Base(filepath.Dir(name))+filepath.Base(name)))
	}
	for _, p := range []string{"gopls", "typescript-language-server", "vtsls", "tsc", "pyright-langserver", "clangd", "bash-language-server", "shellcheck", "node", "python", "python3"} {
		program("node_modules/.bin/" + p)
	}
	for _, p := range []string{"evil.sh", "evilcc", ".venv/bin/python", ".venv/bin/python3", "shellcheck", "go", "git"} {
		program(p)
	}
	for name, text := range map[string]string{
		"package.json":                         `{"private":true,"prettier":"evil"}`,
		"package-lock.json":                    `{}`,
		"tsconfig.json":                        `{"compilerOptions":{"strict":true,"noEmit":true,"plugins":[{"name":"evil"},{"name":"../evil"}]}}`,
		"node_modules/typescript/package.json": `{"name":"typescript","version":"5.9.9","main":"lib/typescript.js"}`,
		"node_modules/evil/package.json":       `{"name":"evil","version":"1.0.0","main":"index.js"}`,
		"node_modules/eslint/package.json":     `{"name":"eslint","version":"8.57.0","main":"lib/api.js"}`,
		"node_modules/prettier/package.json":   `{"name":"prettier","version":"3.0.0","main":"index.cjs"}`,
		"a.ts":                                 "const n: number = 1;\nexport default n;\n",
		"a.js":                                 "export const n = 1;\n",
		"go.mod":                               "module x\n\ngo 1.21\n\ntoolchain go1.99.1\n",
		"main.go":                              "package main\n\n//go:generate ./evil.sh\nfunc main() {}\n",
		"c/c.go":                               "package c\n\n// #cgo CFLAGS: -fplugin=./evil.so\n// #cgo pkg-config: --static evil\n// int f(void);\nimport \"C\"\n",
		".git/config":                          "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = " + filepath.Join(root, "evil.sh") + "\n\thooksPath = " + root + "\n\tsshCommand = ./evil.sh\n",
		".git/HEAD":                            "ref: refs/heads/main\n",
		".git/objects/info/x":                  "",
		".git/refs/heads/x":                    "",
		"pyrightconfig.json":                   `{"venvPath":".","venv":".venv"}`,
		"a.py":                                 "n: int = 1\n",
		".venv/pyvenv.cfg":                     "home = .\n",
		"compile_commands.json":                fmt.Sprintf(`[{"directory":%q,"file":"a.c","arguments":["./evilcc","-fplugin=./evil.so","-Xclang","-load","-Xclang","./evil.so","-c","a.c"]}]`, root),
		".clangd":                              "CompileFlags:\n  Compiler: ./evilcc\n  Add: [-fplugin=./evil.so, -fpass-plugin=./evil.so]\n",
		"a.c":                                  "int main(void) { return 0; }\n",
		"a.sh":                                 "#!/bin/bash\nsource ./evil.sh\necho \"$1\"\n",
		".shellcheckrc":                        "external-sources=true\n",
		"a.json":                               `{"$schema":"./schema.js"}`,
		"a.css":                                "a { color: red }\n",
		"a.html":                               "<script src=\"evil.js\"></script>\n",
		"a.yaml":                               "a: !!js/function 'function(){}'\n",
		"a.vue":                                "<template/>\n",
		"a.svelte":                             "<script lang=\"ts\">let n: number = 1</script>\n<p>{n}</p>\n",
		"a.php":                                "<?php\nrequire 'vendor/autoload.php';\n",
		"composer.json":                        `{"autoload":{"files":["evil.php"]},"scripts":{"post-autoload-dump":"./evil.sh"}}`,
		"Dockerfile":                           "# syntax=./evil\nFROM scratch\nRUN ./evil.sh\n",
		"a.toml":                               "#:schema ./schema.json\nn = 1\n",
		".taplo.toml":                          "[schema]\npath = \"./schema.json\"\n",
		"a.rs":                                 "fn main() {}\n",
		"Cargo.toml":                           "[package]\nname = \"x\"\nversion = \"0.1.0\"\nbuild = \"build.rs\"\n",
		"build.rs":                             "fn main() { std::fs::write(\"" + mark + "-build\", \"\").unwrap(); }\n",
		".cargo/config.toml":                   "[build]\nrustc = \"./evil.sh\"\nrustc-wrapper = \"./evil.sh\"\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	for _, name := range []string{"node_modules/typescript/lib/tsserver.js", "node_modules/typescript/lib/typescript.js", "node_modules/typescript/lib/tsc.js", "node_modules/evil/index.js",
		"node_modules/eslint/lib/api.js", "node_modules/eslint/lib/unsupported-api.js", "node_modules/prettier/index.cjs", "eslint.config.js", ".eslintrc.js", "prettier.config.js", ".prettierrc.js", "schema.js", "svelte.config.js", "node_modules/svelte/compiler.cjs", "node_modules/svelte-preprocess/index.js", "node_modules/prettier-plugin-svelte/plugin.js"} {
		js(name)
	}
	for _, name := range []string{"json.py", "os.py", "sitecustomize.py", "usercustomize.py"} {
		write(t, filepath.Join(root, name), fmt.Sprintf("open(%q, 'w')\n", mark+"-"+name))
	}
	if gcc, err := exec.LookPath("gcc"); err == nil {
		write(t, filepath.Join(root, "evil.c"), fmt.Sprintf("#include <fcntl.h>\n__attribute__((constructor)) static void f(void) { creat(%q, 0644); }\n", mark+"-plugin"))
		if out, err := exec.Command(gcc, "-shared", "-fPIC", "-o", filepath.Join(root, "evil.so"), filepath.Join(root, "evil.c")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return root, mark
}

// ran are the traps that were sprung.
func ran(t *testing.T, mark string) []string {
	t.Helper()
	found, err := filepath.Glob(mark + "-*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// executed matches a line of strace in which something is run, with the program's path.
var executed = regexp.MustCompile(`execve(?:at)?\((?:AT_FDCWD, |\d+, )?"([^"]*)"`)

// underStrace starts servers under strace; the log says what they and their children ran.
func underStrace(t *testing.T, log string) func(*exec.Cmd) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: scripts/setup.sh")
	}
	return func(cmd *exec.Cmd) error {
		cmd.Args = append([]string{strace, "-f", "-qq", "-s", "4096", "-e", "trace=execve,execveat", "-o", log, "--", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = strace
		return cmd.Start()
	}
}

// ask opens a file of the repository in its servers, and lays a proposal over it.
func ask(t *testing.T, m *Manager, path string) change.Certainty {
	t.Helper()
	ctx := longer(t)
	r := m.Diagnostics(ctx, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m.Check(ctx, []Proposal{{Path: path, Text: string(text) + "\n"}})
	return r.Certainty
}

// Nothing of a repository that is not trusted runs because one of its files was opened: shown by traps, and by what the
// servers and their children execute.
func TestAnUntrustedProjectRunsNothingThroughItsServers(t *testing.T) {
	if testing.Short() {
		t.Skip("real servers are slow")
	}
	markers := map[string]string{} // files without which a server does not count as the project's
	type row struct {
		server, file string
		started      bool
	}
	rows := []row{
		{"gopls", "main.go", true},
		{"gopls", "c/c.go", true},
		{"typescript", "a.ts", true},
		{"pyright", "a.py", true},
		{"clangd", "a.c", true},
		{"bash", "a.sh", true},
		{"json", "a.json", true},
		{"css", "a.css", true},
		{"html", "a.html", true},
		{"yaml", "a.yaml", true},
		{"svelte", "a.svelte", true},
		{"php", "a.php", true},
		{"dockerfile", "Dockerfile", true},
		{"eslint", "a.js", false},
		{"vue", "a.vue", false},
		{"rust-analyzer", "a.rs", false},
	}
	for _, server := range straced {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.server == server && r.started }) {
			t.Errorf("the table of docs/SECURITY.md says that %s is run here", server)
		}
	}
	bins := append(testBins(t), filepath.Join(testBins(t)[0], "..", "..", "more", "node_modules", ".bin"))
	// Set-up installs those above. These are no packages of npm or Debian and are tried where they are installed.
	for _, more := range []struct {
		row
		program, marker string
	}{
		{row{"taplo", "a.toml", true}, "taplo", ""}, {row{"ruff", "a.py", true}, "ruff", "ruff.toml"}, {row{"ty", "a.py", true}, "ty", "ty.toml"},
	} {
		if _, err := exec.LookPath(more.program); err == nil {
			rows = append(rows, more.row)
			markers[more.server] = more.marker
		}
	}
	for _, c := range rows {
		t.Run(c.server+" "+c.file, func(t *testing.T) {
			t.Parallel()
			root, mark := hostile(t)
			if name := markers[c.server]; name != "" {
				write(t, filepath.Join(root, name), "")
			}
			log := filepath.Join(t.TempDir(), "strace")
			m := New(Options{Root: root, Bin: bins, Idle: -1, NoWatch: true, Log: slog.New(slog.DiscardHandler), Start: underStrace(t, log)})
			defer m.Close(context.Background())
			row, ok := m.programs.row(c.server)
			if !ok {
				t.Fatal("no such row")
			}
			_, _, missing := m.programs.find(row, root)
			if missing != nil && c.started {
				t.Skip(missing)
			}
			certainty := ask(t, m, filepath.Join(root, c.file))
			started := false
			for _, s := range m.running() {
				started = started || s.spec.ID == c.server && s.current() != nil
			}
			if started != c.started {
				t.Errorf("started: %v, want %v", started, c.started)
			}
			if c.started && certainty == change.Unavailable {
				t.Errorf("the server says nothing: the test shows nothing")
			}
			m.Close(context.Background())
			if got := ran(t, mark); len(got) > 0 {
				t.Errorf("code of the project has run: %v", got)
			}
			said, _ := os.ReadFile(log)
			lines := executed.FindAllStringSubmatch(string(said), -1)
			if c.started && len(lines) == 0 {
				t.Error("strace has seen nothing: the test shows nothing")
			}
			for _, l := range lines {
				if at := l[1]; strings.HasPrefix(at, root+"/") || !filepath.IsAbs(at) {
					t.Errorf("executed %s", at)
				}
			}
		})
	}
}

// The traps work: in a trusted folder they are sprung.
func TestATrustedProjectRunsItsOwnTypeScript(t *testing.T) {
	if testing.Short() {
		t.Skip("real servers are slow")
	}
	root, mark := hostile(t)
	if err := os.RemoveAll(filepath.Join(root, "node_modules", ".bin")); err != nil {
		t.Fatal(err)
	}
	m := New(Options{Root: root, Bin: testBins(t), Trusted: true, Idle: -1, NoWatch: true, Log: slog.New(slog.DiscardHandler)})
	defer m.Close(context.Background())
	row, _ := m.programs.row(typescriptID)
	if _, _, err := m.programs.find(row, root); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(longer(t)) // a trap is no server and answers nothing
	go func() {
		for left, _ := filepath.Glob(mark + "-*"); len(left) == 0 && ctx.Err() == nil; left, _ = filepath.Glob(mark + "-*") {
			time.Sleep(10 * time.Millisecond) // nobody tells us of what a trap writes
		}
		cancel()
	}()
	m.Diagnostics(ctx, filepath.Join(root, "a.ts"))
	if len(ran(t, mark)) == 0 {
		t.Error("the project's own TypeScript did not run: the traps catch nothing")
	}
}
