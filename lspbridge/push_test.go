package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// debounced is a server in the manner of intelephense: it publishes without versions, for the files that it was sent, when it was sent none for
// a while; an opened file gets an empty list at once. b.fake, which uses a.fake, takes longer than others: longer by slow once a.fake does not
// have the word it uses. It has a problem of its own, and another then.
func debounced(pause, slow time.Duration) fakelsp.Options {
	const a, b = "file:///p/a.fake", "file:///p/b.fake"
	var mu sync.Mutex
	var timer *time.Timer
	sent := map[string]bool{}
	return fakelsp.Options{Capabilities: withReferences, On: func(_ context.Context, s *fakelsp.Server, m string, params json.RawMessage) (any, bool, error) {
		var p struct{ TextDocument struct{ URI string } }
		_ = json.Unmarshal(params, &p)
		switch m {
		case "textDocument/documentSymbol":
			return symbolsOf(1), true, nil
		case "textDocument/references":
			if p.TextDocument.URI != a {
				return json.RawMessage("[]"), true, nil
			}
			at := map[string]int{"line": 0, "character": 0}
			return []map[string]any{{"uri": b, "range": map[string]any{"start": at, "end": at}}}, true, nil
		case "textDocument/didOpen", "textDocument/didChange":
			if m == "textDocument/didOpen" {
				s.Publish(p.TextDocument.URI, 0, nil)
			}
			mu.Lock()
			defer mu.Unlock()
			if timer != nil {
				timer.Stop()
			}
			sent[p.TextDocument.URI] = true
			timer = time.AfterFunc(pause, func() {
				mu.Lock()
				defer mu.Unlock()
				for uri := range sent {
					if uri != b {
						s.Publish(uri, 0, nil)
						continue
					}
					problems, late := "BAD old", 100*time.Millisecond
					if text, _, _ := s.Text(a); !strings.Contains(text, "fine") {
						problems, late = problems+"\nBAD gone", late+slow
					}
					time.AfterFunc(late, func() { s.Publish(b, 0, fakelsp.Problems(problems)) })
				}
				clear(sent)
			})
		}
		return nil, false, nil
	}}
}

// A server that publishes by itself has to check the files that use what a proposal changes; what they had before is not introduced.
func TestUsersOfAChangeWhereTheServerPublishes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, debounced(300*time.Millisecond, 0), map[string]string{"a.fake": "fine\n", "b.fake": "uses fine\n"})
		defer f.Close(context.Background())
		for _, c := range []struct{ text, want string }{{"good\n", "b.fake: gone"}, {"fine too\n", ""}, {"good\n", "b.fake: gone"}} {
			d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: c.text, Old: "fine\n"}})
			if d.Certainty != change.Fresh || messages(d.Introduced) != c.want {
				t.Errorf("%q: %s %q, introduced %q, want %q", c.text, d.Certainty, d.Reason, messages(d.Introduced), c.want)
			}
		}
	})
}

// The report on a user of a change is awaited, also where the server takes longer for it than it ever took before: after the pause that
// follows the report on the changed file.
func TestAUserThatIsReportedLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, debounced(300*time.Millisecond, 550*time.Millisecond), map[string]string{"a.fake": "fine\n", "b.fake": "uses fine\n"})
		defer f.Close(context.Background())
		d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "good\n", Old: "fine\n"}})
		if d.Certainty != change.Fresh || messages(d.Introduced) != "b.fake: gone" {
			t.Errorf("%s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
		}
	})
}

// A server that waits longer than a check for its report is given more time by the next check: each one that gives up makes it begin anew.
func TestAServerThatWaitsLongerThanACheck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, debounced(1200*time.Millisecond, 0), map[string]string{"a.fake": "fine\n", "b.fake": "uses fine\n"})
		defer f.Close(context.Background())
		var d Delta
		tries := 0
		for d.Certainty != change.Fresh && tries < 6 {
			tries++
			d = f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "good\n", Old: "fine\n"}})
		}
		if d.Certainty != change.Fresh || messages(d.Introduced) != "b.fake: gone" {
			t.Errorf("after %d checks: %s %q, introduced %q", tries, d.Certainty, d.Reason, messages(d.Introduced))
		}
	})
}

// What a server reports late, about a file that an earlier proposal had it open, is not introduced by the next proposal.
func TestALateReportIsNotOfTheNextProposal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, debounced(300*time.Millisecond, 0), map[string]string{"a.fake": "fine\n", "b.fake": "uses fine\n", "c.fake": "c\n"})
		defer f.Close(context.Background())
		c := filepath.FromSlash("/p/c.fake")
		f.Check(f.ctx(time.Minute), []Proposal{{Path: c, Text: "c\n\n", Old: "c\n"}})
		// This check ends before b.fake was reported a second time.
		if d := f.Check(f.ctx(time.Second), []Proposal{{Path: f.path, Text: "good\n", Old: "fine\n"}}); d.Certainty == change.Fresh {
			t.Errorf("%s, introduced %q", d.Certainty, messages(d.Introduced))
		}
		if d := f.Check(f.ctx(time.Minute), []Proposal{{Path: c, Text: "c\n\n", Old: "c\n"}}); d.Certainty != change.Fresh || len(d.Introduced) != 0 {
			t.Errorf("%s %q, introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
		}
	})
}
