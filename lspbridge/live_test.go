package lspbridge

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Problems come live, whoever caused them; those of a proposal never do.
func TestLiveDiagnostics(t *testing.T) {
	for name, q := range map[string]Quirks{"marker": {EndMarker: true}, "push": {}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var heard []string
				f := newFaked(t, q, fakelsp.Options{Push: true, Versions: true, Marker: q.EndMarker}, map[string]string{"a.fake": "BAD one\n"})
				f.o.Diagnostics = func(r FileReport) {
					mu.Lock()
					defer mu.Unlock()
					heard = append(heard, fmt.Sprintf("%s %q", r.Certainty, messages(r.Items)))
				}
				defer f.Close(context.Background())
				next := func(want string) {
					t.Helper()
					time.Sleep(time.Second) // of synctest's time
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					if got := fmt.Sprint(heard); got != want {
						t.Errorf("heard %s, want %s", got, want)
					}
					heard = nil
				}
				f.Diagnostics(f.ctx(time.Minute), f.path)
				next(`[fresh "a.fake: one"]`)
				f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "BAD two\n"}})
				next(`[]`)
				f.edit("fine\n")
				f.Changed(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "fine\n"}})
				next(`[fresh ""]`)
				f.server().Publish("file:///p/other.fake", 0, fakelsp.Problems("BAD other"))
				next(`[fresh "other.fake: other"]`)
			})
		})
	}
}

// However many servers and timers tell at once, what is told last is what is so.
func TestTheLastWordIsTheNewest(t *testing.T) {
	f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true}, map[string]string{"a.fake": "fine\n"})
	last, told := "", 0
	f.o.Diagnostics = func(r FileReport) { // one at a time, or the race detector says so
		last, told = messages(r.Items), told+1
	}
	defer f.Close(context.Background())
	f.Diagnostics(f.ctx(time.Minute), f.path)
	c := f.running()[0].current()
	var wg sync.WaitGroup
	const tellers, rounds = 8, 200
	n := 0
	for range tellers {
		wg.Go(func() {
			for range rounds {
				c.ledger.mu.Lock()
				n++
				c.ledger.files[f.path] = &fileDiags{hasPush: true, pushed: []change.Problem{{Path: f.path, Message: fmt.Sprint(n)}}}
				c.ledger.mu.Unlock()
				f.live.reportChanged([]string{f.path})
			}
		})
	}
	wg.Wait()
	f.live.mu.Lock() // the first question's own telling may still come
	defer f.live.mu.Unlock()
	if want := fmt.Sprintf("a.fake: %d", tellers*rounds); last != want || told == 0 {
		t.Errorf("told %q last, want %q", last, want)
	}
}
