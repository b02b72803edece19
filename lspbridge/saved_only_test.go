package lspbridge

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A file that sources of a server read, which is not asked about it: the verdict on it is not that nothing serves it, and beside a source
// it is not fresh, before the write and after it.
func TestVerdictOnAFileThatSourcesRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		f.rows = func() []Server {
			return []Server{{ID: "fake", Extensions: []string{".fake"}, hooks: hooks{readBy: func(_ context.Context, _ *fleet, _ Server, p Proposal) string {
				if filepath.Base(p.Path) == "data.json" {
					return f.path
				}
				return ""
			}}}}
		}
		source, data := Proposal{Path: f.path, Text: "good\n"}, Proposal{Path: filepath.FromSlash("/p/data.json"), Text: "{}"}
		const proposed, written = "fake reads data.json, which a.fake uses, only when it is saved", "fake was not asked which problems data.json, which a.fake uses, causes in other files"
		for _, c := range []struct {
			name   string
			ask    func(context.Context, []Proposal) Delta
			files  []Proposal
			want   change.Certainty
			reason string
		}{
			{"proposed alone", f.Check, []Proposal{data}, change.Unavailable, proposed},
			{"proposed beside a source", f.Check, []Proposal{source, data}, change.Partial, proposed},
			{"a source alone", f.Check, []Proposal{source}, change.Fresh, ""},
			{"written beside a source", f.Changed, []Proposal{source, data}, change.Partial, written},
			{"written alone", f.Changed, []Proposal{data}, change.Unavailable, written},
		} {
			d := c.ask(f.ctx(20*time.Second), c.files)
			if d.Certainty != c.want || !strings.Contains(d.Reason, c.reason) || d.Unserved {
				t.Errorf("%s: %s %q, unserved: %t", c.name, d.Certainty, d.Reason, d.Unserved)
			}
			for _, file := range d.Files {
				if file.Certainty != c.want {
					t.Errorf("%s: %s is %s", c.name, file.Path, file.Certainty)
				}
			}
		}
	})
}
