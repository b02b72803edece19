//go:build linux && cgo

package programs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")

// A table is a list of commands, each followed by indented lines that say what the analysis finds:
//
//	command            ⏎ stands for a line end
//		runs TEXT      a call, in order; (s) silent, (r) read-only, (w) never covered by a remembered pattern; => what "always" keeps
//		read PATH      outside the project; also write
//		protected PATH
//		opaque WHY     or refused WHY
//
// $WORK is the project, $HOME the home folder, $UP the one above. go test -update writes the indented lines: read the diff.
func TestTables(t *testing.T) {
	for _, path := range tables(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			f := newFixture(t)
			var out strings.Builder
			for _, e := range readTable(t, path) {
				got := f.describe(f.analyze(e.command))
				if !*update && got != e.want {
					t.Errorf("%s\n got\n%s want\n%s", e.command, got, e.want)
				}
				out.WriteString(e.before + strings.ReplaceAll(e.command, "\n", "⏎") + "\n" + got)
			}
			if *update {
				if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type entry struct{ before, command, want string }

func tables(t testing.TB) []string {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no tables", err)
	}
	return paths
}

func readTable(t testing.TB, path string) []entry {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	before := ""
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "## "):
			before += line + "\n"
		case strings.HasPrefix(line, "\t"):
			out[len(out)-1].want += line + "\n"
		default:
			out = append(out, entry{before: before, command: strings.ReplaceAll(line, "⏎", "\n")})
			before = ""
		}
	}
	return out
}

// fixture is a small project in a home folder.
type fixture struct{ work, home string }

func newFixture(t testing.TB) fixture {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{work: filepath.Join(dir, "home", "work"), home: filepath.Join(dir, "home")}
	for _, d := range []string{".git/hooks", "sub/deep", "src", "scripts", "node_modules"} {
		if err := os.MkdirAll(filepath.Join(f.work, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".git/config", "README.md", "a.txt", "b.txt", "src/a.go", "src/b.go", ".env", "scripts/run.sh", "list"} {
		if err := os.WriteFile(filepath.Join(f.work, name), []byte(name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out-link": "/etc/passwd", "out-dir": "/etc", "sub/up": "..", "in-link": "README.md"} {
		if err := os.Symlink(target, filepath.Join(f.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f fixture) request(command string) scan.Request {
	return scan.Request{
		Patience: time.Minute, Command: command, Dir: f.work, Root: f.work, Home: f.home,
		Getenv: func(name string) (string, bool) {
			v, ok := map[string]string{"USER": "me", "LANG": "C", "GOPATH": f.home + "/go"}[name]
			return v, ok
		},
		Protected: func(p string, _ scan.Access) (string, bool) {
			return "git", strings.HasSuffix(p, "/.git/config") || strings.Contains(p, "/.git/hooks") || strings.HasSuffix(p, ".bashrc")
		},
	}
}

func (f fixture) analyze(command string) *scan.Analysis { return Analyze(f.request(command)) }

func (f fixture) describe(a *scan.Analysis) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		s := fmt.Sprintf(format, args...)
		s = strings.NewReplacer(f.work, "$WORK", f.home, "$HOME", filepath.Dir(f.home), "$UP", "\n", "⏎").Replace(s)
		b.WriteString("\t" + s + "\n")
	}
	for _, c := range a.Calls {
		flags := ""
		for _, x := range []struct {
			on   bool
			mark string
		}{{c.Silent, "s"}, {c.ReadOnly && !c.Silent, "r"}, {c.NoGrant, "w"}} {
			if x.on {
				flags += x.mark
			}
		}
		if flags != "" {
			flags = " (" + flags + ")"
		}
		if c.Always != "" {
			flags += " => " + c.Always
		}
		line("runs %s%s", c.Text, flags)
	}
	for _, p := range a.External {
		line("%s %s", p.Access, p.Path)
	}
	for _, p := range a.Protected {
		line("protected %s", p.Path)
	}
	switch {
	case a.Refused:
		line("refused %s", a.Why)
	case a.Opaque:
		line("opaque %s", a.Why)
	}
	return b.String()
}
