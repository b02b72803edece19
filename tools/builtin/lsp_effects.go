package builtin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/gofix"
)

// What trying quick fixes out may cost while a list of them is made: the model waits for the list.
const (
	// For all checks together. What was not tried by then is listed without an effect.
	effectBudget = 2 * time.Second
	// Actions that are tried; each costs the servers a check like that of a proposal.
	maxEffects = 8
)

// effect is how many errors an action would fix and introduce. Warnings and hints do not count: they come and go with what an analyser can
// still see of a broken file. It goes into the metadata for scripts and the built-in model.
type effect struct {
	Fixes      int  `json:"fixes"`      // errors that go
	Introduces int  `json:"introduces"` // errors that come
	Errors     int  `json:"errors"`     // how many errors more there are; less than 0: fewer
	Stub       bool `json:"stub,omitempty"`
}

// effects checks the quick fixes of a list as if each were a proposal, in the servers' memory only. nil
// for actions of other kinds and for those that could not be checked within the budget.
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
		// A verdict that is pending says nothing about the action, so it has no effect to
		// show.
		// The overlay is rolled back before Check returns, so the next action is tried on the real text.
		if d := c.Bridge.Check(ctx, editProposals(edits)); d.Certainty == change.Fresh || d.Certainty == change.Partial {
			introduces, fixes := d.Errors()
			out[i] = &effect{Fixes: fixes, Introduces: introduces, Errors: introduces - fixes, Stub: makesStub(edits)}
		}
	}
	return out
}

// better orders actions by their effect: those that fix most first, then those of which nothing is
// known, and those that introduce as many as they fix last. Equal ones keep the server's order, which
// has its preferred ones first.
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

// stubs are the bodies that servers generate for missing code: it compiles, and fails when it runs. A quotation may be a
// beginning, where servers add words of their own.
var stubs = []string{`panic("unimplemented")`, `panic("not implemented`, "todo!()", "unimplemented!()", "raise NotImplementedError", `throw new Error("Method not implemented.")`, `throw new Error("Function not implemented.")`}

// makesStub reports whether an edit adds such a body. The effect is marked with it, because the number of errors falls although nothing was
// solved.
func makesStub(edits []lspbridge.FileEdit) bool {
	for _, e := range edits {
		for _, s := range stubs {
			// A count, since the file may have had such a body before.
			if strings.Count(e.New, s) > strings.Count(e.Old, s) {
				return true
			}
		}
	}
	return false
}

// moduleFixes are edits of our own (tools/gofix) for the Go errors that the question is about. Without
// a line the first error that has a fix counts.
func (c *lspCall) moduleFixes(ctx context.Context, about []change.Problem) []gofix.Fix {
	// gofix knows Go only, and its fixes are quick fixes: a request for another kind gets none of them.
	if filepath.Ext(c.path) != ".go" || c.p.Kind != "" && !strings.HasPrefix("quickfix", c.p.Kind) {
		return nil
	}
	line := c.p.Line
	for _, d := range about {
		if d.Severity != change.SeverityError {
			continue
		}
		if line == 0 || c.p.Line == 0 {
			line = d.Line
		}
		fixes, err := new(gofix.Finder).Find(ctx, c.path, line, c.writer.Present)
		if err != nil || len(fixes) > 0 || c.p.Line != 0 {
			return fixes // what cannot be found is not offered; the servers' own answers stand
		}
	}
	return nil
}

// applyFix proposes an edit of our own. The files must be as they were when it was computed; unlike a
// server's action it cannot be asked for again at another place.
func (c *lspCall) applyFix(ctx context.Context, f *gofix.Fix) (tools.Result, error) {
	var edits []lspbridge.FileEdit
	for _, path := range slices.Sorted(maps.Keys(f.Files)) {
		if now, _ := c.writer.Present(path); now != f.Before[path] {
			return tools.Result{}, &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s has changed since %q was offered; list the actions again", c.show(path), f.Title)}
		}
		edits = append(edits, lspbridge.FileEdit{Path: path, Kind: "edit", Old: f.Before[path], New: f.Files[path]})
	}
	return c.change(ctx, f.Title, func() ([]lspbridge.FileEdit, error) { return edits, nil })
}

// editProposals are a server's edits as whole texts, for Bridge.Check. A rename is a deletion and a new
// file.
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
