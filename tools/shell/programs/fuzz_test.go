package programs

import (
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/scan"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

func FuzzAnalyze(f *testing.F) {
	for _, path := range []string{"a && b > c", "echo $(x) `y` <(z)", "for i in a; do b; done", "x=1; cd $x; cat *", "tar xfC a b", "xargs -I{} a {}", "git -C", "find . -exec", "sed -e", "sudo -u", "env -C", "timeout", "su -c", "npm exec", "dd if=", "ln -s a", "docker run -v", "((i++))", "a[1]=2", "f() { f; }; f"} {
		f.Add(path)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, command string) {
		began := time.Now()
		a := Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: dir})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%d bytes took %v", len(command), took)
		}
		if a.Opaque && a.Why == "" {
			t.Error("opaque without a reason")
		}
		if a.ReadOnly && (a.Opaque || len(a.External) > 0) {
			t.Errorf("read-only, but %+v", a)
		}
		for _, c := range a.Calls {
			if c.Text == "" || c.Program == "" {
				t.Errorf("a call without a name: %+v", c)
			}
		}
	})
}

func TestDeceptiveCommandsAreOpaqueAndShown(t *testing.T) {
	for name, command := range map[string]string{
		"zero width": "rm\u200b x", "bidi": "ls \u202e x", "nbsp": "ls\u00a0-la", "cyrillic": "сurl x", "fullwidth": "ｌs x", "mixed word": "ls pаyload", "escape": "ls \x1b[2K", "bell": "ls \a", "crlf": "ls\r\nrm x", "not utf-8": "ls \xff", "tag": "ls \U000e0041", "soft hyphen": "l\u00ads", "bom": "\ufeffls", "braille blank": "ls\u2800x",
	} {
		a := Analyze(scan.Request{Command: command, Dir: "/", Root: "/"})
		if !a.Opaque || a.Why == "" {
			t.Errorf("%s is not opaque", name)
		}
		if v := visible.Text(command); name != "cyrillic" && name != "fullwidth" && name != "mixed word" && !strings.Contains(v, "‹U+") {
			t.Errorf("%s is shown as %q", name, v)
		}
	}
	for _, command := range []string{"echo 日本語", "git commit -m 'größer'", "echo привет мир", "ls \t-la"} {
		if a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: "/", Root: "/"}); a.Opaque {
			t.Errorf("%s is opaque: %s", command, a.Why)
		}
	}
}

func TestWhatNoShellRunsIsRefused(t *testing.T) {
	for name, command := range map[string]string{"nul": "ls \x00 x", "too long": strings.Repeat("a", scan.MaxCommand+1)} {
		if a := Analyze(scan.Request{Command: command}); !a.Refused || !a.Opaque || a.Why == "" {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// hostile are inputs made to be slow or deep, 64 KiB each.
var hostile = map[string]string{
	"parentheses": strings.Repeat("(", scan.MaxCommand), "substitutions": strings.Repeat("$(", scan.MaxCommand/2), "pipes": strings.Repeat("a|", scan.MaxCommand/2-1) + "a", "backticks": strings.Repeat("`", scan.MaxCommand),
	"ifs": strings.Repeat("if a;then ", scan.MaxCommand/10), "words": strings.Repeat("a ", scan.MaxCommand/2), "globs": "ls " + strings.Repeat("* ", scan.MaxCommand/2-2), "braces": "ls " + strings.Repeat("{a,b}", 100), "a long run of braces": "ls " + strings.Repeat("{a,b}", scan.MaxCommand/5-1), "a deep glob": "ls " + strings.Repeat("*/", scan.MaxCommand/2-2), "functions": strings.Repeat("f(){ f;f;};", scan.MaxCommand/11), "assignments": strings.Repeat("a=$a$a;", scan.MaxCommand/7),
	"loops": strings.Repeat("for i in a b;do cd $i;", 2000) + strings.Repeat("done;", 2000), "redirections": "a" + strings.Repeat(" >b", 20000), "paths": "cat" + strings.Repeat(" a/b/c", 9000), "heredocs": strings.Repeat("a <<E\n$(b)\nE\n", 5000), "chain": strings.Repeat("cd a&&", 10000) + "b", "nested sh": strings.Repeat("sh -c ", 10000),
}

func TestHostileCommandsEnd(t *testing.T) {
	dir := t.TempDir()
	for name, command := range hostile {
		began := time.Now()
		Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: dir})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	dir := b.TempDir()
	for name, command := range map[string]string{"simple": "git status", "typical": `cd web && npm run build -- --mode=production 2>&1 | tail -20 && git add -A && git commit -m "fix: things"`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: dir})
			}
		})
	}
	for name, command := range hostile {
		b.Run("hostile "+name, func(b *testing.B) {
			for b.Loop() {
				Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: dir})
			}
		})
	}
}
