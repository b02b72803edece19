package acp

import (
	"fmt"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
)

// Who is slow gets the newest word on each file, in the order the files were first named; who has gone gets nothing.
func TestLiveProblemsAreCoalesced(t *testing.T) {
	l := &liveProblems{}
	l.put(lspbridge.FileReport{Path: "before"}) // nobody listens yet
	got, more := make(chan string), make(chan bool)
	l.follow(func(r lspbridge.FileReport) {
		got <- fmt.Sprint(r.Path, r.Version)
		<-more
	})
	l.put(lspbridge.FileReport{Path: "a", Version: 1})
	if s := <-got; s != "a1" {
		t.Errorf("told %s", s)
	}
	for v := range int32(100) { // while the listener is at a1
		l.put(lspbridge.FileReport{Path: "b", Version: v + 1})
		l.put(lspbridge.FileReport{Path: "a", Version: v + 2})
	}
	for _, want := range []string{"b100", "a101"} {
		more <- true
		if s := <-got; s != want {
			t.Errorf("told %s, want %s", s, want)
		}
	}
	l.put(lspbridge.FileReport{Path: "c"})
	l.follow(nil)
	more <- true
	l.put(lspbridge.FileReport{Path: "d"})
	select {
	case s := <-got:
		t.Errorf("told %s after the end", s)
	default:
	}
}
