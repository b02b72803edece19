package builtin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

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
	Stub       bool `json:"stub,omitempty"` // see makesStub and declares
	Discards   bool `json:"discards,omitempty"`
}

// effects checks each quick fix of a list like a proposal, in the servers' memory only. The result has one element for each
// action: nil for actions of other kinds and for those that could not be checked within the budget. name is the word that the actions are
// about, "" for none.
func (c *lspCall) effects(ctx context.Context, actions []lspbridge.Action, name string) []*effect {
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
			out[i] = &effect{Fixes: fixes, Introduces: introduces, Errors: introduces - fixes, Stub: makesStub(edits) || declares(edits, name), Discards: discards(edits)}
		}
	}
	return out
}

// better orders actions by their effect: first those that fix the most errors, then those with an unknown effect, last those
// that introduce at least as many errors as they fix. Among equals those come last that discard a value. The caller keeps the server's order
// among what is equal then; servers list their preferred actions first.
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
	discards := func(e *effect) int {
		if e != nil && e.Discards {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(discards(a), discards(b)))
}

// stubs are bodies that servers generate for missing functions: they compile, but fail when they run. Some entries are only
// the beginning of the text, because servers add different words after it. The end of a function that gofix cannot know is one too.
var stubs = []string{`panic("unimplemented")`, `panic("not implemented`, "todo!()", "unimplemented!()", "raise NotImplementedError", gofix.NoResult + `")`, `throw new Error("Method not implemented.")`, `throw new Error("Function not implemented.")`}

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

// discards reports whether an edit drops a value: it assigns something to blank identifiers alone, or removes the declaration of a variable, as
// gopls's "Remove variable" does. That silences the error about x := append(x, y) in an inner block, and the value is lost as before.
func discards(edits []lspbridge.FileEdit) bool {
	return slices.ContainsFunc(edits, func(e lspbridge.FileEdit) bool {
		if filepath.Ext(e.Path) != ".go" {
			return false
		}
		blank := len(blankAssignment().FindAllString(e.New, -1)) > len(blankAssignment().FindAllString(e.Old, -1))
		return blank || declarationGone(e.Old, e.New)
	})
}

// declarationGone reports whether a line of Go that declares variables by := has no successor that assigns to one of them.
func declarationGone(old, new string) bool {
	assigned := map[string]bool{}
	for _, line := range addedTo(old, new) {
		if left, _, assigns := strings.Cut(line, "="); assigns {
			for _, name := range strings.FieldsFunc(left, notInWord) {
				assigned[name] = name != "_"
			}
		}
	}
	return slices.ContainsFunc(addedTo(new, old), func(line string) bool {
		left, _, declares := strings.Cut(line, ":=")
		return declares && !slices.ContainsFunc(strings.FieldsFunc(left, notInWord), func(name string) bool { return assigned[name] })
	})
}

var blankAssignment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*_(?:\s*,\s*_)*\s*=`) })

// wordIn is the text of a range if it is one word, else "".
func wordIn(text string, r lspbridge.Range) string {
	from, to := lspbridge.PositionOffset(text, r.Start), lspbridge.PositionOffset(text, r.End)
	if word := text[from:max(from, to)]; !strings.ContainsFunc(word, notInWord) {
		return word
	}
	return ""
}

func notInWord(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// declares reports whether edits add lines that declare an unknown name with nothing in it: "prefx := \"\"" beside the use of a misspelt
// prefix. It compiles like a stub, and is as empty. An import has the name too, but what it names exists.
func declares(edits []lspbridge.FileEdit, name string) bool {
	if name == "" {
		return false
	}
	has := func(line string) bool { return slices.Contains(strings.FieldsFunc(line, notInWord), name) }
	for _, e := range edits {
		for _, line := range addedLines(e.Old, e.New) {
			if has(line) && !imports(line) {
				return true
			}
		}
	}
	return false
}

// imports reports whether a line makes known what another file declares. A line of Go's import block is a path in quotation marks, with a
// name before it or without.
func imports(line string) bool {
	line = strings.TrimSpace(line)
	first, _, _ := strings.Cut(line, " ")
	switch first {
	case "import", "from", "use", "using", "#include", "require", "export":
		return true
	}
	return strings.Contains(line, "require(") || strings.HasSuffix(line, `"`) && !strings.ContainsAny(line, "=(")
}

// addedLines are the lines of new that old does not have, and of equal lines those that old has fewer of. A line that only changed is not
// added: the two texts then have as many lines.
func addedLines(old, new string) []string {
	out := addedTo(old, new)
	if len(out) <= len(addedTo(new, old)) {
		return nil
	}
	return out
}

// addedTo are the lines of new that old does not have, and of equal lines those that old has fewer of.
func addedTo(old, new string) (out []string) {
	had := map[string]int{}
	for line := range strings.Lines(old) {
		had[line]++
	}
	for line := range strings.Lines(new) {
		if had[line]--; had[line] < 0 {
			out = append(out, line)
		}
	}
	return out
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
	for _, path := range slices.Sorted(maps.Keys(f.Files)) {
		if now, _ := c.writer.Present(path); now != f.Before[path] {
			return tools.Result{}, &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s has changed since %q was offered; list the actions again", c.show(path), f.Title)}
		}
	}
	return c.change(ctx, f.Title, func() ([]lspbridge.FileEdit, error) { return fixEdits(f), nil })
}

// fixEdits are a fix's edits in the form of a server's.
func fixEdits(f *gofix.Fix) (edits []lspbridge.FileEdit) {
	for _, path := range slices.Sorted(maps.Keys(f.Files)) {
		edits = append(edits, lspbridge.FileEdit{Path: path, Kind: "edit", Old: f.Before[path], New: f.Files[path]})
	}
	return edits
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
