package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A server that sees a new file some time after its write says until then that nothing can be imported from it. That is not a problem of the change, unless
// the server goes on to say so.
func TestServersThatSeeNewFilesLate(t *testing.T) {
	for _, c := range []struct {
		name, blind string
		late        int32 // answers with the complaint after the write
		notices     bool  // only once the server is told to look
		says        string
		introduced  int
	}{
		{"sees it at once", "file", 0, false, "Cannot find module './new'", 0},
		{"sees it at the next look", "file", 1, false, "Cannot find module './new'", 0},
		{"sees it after some", "dir", 4, false, "Import \"new\" could not be resolved", 0},
		{"has to be told", "dir", 99, true, "Cannot find module './new'", 0},
		{"never sees it", "file", 99, false, "Cannot find module './new'", 1},
		{"misses another file", "file", 1, false, "Cannot find module './old'", 1},
		{"is known to see all files", "", 1, false, "Cannot find module './new'", 1},
	} {
		bubble(t, func(t *testing.T) {
			var left atomic.Int32
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, p json.RawMessage) (any, bool, error) {
				if m != "textDocument/diagnostic" || !strings.Contains(string(p), "a.fake") || left.Load() <= 0 {
					return nil, false, nil
				}
				left.Add(-1)
				return map[string]any{"kind": "full", "items": fakelsp.Problems("BAD " + c.says)}, true, nil
			}}, map[string]string{"a.fake": "fine\n"})
			defer f.Close(context.Background())
			told := 0
			f.rows = func() []Server {
				s := Server{ID: "fake", Extensions: []string{".fake"}, Quirks: Quirks{BlindToNew: c.blind}}
				if c.notices {
					s.hooks.missedFile = func(context.Context, *client) { told++; left.Store(0) }
				}
				return []Server{s}
			}
			f.Diagnostics(f.ctx(20*time.Second), f.path)
			left.Store(c.late)
			d := f.Changed(f.ctx(20*time.Second), []Proposal{{Path: f.path, Text: "uses new\n"}, {Path: "/p/new.fake", Text: "new\n"}})
			if len(d.Introduced) != c.introduced || c.notices != (told == 1) {
				t.Errorf("%s: %s %q, introduced %v, told %d times", c.name, d.Certainty, d.Reason, d.Introduced, told)
			}
		})
	}
}

// Before the first answer a server that is asked for diagnostics may not have loaded its project, so each question waits for half of its time; after one
// answer none does.
func TestQuestionsWaitUntilTheProjectIsLoaded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var loaded atomic.Bool
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"hoverProvider": true}, Aside: []string{"textDocument/diagnostic"},
			On: func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				if m == "textDocument/hover" {
					return map[string]string{"contents": "hover"}, true, nil
				}
				if m == "textDocument/diagnostic" && !loaded.Load() {
					<-ctx.Done()
					return nil, true, ctx.Err()
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		for k, waits := range []bool{true, true, false, false} {
			loaded.Store(k > 1)
			start := time.Now()
			if text, err := f.Hover(f.ctx(4*time.Second), f.path, Position{}); err != nil || text != "hover" {
				t.Errorf("question %d: %q, %v", k, text, err)
			}
			if took := time.Since(start); waits != (took >= 2*time.Second) {
				t.Errorf("question %d took %v", k, took)
			}
		}
	})
}

// A server that has answered about one of two files when the time is up has not said what the proposal causes: a comparison of what there is would look
// like a complete one.
func TestHalfAnAnswerIsNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held atomic.Bool
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Hold: func(uri string, _ int32) bool { return !held.Load() || !strings.HasSuffix(uri, "b.fake") }},
			map[string]string{"a.fake": "BAD old\n", "b.fake": "fine\n"})
		defer f.Close(context.Background())
		other := filepath.FromSlash("/p/b.fake")
		f.Diagnostics(f.ctx(20*time.Second), f.path)
		f.Diagnostics(f.ctx(20*time.Second), other)
		held.Store(true)
		d := f.Check(f.ctx(5*time.Second), []Proposal{{Path: f.path, Text: "BAD new\n"}, {Path: other, Text: "good\n"}})
		if d.Certainty != change.Pending || len(d.Introduced)+len(d.Fixed) != 0 {
			t.Errorf("%s %q, introduced %v, fixed %v", d.Certainty, d.Reason, d.Introduced, d.Fixed)
		}
		held.Store(false)
		d = f.Check(f.ctx(5*time.Second), []Proposal{{Path: f.path, Text: "BAD new\n"}, {Path: other, Text: "good\n"}})
		if d.Certainty != change.Fresh || len(d.Introduced) != 1 || len(d.Fixed) != 1 {
			t.Errorf("%s %q, introduced %v, fixed %v", d.Certainty, d.Reason, d.Introduced, d.Fixed)
		}
	})
}

// A file that a running server has not seen is shown to it as it was first, so that its old problems are not those of the write.
func TestOldProblemsOfAnUnseenFile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		f.Diagnostics(f.ctx(20*time.Second), f.path)
		other := filepath.FromSlash("/p/b.fake")
		d := f.Changed(f.ctx(20*time.Second), []Proposal{{Path: other, Old: "BAD one\n", Text: "BAD one\nBAD two\n"}})
		if d.Certainty != change.Fresh || len(d.Introduced) != 1 || d.Introduced[0].Message != "two" || d.Unchanged != 1 {
			t.Errorf("%s %q, introduced %v, unchanged %d", d.Certainty, d.Reason, d.Introduced, d.Unchanged)
		}
	})
}
