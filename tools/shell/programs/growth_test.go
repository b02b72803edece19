//go:build linux && cgo

package programs

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// On what people do all day nothing is said to be outside the project that is not.
func TestEverydayCommandsStayInside(t *testing.T) {
	f := newFixture(t)
	n := 0
	for _, e := range readTable(t, "testdata/everyday.txt") {
		n++
		if a := f.analyze(e.command); len(a.External) > 0 {
			t.Errorf("%s\nis said to touch %v", e.command, a.External)
		}
	}
	if n < 100 {
		t.Errorf("only %d commands", n)
	}
}

// resident is this process's memory in bytes, the parsers' own outside of Go's included.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// What the second parser takes is not Go's to give back. bench does the same 100,000 times.
func TestAnalysesLeaveNothingBehind(t *testing.T) {
	f := newFixture(t)
	const command = `cd sub && git status --short | grep -v '^??' > out.txt && for f in *.go; do gofmt -l "$f"; done; bash -c 'make test'`
	for range 1000 {
		f.analyze(command)
	}
	before := resident(t)
	for range 5000 {
		f.analyze(command)
	}
	if grown := resident(t) - before; grown > 4<<20 { // a kilobyte lost each time would be more
		t.Errorf("%d KB more after 5,000 analyses", grown>>10)
	}
}
