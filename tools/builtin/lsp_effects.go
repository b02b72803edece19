package builtin

import (
	"cmp"
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

// effect is how many errors an action would fix and introduce, found out by laying it over the files inside the servers.
// Warnings and hints do not count: they come and go with what an analyser can still see.
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
			introduces, fixes := d.Errors()
			out[i] = &effect{Fixes: fixes, Introduces: introduces}
		}
	}
	return out
}

// better orders actions by what they do to the errors: those that fix most first, then those of which nothing is known, and
// those that introduce as many as they fix last. Equal ones keep the server's order.
func better(a, b *effect) int {
	rank := func(e *effect) int {
		switch {
		case e == nil, e.Fixes == 0 && e.Introduces == 0:
			return 0
		case e.Fixes > e.Introduces:
			return e.Introduces - e.Fixes
		}
		return 1
	}
	return cmp.Compare(rank(a), rank(b))
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
