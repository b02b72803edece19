package lspbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A server that asks for a refresh some time after each change of a text is asked once a check, not twice; a refresh for
// any other reason counts.
func TestRefreshEchoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refresh := func(s *fakelsp.Server) {
			_ = s.Peer().Call(context.Background(), "workspace/diagnostic/refresh", nil, nil)
		}
		says := "BAD one\n" // beside the text
		var timer *time.Timer
		f := newFaked(t, Quirks{RefreshEcho: true}, fakelsp.Options{Pull: true, On: func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			switch m {
			case "textDocument/didOpen", "textDocument/didChange":
				if timer != nil {
					timer.Stop()
				}
				timer = time.AfterFunc(250*time.Millisecond, func() { refresh(s) })
			case "textDocument/diagnostic":
				text, _, _ := s.Text("file:///p/a.fake")
				return map[string]any{"kind": "full", "items": fakelsp.Problems(says + text)}, true, nil
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		pulls := func() (n int) {
			for _, m := range f.server().Seen() {
				if m == "textDocument/diagnostic" {
					n++
				}
			}
			return n
		}
		f.Diagnostics(f.ctx(time.Minute), f.path)
		const rounds = 5
		for i := range rounds {
			time.Sleep(time.Second)
			d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: fmt.Sprintf("BAD %d\n", i)}})
			if d.Certainty != change.Fresh || messages(d.Introduced) != fmt.Sprintf("a.fake: %d", i) {
				t.Errorf("%s %q", d.Certainty, messages(d.Introduced))
			}
		}
		if n := pulls(); n != 1+rounds {
			t.Errorf("%d checks made %d questions", rounds, n)
		}
		time.Sleep(time.Second)
		says = "BAD other\n"
		refresh(f.server())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: other" {
			t.Errorf("after a refresh of its own %s %q", r.Certainty, messages(r.Items))
		}
		// What a change on disk does to it comes with the refresh, not before.
		c := f.running()[0].current()
		c.watched([]fileEvent{{f.path, 2}})
		c.docs.put(f.path, "BAD typed\n")
		f.edit("BAD typed\n")
		f.Diagnostics(f.ctx(time.Minute), f.path)
		says = "BAD found\n"
		time.Sleep(time.Second)
		synctest.Wait()
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: found\na.fake: typed" {
			t.Errorf("after a change on disk %s %q", r.Certainty, messages(r.Items))
		}
	})
}

// A server that fails over a file and answers "no problems" all the same is not believed.
func TestAFailedValidationIsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := true
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m != "textDocument/diagnostic" || !broken {
				return nil, false, nil
			}
			_ = s.Peer().Notify(context.Background(), "window/logMessage", map[string]any{"type": 1, "message": "Error while validating file:///p/a.fake: no such property\n  at f (x.js:1)"})
			return map[string]any{"kind": "full", "items": []any{}}, true, nil
		}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		ctx := f.ctx(time.Minute)
		if r := f.Diagnostics(ctx, f.path); r.Certainty == change.Fresh || r.Reason != "fake: it failed on this file: no such property" {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
		broken = false
		if r := f.Diagnostics(ctx, f.path); r.Certainty != change.Fresh || len(r.Items) != 1 {
			t.Errorf("afterwards %s %q %q", r.Certainty, r.Reason, messages(r.Items))
		}
	})
}
