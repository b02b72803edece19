package builtin

import (
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// A missing server is worth a word to the model; that prose has none is not.
func TestProblemTextOfUncheckedFiles(t *testing.T) {
	set := change.New("c", []change.File{{Path: "/p/a.txt", Kind: change.Edit, Old: "a", New: "b"}})
	for _, c := range []struct {
		delta lspbridge.Delta
		want  string
	}{
		{lspbridge.Delta{State: lspbridge.Unavailable, Unserved: true, Reason: "no language server for .txt"}, ""},
		{lspbridge.Delta{State: lspbridge.Unavailable, Reason: "pyright-langserver not found"}, "\n\nNot checked by a language server (pyright-langserver not found)."},
		{lspbridge.Delta{State: lspbridge.Fresh}, ""},
	} {
		if got := problemText(&c.delta, set); got != c.want {
			t.Errorf("%+v: %q, want %q", c.delta, got, c.want)
		}
	}
}
