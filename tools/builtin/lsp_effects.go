package builtin

import (
	"context"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// What trying quick fixes out may cost while a list of them is made.
const (
	effectBudget = 2 * time.Second
	maxEffects   = 8
)

// effect is what an action would do to the problems, found out by laying it over the files inside the servers.
type effect struct {
	Fixes      int `json:"fixes"`
	Introduces int `json:"introduces"`
}

// effects tries the quick fixes of a list out; nil for the others and for those that could not be judged in time.
func (c *lspCall) effects(ctx context.Context, actions []lspbridge.Action) []*effect {
	out := make([]*effect, len(actions))
	ctx, cancel := context.WithTimeout(ctx, effectBudget)
	defer cancel()
	tried := 0
	for i, a := range actions {
		if !strings.HasPrefix(a.Kind, "quickfix") || a.Disabled != "" || tried == maxEffects {
			continue
		}
		tried++
		edits, err := c.lsp.ResolveAction(ctx, a)
		if err != nil || len(edits) == 0 {
			continue
		}
		if d := c.Bridge.Check(ctx, editProposals(edits)); d.Certainty == change.Fresh || d.Certainty == change.Partial {
			out[i] = &effect{Fixes: grave(d.Fixed), Introduces: grave(d.Introduced)}
		}
	}
	return out
}

// grave counts errors and warnings: a hint that comes or goes is no effect.
func grave(list []change.Problem) (n int) {
	for _, d := range list {
		if d.Severity.Number() <= change.SeverityWarning.Number() {
			n++
		}
	}
	return n
}

// editProposals are edits as texts; a rename is a deletion and a new file.
func editProposals(edits []lspbridge.FileEdit) []lspbridge.Proposal {
	var out []lspbridge.Proposal
	for _, e := range edits {
		switch {
		case e.Kind == "delete":
			out = append(out, lspbridge.Proposal{Path: e.Path, Delete: true})
		case e.NewPath != "":
			out = append(out, lspbridge.Proposal{Path: e.Path, Delete: true}, lspbridge.Proposal{Path: e.NewPath, Text: e.New})
		default:
			out = append(out, lspbridge.Proposal{Path: e.Path, Text: e.New})
		}
	}
	return out
}
