package lspbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Whoever follows the problems sees them change with what the person types, with what other programs write and when the
// server has changed its mind, also where the server only speaks when asked.
func TestProblemsAreFollowed(t *testing.T) {
	for name, o := range map[string]fakelsp.Options{"pull": {Pull: true}, "push": {Push: true, Versions: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var heard []string
				o.Capabilities = map[string]any{}
				f := newFaked(t, Quirks{}, o, map[string]string{"a.fake": "BAD one\n"})
				f.o.Diagnostics = func(r FileReport) {
					mu.Lock()
					defer mu.Unlock()
					heard = append(heard, fmt.Sprintf("%s %q", r.Certainty, messages(r.Items)))
				}
				defer f.Close(context.Background())
				next := func(want string) {
					t.Helper()
					time.Sleep(2 * time.Second)
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					if got := fmt.Sprint(heard); got != want {
						t.Errorf("heard %s, want %s", got, want)
					}
					heard = nil
				}
				f.Touched(f.path) // nothing runs: nothing is started for it
				synctest.Wait()
				if f.Running() {
					t.Error("typing started a server")
				}
				f.Diagnostics(f.ctx(time.Minute), f.path)
				next(`[fresh "a.fake: one"]`)
				for i := range 10 { // in quick succession: one look
					f.edit(fmt.Sprintf("BAD typed %d\n", i))
					f.Touched(f.path)
				}
				next(`[fresh "a.fake: typed 9"]`)
				c := f.running()[0].current()
				f.edit("BAD written\n")
				c.disk.add([]fileEvent{{f.path, 2}})
				next(`[fresh "a.fake: written"]`)
				if _, v, _ := f.server().Text("file:///p/a.fake"); v != 3 {
					t.Errorf("the server has been told %d versions", v)
				}
			})
		})
	}
}

// A look in the background never makes an edit wait: it gives way, and is made afterwards.
func TestALookGivesWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := false
		var mu sync.Mutex
		var heard []string
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/diagnostic" && slow {
				slow = false
				<-ctx.Done() // until it is cancelled
				return nil, true, ctx.Err()
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "BAD one\n"})
		f.o.Diagnostics = func(r FileReport) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, messages(r.Items))
		}
		defer f.Close(context.Background())
		f.Diagnostics(f.ctx(time.Minute), f.path)
		slow = true
		f.edit("BAD typed\n")
		f.Touched(f.path)
		time.Sleep(refreshDelay + time.Second) // the look is under way
		began := time.Now()
		d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "fine\n"}})
		if took := time.Since(began); d.Certainty != change.Fresh || messages(d.Fixed) != "a.fake: typed" || took > 100*time.Millisecond {
			t.Errorf("%s %q, fixed %q after %v", d.Certainty, d.Reason, messages(d.Fixed), took)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(heard) == 0 || heard[len(heard)-1] != "a.fake: typed" {
			t.Errorf("heard %q", heard)
		}
	})
}
