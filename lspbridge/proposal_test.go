package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Two proposals at once do not see one another, and neither leaves anything behind.
func TestProposalsSideBySide(t *testing.T) {
	for name, q := range map[string]Quirks{"marker": {EndMarker: true}, "push": {}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFaked(t, q, fakelsp.Options{Push: true, Versions: true, Marker: q.EndMarker}, map[string]string{"a.fake": "fine\n"})
				defer f.Close(context.Background())
				var wg sync.WaitGroup
				for i := range 20 {
					wg.Go(func() {
						says := fmt.Sprintf("mistake %d", i)
						d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "BAD " + says + "\n"}})
						if d.Certainty != change.Fresh || messages(d.Introduced) != "a.fake: "+says {
							t.Errorf("%d: %s %q introduced %q", i, d.Certainty, d.Reason, messages(d.Introduced))
						}
					})
				}
				wg.Wait()
				if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || len(r.Items) != 0 {
					t.Errorf("afterwards %s: %q", r.Certainty, messages(r.Items))
				}
			})
		})
	}
}

func TestCancelledCheckRollsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Hold: func(_ string, v int32) bool { return v == 1 }}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(3*time.Second), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		if d := f.Check(ctx, []Proposal{{Path: f.path, Text: "BAD x\n"}}); d.Certainty != change.Pending {
			t.Errorf("%s", d.Certainty)
		}
		if took := time.Since(start); took > 150*time.Millisecond {
			t.Errorf("cancelled after 100 ms, back after %v", took)
		}
		synctest.Wait()
		if text, _, _ := f.server().Text("file:///p/a.fake"); text != "fine\n" {
			t.Errorf("the overlay stayed: %q", text)
		}
	})
}

// A server's edits of its own accord go to the person; those of a command we run come back as ours.
func TestApplyEdit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		edit := json.RawMessage(`{"label":"tidy","edit":{"changes":{"file:///p/a.fake":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":4}},"newText":"FINE"}]}}}`)
		answers := make(chan string, 1)
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true,
			Capabilities: map[string]any{"codeActionProvider": true, "executeCommandProvider": map[string]any{"commands": []string{"tidy"}}},
			On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				switch m {
				case "textDocument/codeAction":
					return json.RawMessage(`[{"title":"Tidy","command":"tidy","arguments":[1]},null,{"title":"Editor's","command":{"title":"x","command":"editor.show"}}]`), true, nil
				case "workspace/executeCommand":
					var r struct {
						Applied       bool
						FailureReason string
					}
					err := s.Peer().Call(context.Background(), "workspace/applyEdit", edit, &r)
					return nil, true, errors.Join(err, fmt.Errorf("the client says %v %q", r.Applied, r.FailureReason))
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		f.o.ApplyEdit = func(_ context.Context, _, label string, edits []FileEdit) error {
			if label != "tidy" || len(edits) != 1 || edits[0].New != "FINE\n" {
				t.Errorf("asked for %q %+v", label, edits)
			}
			return errors.New("the person said no")
		}
		ctx := f.ctx(time.Minute)
		actions, err := f.CodeActions(ctx, f.path, Range{}, nil, nil)
		if err != nil || len(actions) != 2 {
			t.Fatalf("%+v %v", actions, err)
		}
		if edits, err := f.ResolveAction(ctx, actions[0]); !errors.Is(err, errOnlyRuns) || slices.Contains(f.server().Seen(), "workspace/executeCommand") {
			t.Errorf("looking at it ran it: %+v %v", edits, err)
		}
		for _, refusal := range []error{nil, errors.New("only one hunk")} {
			var got []FileEdit
			err = f.RunAction(ctx, actions[0], func(ctx context.Context, label string, edits []FileEdit) error {
				got = edits
				// What the change pipeline does; this server thinks of nothing but its command meanwhile.
				if d := f.Check(f.ctx(time.Second), []Proposal{{Path: f.path, Text: edits[0].New}}); d.Certainty != change.Pending || !strings.Contains(d.Reason, "waits for the decision") {
					t.Errorf("%s %q", d.Certainty, d.Reason)
				}
				return refusal
			})
			want := `the client says true ""`
			if refusal != nil {
				want = `the client says false "only one hunk"`
			}
			if err == nil || !strings.Contains(err.Error(), want) || len(got) != 1 || got[0].New != "FINE\n" || got[0].Old != "fine\n" {
				t.Errorf("%+v %v", got, err)
			}
		}
		if err := f.RunAction(ctx, actions[1], nil); err == nil || !strings.Contains(err.Error(), "editor.show") {
			t.Errorf("an editor's command: %v", err)
		}
		go func() {
			var r struct {
				Applied       bool
				FailureReason string
			}
			err := f.server().Peer().Call(context.Background(), "workspace/applyEdit", edit, &r)
			answers <- fmt.Sprint(r.Applied, r.FailureReason, err)
		}()
		if got := <-answers; got != "falsethe person said no<nil>" {
			t.Errorf("the server was told %q", got)
		}
	})
}
