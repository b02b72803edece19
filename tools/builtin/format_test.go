package builtin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// script puts a program into a folder of its own and that in front of PATH.
func script(t *testing.T, dir, name, body string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestR16WhatTheFormatterChangedIsToldAndInTheSameWrite(t *testing.T) {
	if _, err := exec.LookPath("gofmt"); err != nil {
		t.Skip("gofmt is not installed")
	}
	b := newBench(t, yes)
	b.put("go.mod", "module x\n")
	b.put("a.go", "package a\n\nfunc f() {}\n")
	b.know("a.go")
	b.env.Format = NewFormatter(FormatOptions{Root: b.dir, Detect: true})
	r, err := b.call(Edit(b.env), `{"filePath":"a.go","oldString":"func f() {}","newString":"func f() {\nx:=1\n_ = x\n}"}`)
	if err != nil || b.text("a.go") != "package a\n\nfunc f() {\n\tx := 1\n\t_ = x\n}\n" || !strings.Contains(r.Output, "gofmt changed a.go") || !strings.Contains(r.Output, "+\tx := 1") {
		t.Errorf("%v %q\n%s", err, b.text("a.go"), r.Output)
	}
	// The session knows the formatted text.
	if _, err := b.call(Edit(b.env), `{"filePath":"a.go","oldString":"\tx := 1","newString":"\tx := 2"}`); err != nil {
		t.Error(err)
	}
	// A syntax error makes gofmt fail: the edit stays.
	r, err = b.call(Edit(b.env), `{"filePath":"a.go","oldString":"x := 2","newString":"x := ("}`)
	if err != nil || !strings.Contains(b.text("a.go"), "x := (") || !strings.Contains(r.Output, "gofmt failed") {
		t.Errorf("%v\n%s", err, r.Output)
	}
}

func TestFormatters(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script(t, bin, "upper", `tr a-z A-Z`)
	script(t, bin, "onfile", `tr a-z A-Z <"$1" >"$1.x" && cat "$1.x" >"$1" && rm "$1.x"`)
	script(t, bin, "fails", `echo broken >&2; exit 3`)
	script(t, bin, "empties", `cat >/dev/null`)
	script(t, bin, "hangs", `sleep 60 & wait`)
	script(t, bin, "prettier", `cat >/dev/null; echo "pretty $2"`)
	script(t, bin, "envs", `cat >/dev/null; echo "$MODE"`)
	dir := t.TempDir()
	for _, c := range []struct {
		name      string
		rules     []FormatRule
		file, in  string
		out, fail string
		ok        bool
	}{
		{name: "through stdin", rules: []FormatRule{{Name: "u", Command: []string{"upper"}, Extensions: []string{".x"}}}, file: "a.x", in: "abc", out: "ABC", ok: true},
		{name: "on a file", rules: []FormatRule{{Name: "u", Command: []string{"onfile", "$FILE"}, Extensions: []string{".x"}}}, file: "new/a.x", in: "abc", out: "ABC", ok: true},
		{name: "another extension", rules: []FormatRule{{Name: "u", Command: []string{"upper"}, Extensions: []string{".x"}}}, file: "a.y", in: "abc", out: "abc"},
		{name: "disabled", rules: []FormatRule{{Name: "u", Command: []string{"upper"}, Extensions: []string{".x"}, Disabled: true}}, file: "a.x", in: "abc", out: "abc"},
		{name: "row of the table by name", rules: []FormatRule{{Name: "prettier"}}, file: "a.ts", in: "abc", out: "pretty " + filepath.Join(dir, "a.ts") + "\n", ok: true},
		{name: "environment", rules: []FormatRule{{Name: "e", Command: []string{"envs"}, Extensions: []string{".x"}, Env: map[string]string{"MODE": "m"}}}, file: "a.x", in: "a", out: "m\n", ok: true},
		{name: "CRLF comes back", rules: []FormatRule{{Name: "u", Command: []string{"sh", "-c", "tr -d '\\r'"}, Extensions: []string{".x"}}}, file: "a.x", in: "a\r\nb\r\n", out: "a\r\nb\r\n", ok: true},
		{name: "fails", rules: []FormatRule{{Name: "f", Command: []string{"fails"}, Extensions: []string{".x"}}}, file: "a.x", in: "abc", fail: "broken"},
		{name: "prints nothing", rules: []FormatRule{{Name: "f", Command: []string{"empties"}, Extensions: []string{".x"}}}, file: "a.x", in: "abc", fail: "printed nothing"},
		{name: "not installed", rules: []FormatRule{{Name: "f", Command: []string{"no-such-program"}, Extensions: []string{".x"}}}, file: "a.x", in: "abc", fail: "not installed"},
		{name: "hangs with a child", rules: []FormatRule{{Name: "f", Command: []string{"hangs"}, Extensions: []string{".x"}}}, file: "a.x", in: "abc", fail: "longer than"},
	} {
		o := FormatOptions{Root: dir, Rules: c.rules}
		if c.name == "hangs with a child" {
			o.Timeout = 100 * time.Millisecond
		}
		out, _, ok, err := NewFormatter(o).Format(context.Background(), filepath.Join(dir, c.file), c.in)
		switch {
		case c.fail != "":
			if err == nil || !strings.Contains(err.Error(), c.fail) || out != c.in {
				t.Errorf("%s: %q %v", c.name, out, err)
			}
		case err != nil || ok != c.ok || out != c.out:
			t.Errorf("%s: %q %v %v, want %q", c.name, out, ok, err, c.out)
		}
	}
	if des, _ := os.ReadDir(dir); len(des) != 0 {
		t.Errorf("left behind: %v", des)
	}
}

func TestDetection(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script(t, bin, "prettier", `cat >/dev/null; echo global`)
	script(t, filepath.Join(dir, "node_modules", ".bin"), "prettier", `cat >/dev/null; echo local`)
	format := func(o FormatOptions) string {
		o.Root = dir
		out, _, _, err := NewFormatter(o).Format(context.Background(), filepath.Join(dir, "src", "a.ts"), "x\n")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	if got := format(FormatOptions{Detect: true}); got != "x" {
		t.Errorf("without a marker: %s", got)
	}
	os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"devDependencies": {"prettier": "3"}}`), 0o644)
	if got := format(FormatOptions{}); got != "x" {
		t.Errorf("not asked to detect: %s", got)
	}
	if got := format(FormatOptions{Detect: true}); got != "global" {
		t.Errorf("with a marker: %s", got)
	}
	if got := format(FormatOptions{Detect: true, Project: true}); got != "local" {
		t.Errorf("with the project's programs: %s", got)
	}
	if got := format(FormatOptions{Detect: true, Rules: []FormatRule{{Name: "prettier", Disabled: true}}}); got != "x" {
		t.Errorf("switched off: %s", got)
	}
	out, _, ok, _ := NewFormatter(FormatOptions{Root: dir, Detect: true}).Format(context.Background(), "/elsewhere/a.ts", "x")
	if ok || out != "x" {
		t.Error("a file outside the project was formatted")
	}
}
