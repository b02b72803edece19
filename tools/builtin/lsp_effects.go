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

// The model waits for a list of quick fixes, so checking their effects is limited.
const (
	// The time for all checks together. Actions that are not checked by then are listed without an effect.
	effectBudget = 2 * time.Second
	// The number of actions that are checked. Each check costs as much as the check of a proposal.
	maxEffects = 8
)

// effect is how many errors an action would fix and introduce. Warnings and hints are not counted: in a file with errors they appear and
// disappear with the part that the analyser can read. The effect is in the metadata, for scripts and the built-in model.
type effect struct {
	Fixes      int  `json:"fixes"`          // errors that disappear
	Introduces int  `json:"introduces"`     // new errors
	Errors     int  `json:"errors"`         // the change of the number of errors; negative: fewer
	Stub       bool `json:"stub,omitempty"` // see makesStub
}

// effects checks each quick fix of a list like a proposal, in the servers' memory only. The result has one element for each
// action: nil for actions of other kinds and for those that could not be checked within the budget.
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
		// A pending verdict says nothing about the action, so it gives no effect. The servers have the real
		// text again when Check returns, so the next action is checked on the real text.
		if d := c.Bridge.Check(ctx, editProposals(edits)); d.Certainty == change.Fresh || d.Certainty == change.Partial {
			introduces, fixes := d.Errors()
			out[i] = &effect{Fixes: fixes, Introduces: introduces, Errors: introduces - fixes, Stub: makesStub(edits)}
		}
	}
	return out
}

// better orders actions by their effect: first those that fix the most errors, then those with an unknown effect, last those
// that introduce at least as many errors as they fix. The caller keeps the server's order among equals; servers
// list their preferred actions first.
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

// stubs are bodies that servers generate for missing functions: they compile, but fail when they run. Some entries are only
// the beginning of the text, because servers add different words after it.
var stubs = []string{`panic("unimplemented")`, `panic("not implemented`, "todo!()", "unimplemented!()", "raise NotImplementedError", `throw new Error("Method not implemented.")`, `throw new Error("Function not implemented.")`}

// makesStub reports whether an edit adds such a body. Such an effect is marked, because the number of errors falls although the code still
// does not work.
func makesStub(edits []lspbridge.FileEdit) bool {
	for _, e := range edits {
		for _, s := range stubs {
			// Count them, because the file may already contain such a body.
			if strings.Count(e.New, s) > strings.Count(e.Old, s) {
				return true
			}
		}
	}
	return false
}

// moduleFixes returns Pillion's own edits (package gofix) for the Go error at the line of the request. Without a line it
// returns those for the first error that has a fix.
func (c *lspCall) moduleFixes(ctx context.Context, about []change.Problem) []gofix.Fix {
	// gofix fixes only Go, and its fixes are quick fixes; a request for another kind of action must not get them.
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
			return fixes // an error of gofix is ignored: the list then has only the servers' actions
		}
	}
	return nil
}

// applyFix proposes one of Pillion's own edits. The files must have the text for which it was computed. A server's action could
// be requested again for the new text; this edit could not.
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

// editProposals converts a server's edits to whole texts for Bridge.Check. A rename becomes a deletion and a new file.
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
