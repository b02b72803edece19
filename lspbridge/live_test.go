package lspbridge

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
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
					heard = append(heard, fmt.Sprintf("%s %q", r.State, messages(r.Items)))
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
