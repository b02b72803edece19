package builtin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/symbol"
	"github.com/pillion-dev/pillion/tools/textutil"
)

const (
	checkBudget  = 1500 * time.Millisecond // how long the approval request waits for a verdict; a person should not wait for a server
	checkEarly   = 60 * time.Millisecond   // when the card says that a server is loading, and what parsing tells
	checkTyped   = time.Second             // when types are checked without a server, if one is loading still
	checkFinal   = 2 * time.Minute         // the same where the verdict is awaited (VerdictAwaited, VerdictDecides)
	checkLonger  = 30 * time.Second        // how long one check may take; a late verdict updates the card
	checkAgain   = time.Second             // pause before a pending check is repeated; it doubles up to checkLonger
	settleBudget = 3 * time.Second         // how long the model's result waits for diagnostics of what was written

	maxProblems   = 20 // errors shown of one file; OpenCode's figure
	maxOtherFiles = 5  // other files shown; OpenCode's figure
)

// checker asks the language servers for the verdict on a change. Without servers there is none.
type checker struct {
	Bridge Bridge // nil: no language servers
	mode   VerdictMode
	budget time.Duration // how long a question waits for its verdict; 0 is checkBudget. VerdictShown only

	present func(path string) (string, bool) // a file as the person sees it; nil: types are not checked without a server

	// Of the change that is checked.
	broken *brokenSearch            // for syntax errors that it introduces, by parsing alone
	rel    func(path string) string // a path as a person reads it
}

// VerdictMode says how an approval request and the verdict on the change depend on each other.
type VerdictMode int

const (
	// VerdictShown: a person reads it beside the diff; the question does not wait for slow servers, and an edit that a rule
	// allows is not checked before it is written.
	VerdictShown VerdictMode = iota
	// VerdictAwaited: the question waits until the verdict is final, because no card would show a later one (a terminal, a
	// generic client).
	VerdictAwaited
	// VerdictDecides: the verdict is the answer. Edits that a rule allows are asked as well.
	VerdictDecides
)

// check finds out what problems the proposal would introduce and fix; the set it returns carries the
// verdict. It returns after the budget at the latest. A later answer updates the card through show, and
// a pending check is repeated for as long as the question is open. stop ends that and waits until the
// servers have their documents back. Sets that were shown are never written to, because editors may be
// reading them.
func (c checker) check(ctx context.Context, set *change.Set, show func(*change.Set)) (checked *change.Set, stop func()) {
	if c.Bridge == nil {
		return set, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	files, proposed := proposals(set), set
	answers, asked := c.askServers(ctx, files)
	typed := c.checkTypes(ctx, files, asked)
	// What follows is owned by this function, then by the goroutine that it leaves behind: never by both.
	var shown *change.Verdict // on the card
	types, waits := "", ""    // what types alone tell, and why a server had no answer the last time
	parsed := sync.OnceValue(func() string { return symbol.Syntax(c.revisions(proposed)) })
	because := func(why string) *change.Verdict {
		said := types
		if said == "" {
			said = parsed()
		}
		return &change.Verdict{Certainty: change.Pending, Reason: strings.Trim(why+"; "+said, "; ")}
	}
	pending := func() *change.Verdict {
		return because(cmp.Or(c.busy(files), waits, "language servers are still checking"))
	}
	verdict := func(d *change.Verdict) *change.Verdict {
		if d.Certainty != change.Pending {
			return d
		}
		waits = d.Reason
		return because(waits)
	}
	budget := cmp.Or(c.budget, checkBudget)
	if c.mode != VerdictShown {
		budget = checkFinal
	}
	timer := time.NewTimer(budget)
	defer timer.Stop()
	early := time.NewTimer(checkEarly)
	defer early.Stop()
	parsedAll, said := c.broken.done, false
	for waiting := true; waiting; {
		select {
		case d := <-answers:
			d = verdict(d)
			if c.atOnce() || d.Certainty != change.Pending {
				shown, waiting = d, false
			}
		case <-parsedAll:
			// A syntax error needs no server, so the card has it before any of them can answer.
			if parsedAll = nil; len(c.broken.wait()) > 0 && !said {
				show(set.WithVerdict(pending()))
				said = true
			}
		case <-early.C:
			// A server that is loading will not answer soon; one that is only checking mostly does, and needs no word before.
			if !said && c.busy(files) != "" {
				show(set.WithVerdict(pending()))
				said = true
			}
		case types = <-typed:
			show(set.WithVerdict(pending()))
		case <-timer.C:
			shown, waiting = pending(), false
		case <-ctx.Done():
			waiting = false
		}
	}
	if shown != nil && ctx.Err() == nil {
		set = set.WithVerdict(shown)
		show(set)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for shown != nil && shown.Certainty == change.Pending {
			var d *change.Verdict
			select {
			case d = <-answers:
				d = verdict(d)
			case types = <-typed:
				d = pending()
			case <-ctx.Done():
				return
			}
			if ctx.Err() == nil && (d.Certainty != change.Pending || d.Reason != shown.Reason) {
				show(proposed.WithVerdict(d))
				shown = d
			}
		}
	}()
	return set, func() { cancel(); <-asked; <-ended }
}

// askServers asks until the verdict is final or ctx ends; asked is closed then.
func (c checker) askServers(ctx context.Context, files []lspbridge.Proposal) (answers chan *change.Verdict, asked chan struct{}) {
	answers, asked = make(chan *change.Verdict), make(chan struct{})
	go func() {
		defer close(asked)
		for again := checkAgain; ; again = min(2*again, checkLonger) {
			d := c.checkOnce(ctx, files)
			select {
			case answers <- d:
			case <-ctx.Done():
				return
			}
			if d.Certainty != change.Pending {
				return
			}
			select {
			case <-time.After(again):
			case <-ctx.Done():
				return
			}
		}
	}()
	return answers, asked
}

// atOnce reports whether the approval request need not wait for a pending verdict, because the card is updated when the final one comes.
func (c checker) atOnce() bool { return c.mode == VerdictShown && c.budget == 0 }

// busy says what the servers are doing while no answer has come ("gopls is still busy: loading the workspace"): a reason that a person can
// judge, not only "pending". It is "" when they do not say.
func (c checker) busy(files []lspbridge.Proposal) string {
	if b, ok := c.Bridge.(interface {
		Busy(files []lspbridge.Proposal) string
	}); ok {
		return b.Busy(files)
	}
	return ""
}

// revisions are the changed texts for symbol.Syntax; what has no text is given no name, so that it counts as not parsed.
func (c checker) revisions(set *change.Set) (out []symbol.Revision) {
	for _, f := range set.Files {
		switch path := cmp.Or(f.NewPath, f.Path); {
		case f.Kind == change.Delete:
		case f.Links() || f.Binary:
			out = append(out, symbol.Revision{})
		default:
			out = append(out, symbol.Revision{Path: path, Name: c.rel(path), Old: f.Old, New: f.New})
		}
	}
	return out
}

// checkOnce asks the servers and waits for them, checkLonger at most. The verdict says why when that was not enough; it is never nil.
func (c checker) checkOnce(ctx context.Context, files []lspbridge.Proposal) *change.Verdict {
	ctx, cancel := context.WithTimeout(ctx, checkLonger)
	defer cancel()
	delta := c.Bridge.Check(ctx, files)
	return &delta.Verdict
}

// waitForDiagnostics tells the servers what was written and waits at most settleBudget for its diagnostics, so that the model can fix an
// error in its next step. A later answer is not lost: the editor shows it, and the next check includes it.
func (c checker) waitForDiagnostics(ctx context.Context, set *change.Set) *lspbridge.Delta {
	if c.Bridge == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleBudget)
	defer cancel()
	d := c.Bridge.Changed(ctx, proposals(set))
	return &d
}

// proposals is a set in the form that Bridge takes. A rename is two proposals: the new file and the deletion of the old one.
func proposals(set *change.Set) []lspbridge.Proposal {
	var out []lspbridge.Proposal
	for _, f := range set.Files {
		// The deletion of a binary counts: other files may name it.
		if f.Links() || f.Binary && f.Kind != change.Delete {
			continue // no text that a server could read
		}
		switch f.Kind {
		case change.Delete:
			out = append(out, lspbridge.Proposal{Path: f.Path, Delete: true})
		case change.Rename:
			out = append(out, lspbridge.Proposal{Path: f.NewPath, Text: f.New, From: f.Path}, lspbridge.Proposal{Path: f.Path, Delete: true})
		default:
			out = append(out, lspbridge.Proposal{Path: f.Path, Text: f.New, Old: f.Old})
		}
	}
	return out
}

// problemText tells the model which errors a change introduced, those of its own files first, and how
// certain that is. It must never read like "no errors" unless the verdict is fresh: a model stops
// looking once it reads that.
func problemText(d *lspbridge.Delta, set *change.Set) string {
	if d == nil {
		return ""
	}
	own := map[string]bool{}
	for _, p := range set.Paths() {
		own[p] = true
	}
	// order keeps the files in the order of the problems; a map alone would give another text each time.
	byFile := map[string][]change.Problem{}
	var order []string
	for _, x := range d.Introduced {
		if !x.IsError() {
			continue
		}
		if byFile[x.Path] == nil {
			order = append(order, x.Path)
		}
		byFile[x.Path] = append(byFile[x.Path], x)
	}
	var sb strings.Builder
	others := 0
	for _, mine := range []bool{true, false} {
		for _, path := range order {
			if own[path] != mine {
				continue
			}
			// OpenCode's words, on which models are trained.
			head := "LSP errors detected in this file, please fix:"
			if len(own) > 1 {
				head = "LSP errors detected in " + path + ", please fix:"
			}
			if !mine {
				if others++; others > maxOtherFiles {
					continue
				}
				head = "LSP errors detected in other files:"
			}
			fmt.Fprintf(&sb, "\n\n%s\n<diagnostics file=%q>\n", head, path)
			list := byFile[path]
			for _, x := range list[:min(len(list), maxProblems)] {
				fmt.Fprintf(&sb, "ERROR [%d:%d] %s\n", x.Line, x.Column, x.Message)
			}
			if n := len(list) - maxProblems; n > 0 {
				fmt.Fprintf(&sb, "... and %d more\n", n)
			}
			sb.WriteString("</diagnostics>")
		}
	}
	if n := others - maxOtherFiles; n > 0 {
		fmt.Fprintf(&sb, "\n\n... and new errors in %d more files", n)
	}
	reason := ""
	if d.Reason != "" {
		reason = " (" + d.Reason + ")"
	}
	switch {
	case d.Certainty == change.Pending:
		sb.WriteString("\n\nThe language servers have not checked this yet" + reason + "; do not assume it has no errors.")
	case d.Certainty == change.Partial:
		sb.WriteString("\n\nThe language servers checked this only in part" + reason + ".")
	case d.Certainty == change.Unavailable && d.Reason != "" && !d.Unserved:
		sb.WriteString("\n\nNot checked by a language server" + reason + ".")
	case d.Certainty == change.Fresh && len(d.Fixed) > 0:
		if _, fixed := d.Errors(); fixed > 0 {
			fmt.Fprintf(&sb, "\n\nThis fixed %s.", textutil.Plural(fixed, "error"))
		}
	}
	return sb.String()
}
