package lspbridge

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// What was typed and not saved counts for every answer, also where the question is about another file; what was thrown
// away counts no more.
func TestUnsavedBuffersCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true}, map[string]string{"a.fake": "BAD one\n", "b.fake": "typed\n", "c.other": "no server's\n"})
		other := filepath.FromSlash("/p/b.fake")
		f.o.Unsaved = func() []string { return []string{other, filepath.FromSlash("/p/c.other")} }
		defer f.Close(context.Background())
		has := func(want string) {
			t.Helper()
			text, _, open := f.server().Text("file:///p/b.fake")
			if text != want || open != (want != "") {
				t.Errorf("the server has %q, open: %v; want %q", text, open, want)
			}
		}
		ctx := f.ctx(time.Minute)
		if d := f.Check(ctx, []Proposal{{Path: f.path, Text: "BAD two\n"}}); d.Certainty != change.Fresh || len(d.Introduced) != 1 {
			t.Errorf("%+v", d)
		}
		has("typed\n")
		if _, _, open := f.server().Text("file:///p/c.other"); open {
			t.Error("it was told of a file of another kind")
		}
		f.mu.Lock()
		f.texts[other] = "typed again\n"
		f.mu.Unlock()
		f.Diagnostics(ctx, f.path)
		has("typed again\n")
		f.mu.Lock()
		delete(f.texts, other) // closed without saving, and there is no such file on disk
		f.mu.Unlock()
		f.o.Unsaved = func() []string { return nil }
		f.Changed(ctx, []Proposal{{Path: f.path, Text: "BAD one\n"}})
		has("")
	})
}
