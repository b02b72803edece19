package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestCapLeavesWhatFits(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                     "",
		"exactly the lines":         numbered(2000),
		"exactly the lines, no end": strings.TrimSuffix(numbered(2000), "\n"),
		"exactly the bytes":         strings.Repeat("x", 51200),
	} {
		dir := filepath.Join(t.TempDir(), "none")
		if c := Cap(text, CapOptions{Dir: dir}); c.Truncated || c.Text != text || c.Path != "" {
			t.Errorf("%s: %+v", name, c)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: made a folder for nothing", name)
		}
	}
}

func TestCapCuts(t *testing.T) {
	long := strings.Repeat("é", 40000) // 80,000 bytes
	for _, c := range []struct {
		name, text  string
		keep        Keep
		first, last string // of the kept text
		mark        string
	}{
		{"one line too many", numbered(2001), Head, "line 1\n", "line 2000\n", "...1 line truncated..."},
		{"lines", numbered(5000), Head, "line 1\n", "line 2000\n", "...3000 lines truncated..."},
		{"tail", numbered(5000), Tail, "line 3001\n", "line 5000", "...3000 lines truncated..."},
		{"both ends", numbered(5000), HeadTail, "line 1\n", "line 5000", "...3000 lines truncated..."},
		{"bytes, at a line's end", strings.Repeat(strings.Repeat("x", 99)+"\n", 1000), Head, "xxx", "xxx\n", "...488 lines truncated..."},
		{"one giant line is cut, not dropped", long, Head, "éé", "éé\n", "...28800 bytes truncated..."},
		{"one giant line, tail", long, Tail, "éé", "éé", "...28800 bytes truncated..."},
		{"a giant second line", "header\n" + long, Head, "header\né", "é\n", "...28808 bytes truncated..."},
		{"a giant last line, tail", long + "\nend\n", Tail, "é", "é\nend", "...28806 bytes truncated..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tool-output")
			got := Cap(c.text, CapOptions{Dir: dir, Keep: c.keep})
			kept, _, ok := strings.Cut(got.Text, "\n"+c.mark)
			if c.keep == Tail {
				_, kept, ok = strings.Cut(got.Text, "to see the rest.\n\n")
				ok = ok && strings.HasPrefix(got.Text, c.mark)
			}
			if c.keep == HeadTail {
				_, rest, _ := strings.Cut(got.Text, c.mark+"\n\n")
				tail, _, _ := strings.Cut(rest, "\n\nThe call")
				kept += tail
			}
			if !got.Truncated || !ok {
				t.Fatalf("no mark %q in …%q", c.mark, got.Text[max(0, len(got.Text)-400):])
			}
			if !strings.HasPrefix(kept, c.first) || !strings.HasSuffix(kept, c.last) {
				t.Errorf("kept %.40q … %q", kept, kept[max(0, len(kept)-20):])
			}
			if len(kept) > MaxBytes+1 || countLines(kept) > MaxLines+1 || !utf8.ValidString(got.Text) {
				t.Errorf("%d bytes, %d lines", len(kept), countLines(kept))
			}
			if !strings.Contains(got.Text, got.Path) || !strings.Contains(got.Text, fmt.Sprintf("of %d bytes (%d lines in all)", len(c.text), countLines(c.text))) {
				t.Errorf("hint: %q", got.Text[len(got.Text)-300:])
			}
			whole, err := os.ReadFile(got.Path)
			if err != nil || string(whole) != c.text {
				t.Errorf("saved %d bytes, %v", len(whole), err)
			}
			if info, _ := os.Stat(got.Path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
		})
	}
}

func TestCapSaysWhenItCouldNotSave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Cap(numbered(3000), CapOptions{Dir: filepath.Join(file, "x")})
	if !c.Truncated || c.Path != "" || !strings.Contains(c.Text, "could not be saved") {
		t.Errorf("%q", c.Text[len(c.Text)-300:])
	}
}

func TestCapDelegatesAndReusesASavedFile(t *testing.T) {
	dir := t.TempDir()
	whole := &Whole{Path: "/elsewhere/log", Bytes: 9_000_000, Lines: 500_000}
	c := Cap(numbered(3000), CapOptions{Dir: dir, Whole: whole, CanDelegate: true})
	if c.Path != "/elsewhere/log" || !strings.Contains(c.Text, "/elsewhere/log\nDelegate to a task") || !strings.Contains(c.Text, "...498000 lines truncated...") ||
		!strings.Contains(c.Text, "of 9000000 bytes (500000 lines in all)") {
		t.Errorf("%s %s", c.Path, c.Text[len(c.Text)-400:])
	}
	// What was kept may be short, when control characters were taken out of it: it is the beginning of a longer text all the same.
	if c := Cap("short\n", CapOptions{Whole: whole}); !c.Truncated || !strings.Contains(c.Text, "/elsewhere/log") {
		t.Errorf("%+v", c)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Error("saved twice")
	}
}

func TestSweepRemovesOnlyOldSpills(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"tool_old": 8 * 24 * time.Hour, "tool_new": 6 * 24 * time.Hour, "other_old": 30 * 24 * time.Hour} {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(p, nil, 0o600), os.Chtimes(p, now, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	Cap(numbered(3000), CapOptions{Dir: dir}) // spilling sweeps
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 3 || strings.Contains(strings.Join(left, " "), "tool_old") {
		t.Error(left)
	}
	if err := SweepOutput(filepath.Join(dir, "missing"), now); err != nil {
		t.Error(err)
	}
}

func FuzzCap(f *testing.F) {
	f.Add("a\nb\nccccccccccccccccccccc\n", 2, 10, 0)
	f.Add("éééééééééééééé\n\n\n\n", 3, 7, 2)
	f.Fuzz(func(t *testing.T, text string, lines, size, keep int) {
		lines, size = 1+lines&63, 4+size&255
		o := CapOptions{MaxLines: lines, MaxBytes: size, Keep: []Keep{Head, Tail, HeadTail}[(keep&0xff)%3]}
		c := Cap(text, o)
		valid := strings.ToValidUTF8(text, "\uFFFD")
		if !utf8.ValidString(c.Text) {
			t.Fatalf("invalid UTF-8: %q", c.Text)
		}
		if c.Truncated != (countLines(valid) > lines || len(valid) > size) {
			t.Fatalf("truncated %v for %d lines, %d bytes", c.Truncated, countLines(valid), len(valid))
		}
		if len(c.Text) > size+600 || strings.Count(c.Text, "\n") > lines+8 {
			t.Fatalf("too much: %d bytes, %d lines", len(c.Text), strings.Count(c.Text, "\n"))
		}
	})
}

func TestInvokeCapsAndMarks(t *testing.T) {
	out := func(r Result, err error) Tool {
		return New("big", "", func(context.Context, struct{}, *Call) (Result, error) { return r, err }, WithKeep(Tail))
	}
	shared := map[string]any{"n": 1}
	r, err := Invoke(t.Context(), out(Result{Output: numbered(3000), Metadata: shared}, nil), nil, &Call{}, CapOptions{Dir: t.TempDir()})
	if err != nil || r.Metadata["truncated"] != true || r.Metadata["n"] != 1 || !strings.HasSuffix(r.Output, "line 3000") {
		t.Errorf("%v %v", r.Metadata, err)
	}
	if p, _ := r.Metadata["outputPath"].(string); p == "" || len(shared) != 1 {
		t.Errorf("%v, %v", r.Metadata, shared)
	}
	r, _ = Invoke(t.Context(), out(Result{Output: "a\xffb"}, nil), nil, &Call{}, CapOptions{})
	if r.Output != "a\uFFFDb" || r.Metadata["truncated"] != false {
		t.Errorf("%+v", r)
	}
	own := numbered(3000)
	r, _ = Invoke(t.Context(), out(Result{Output: own, Metadata: map[string]any{"truncated": true}}, nil), nil, &Call{}, CapOptions{})
	if r.Output != own || r.Metadata["outputPath"] != nil {
		t.Error("a tool that capped itself was capped again")
	}
	_, err = Invoke(t.Context(), out(Result{}, &Error{Kind: "multiple", Message: numbered(3000)}), nil, &Call{}, CapOptions{})
	var e *Error
	if !errors.As(err, &e) || e.Kind != "multiple" || len(err.Error()) > MaxBytes+1000 || countLines(err.Error()) > MaxLines+10 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}
