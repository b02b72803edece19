package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		if strings.Contains(sample, string(m.text)) {
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

// A package of its own, with every form of function that must call its mutants: results or none, methods, unnamed and blank parameters,
// variadic and generic ones. half is tested on one side only, and loop hangs when its condition is broken.
const (
	subject = `package p

type box[T any] struct{ v T }

func (*box[T]) set(_ int, list ...T) (n int) {
	if len(list) > 0 {
		n = len(list)
	}
	return n
}

func each[T any, U comparable](list []T, f func(T) U, _ ...U) (out []U) {
	for _, v := range list {
		out = append(out, f(v))
	}
	return
}

func half(int, bool) bool { return true && called }

var called bool

func note() {
	called = true
}

func unused(short string) bool {
	long, ok := short+"", false
	if ok {
		return long == ""
	}
	return true
}

func loop(n int) {
	for n > 0 {
		n--
	}
}
`
	subjectTest = `package p

import "testing"

func TestAll(t *testing.T) {
	if (&box[string]{}).set(1, "a", "b") != 2 || len(each([]int{1}, func(n int) bool { return n > 0 })) != 1 {
		t.Error("set, each")
	}
	note()
	if !half(1, true) {
		t.Error("half")
	}
	loop(3)
}
`
)

func TestAPackageWithItsMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root := t.TempDir()
	t.Chdir(root)
	for name, text := range map[string]string{"go.mod": "module example.test\n\ngo 1.24\n", "p/p.go": subject, "p/p_test.go": subjectTest} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := mutants("p")
	if err != nil {
		t.Fatal(err)
	}
	s, built, err := build("p", all, []string{"./p"})
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(s.dir)
	if len(built) == len(all) {
		t.Error("a function without a use of its variable was compiled")
	}
	if err := s.measure("", 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	survivors, endless := map[string]bool{}, 0
	for i, m := range built {
		if m.what == "loop: without n--" {
			endless = i + 1
			continue
		}
		got, _, err := s.judge(i+1, "")
		if err != nil {
			t.Fatal(err)
		}
		if got == survived {
			survivors[m.what] = true
		}
	}
	for what, want := range map[string]bool{
		"set: negated if len(list) > 0": false, "set: without n = len(list)": false, "each: without out = append(out, f(v))": false,
		"note: without called = true": false, "half: left side only of true && called": true, "half: right side only of true && called": true,
		"loop: boundary of n > 0": true,
	} {
		if survivors[what] != want {
			t.Errorf("%s: survived %t, want %t", what, survivors[what], want)
		}
	}
	// It ends by no limit but its own, which says nothing on a machine that has become slow: here the unchanged code is over the limit as well.
	s.limit = time.Nanosecond
	if got, _, err := s.judge(endless, ""); err != nil || got != undecided {
		t.Errorf("an endless loop, and the unchanged code is slow: %v, %v, want undecided", got, err)
	}
	// How long the unchanged code takes is for the machine to say, so the limit grows until it is far below.
	got, by := undecided, ""
	for s.limit = time.Second; got == undecided && s.limit < 5*time.Minute; s.limit *= 2 {
		if got, by, err = s.judge(endless, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got != noticed || by != "time limit" {
		t.Errorf("an endless loop: %v by %s, want noticed by the time limit", got, by)
	}
}
