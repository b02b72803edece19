package search

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// script writes a program that stands in for ripgrep.
func script(t *testing.T, body string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs /bin/sh")
	}
	path := filepath.Join(t.TempDir(), "rg")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABrokenRipgrepIsReplacedByTheGoEngine(t *testing.T) {
	quiet(t)
	root := tree(t, "a", "x\n")
	for name, program := range map[string]string{
		"not there":          filepath.Join(t.TempDir(), "none"),
		"does not know flag": script(t, "echo 'error: Found argument --no-require-git which was not expected' >&2; exit 2"),
		"killed":             script(t, "kill -9 $$"),
		"strange exit":       script(t, "exit 77"),
		"talks nonsense":     script(t, `case "$*" in *files-with*) printf './a\0';; *) printf 'a\0nonsense\n';; esac`),
	} {
		out, err := New(Options{Ripgrep: program}).Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		if err != nil || short(root, out) != "a:1:x\n" {
			t.Errorf("%s: %v %v", name, out, err)
		}
	}
}

func TestRipgrepIsFound(t *testing.T) {
	mine := script(t, "exit 1")
	t.Setenv("PATH", "")
	if got := New(Options{Candidates: []string{"rg", filepath.Join(t.TempDir(), "none"), mine}}).Engine(); got != mine {
		t.Error(got)
	}
	if got := New(Options{}).Engine(); got != "go" {
		t.Error(got)
	}
	if got := New(Options{Ripgrep: "off", Candidates: []string{mine}}).Engine(); got != "go" {
		t.Error(got)
	}
	t.Setenv("PATH", filepath.Dir(mine))
	if got := New(Options{}).Engine(); got != mine {
		t.Error(got)
	}
}

func TestASearchEndsWhenTimeIsUp(t *testing.T) {
	quiet(t)
	root := tree(t, "a", "x\n", "b", "x\n")
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed")
	}
	slow := script(t, `case "$*" in *files-with*) printf './a\0'; exec sleep 100;; *) exec `+rg+` "$@";; esac`)
	// Where programs start slowly the time is up before the first file is found, so the limit grows.
	for limit := time.Second; ; limit *= 3 {
		out, err := New(Options{Ripgrep: slow, Timeout: limit}).Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		if err == nil && short(root, out) == "partial\n" && limit < time.Minute {
			continue
		}
		if err != nil || short(root, out) != "a:1:x\npartial\n" {
			t.Errorf("%v %v", out, err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	if _, err = New(Options{Ripgrep: slow}).Grep(ctx, GrepQuery{Root: root, Pattern: "x"}); !errors.Is(err, context.Canceled) || time.Since(begin) > 50*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	for _, s := range []*Searcher{New(Options{Ripgrep: "off"}), New(Options{})} {
		if _, err := s.Grep(ctx, GrepQuery{Root: root, Pattern: "x"}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := s.Glob(ctx, GlobQuery{Root: root, Pattern: "*"}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	late := New(Options{Ripgrep: "off", Timeout: time.Nanosecond})
	if n, err := late.Glob(t.Context(), GlobQuery{Root: root, Pattern: "*"}); err != nil || !n.Partial {
		t.Errorf("%v %v", n, err)
	}
	if out, err := late.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"}); err != nil || !out.Partial {
		t.Errorf("%v %v", out, err)
	}
}

// TestALineLargerThanMemory: ripgrep reads lines whole and dies of its limit; the Go engine takes over.
func TestALineLargerThanMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200 MB")
	}
	root := tree(t, "a", "x\n", "huge", "x\n")
	f, err := os.OpenFile(filepath.Join(root, "huge"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := strings.Repeat("y", 1<<20)
	for range 200 {
		if _, err := f.WriteString(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("xyx\nx end\n"); err != nil {
		t.Fatal(err)
	}
	engines(t, func(t *testing.T, s *Searcher) {
		if s.Engine() != "go" && runtime.GOOS != "linux" {
			t.Skip("the limit on a child is Linux's")
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		runtime.ReadMemStats(&after)
		if err != nil || short(root, out) != "huge:1:x\nhuge:2:xyx\nhuge:3:x end\na:1:x\n" {
			t.Errorf("%s %v", short(root, out), err)
		}
		if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
			t.Errorf("took %d MB", grown>>20)
		}
	})
}

func TestCommonWordsComeFromTheNewestFiles(t *testing.T) {
	engines(t, func(t *testing.T, s *Searcher) {
		var files []string
		for range 300 {
			files = append(files, "f"+string(rune('a'+len(files)%26))+strings.Repeat("z", len(files)/26), strings.Repeat("x\n", 30))
		}
		root := tree(t, files...)
		out, err := s.Grep(t.Context(), GrepQuery{Root: root, Pattern: "x"})
		if err != nil || len(out.Matches) != 100 || !out.More {
			t.Fatalf("%d matches, %v", len(out.Matches), err)
		}
		for i, m := range out.Matches {
			if want := filepath.Join(root, files[len(files)-2-2*(i/30)]); m.Path != want || m.Line != i%30+1 {
				t.Fatalf("match %d is %s:%d, want %s", i, m.Path, m.Line, want)
			}
		}
	})
}
