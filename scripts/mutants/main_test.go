package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package p

func f(a, b bool, n int) int {
	if a && b {
		g()
	}
	if n >= 10 {
		return 0
	}
	n = 3
	return n
}

func g() {}
`

func TestMutantsOfASample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := mutantsOf(path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range all {
		if string(m.text) == sample {
			t.Errorf("%s changes nothing", m.what)
		}
		got[m.what] = m.line
	}
	want := map[string]int{
		"f: negated if a && b": 4, "f: right side only of a && b": 4, "f: left side only of a && b": 4, "f: without g()": 5,
		"f: negated if n >= 10": 7, "f: boundary of n >= 10": 7, "f: 10 made one larger": 7, "f: without n = 3": 10, "f: 3 made one larger": 10,
	}
	for what, line := range want {
		if got[what] != line {
			t.Errorf("%s: line %d, want %d", what, got[what], line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestAcceptedWantsAReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("# head\nx.go: f: true turned # never reached\nx.go: f: false turned\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAccepted(path); err == nil || !strings.Contains(err.Error(), ":3:") {
		t.Errorf("got %v, want a fault in line 3", err)
	}
}
