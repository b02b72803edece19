package lspbridge

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A server that does not say in time who uses what is changed leaves the answer partial, asked before a write or after.
func TestUsesThatAreNotSaidInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"referencesProvider": true, "documentSymbolProvider": true},
			On: func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				switch m {
				case "textDocument/documentSymbol":
					return json.RawMessage(`[{"name":"x","kind":13,"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":4}},"selectionRange":{"start":{"line":0,"character":0},"end":{"line":0,"character":4}}}]`), true, nil
				case "textDocument/references":
					<-ctx.Done()
					return nil, true, ctx.Err()
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		const late = "did not report in time which other files use"
		edit := []Proposal{{Path: f.path, Text: "good\n", Old: "fine\n"}}
		if d := f.Check(f.ctx(time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, late) {
			t.Errorf("before the write: %s %q", d.Certainty, d.Reason)
		}
		if d := f.Changed(f.ctx(time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, late) {
			t.Errorf("after the write: %s %q", d.Certainty, d.Reason)
		}
	})
}
