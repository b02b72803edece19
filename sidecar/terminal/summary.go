package terminal

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Summary is what a turn did, for its last lines and for --json. The names in JSON are read by scripts and must stay.
type Summary struct {
	Stop   agent.StopReason `json:"stop"`
	Error  string           `json:"error,omitempty"`
	Undone bool             `json:"undone,omitempty"` // the model itself says that it could do nothing of what was asked
	// Text is the answer after the last tool call; what the model said before a call is not in it.
	Text    string   `json:"text"`
	Changes []Change `json:"changes"`
	// Fixed and Introduced count errors only, of the changes in Checked.
	Fixed      int              `json:"fixed"`
	Introduced int              `json:"introduced"`
	Checked    int              `json:"checked"`   // applied changes whose effect on the problems is known
	Unchecked  int              `json:"unchecked"` // applied changes no language server could judge
	Left       []change.Problem `json:"left"`
	LeftKnown  bool             `json:"leftKnown"` // false: no language server could say
	// NotChecked is what Left and LeftKnown say nothing of: "12 .py files", "typescript checked 200 of 300 files".
	NotChecked []string `json:"notChecked,omitempty"`
	// Checks are the commands that were run on the applied changes, such as their tests.
	Checks    []change.Check `json:"checks,omitempty"`
	Usage     any            `json:"usage,omitempty"`
	Cost      float64        `json:"cost,omitempty"`
	Steps     int            `json:"steps"`
	SessionID string         `json:"sessionID"`
}

// Change is one file a turn touched or wanted to.
type Change struct {
	Path      string `json:"path"`
	State     string `json:"state"` // applied, rejected, failed
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

// tally is what has been seen of a turn. The sheet's mu guards it.
type tally struct {
	quit     bool                       // the user answered a question with q
	stopping string                     // the call after which the turn is to end
	shown    map[string]bool            // change sets whose diff was printed, by id
	asked    map[string]time.Duration   // by call: how long the user took to answer
	asking   string                     // the change set whose question is open, by id
	verdicts map[string]*change.Verdict // on proposals, as they were last heard, by id
	changes  []outcome                  // in the order they came
	summary  Summary                    // what the end of the turn said
	text     strings.Builder            // the answer after the last tool call
	spent    provider.Usage             // of the steps that have ended
	cost     float64                    // of these, in US dollars
}

// newTally has seen nothing.
func newTally() *tally {
	return &tally{shown: map[string]bool{}, asked: map[string]time.Duration{}, verdicts: map[string]*change.Verdict{}}
}

// begin forgets the turn before. Diffs that were shown stay known: a change may be reported again after its turn.
func (t *tally) begin() {
	shown := t.shown
	*t = tally{shown: shown, asked: map[string]time.Duration{}, verdicts: map[string]*change.Verdict{}}
}

// changed notes a change set. A set is reported again when its problems are known; the last report counts, at the
// place of the first one.
func (t *tally) changed(o outcome) {
	if i := slices.IndexFunc(t.changes, func(have outcome) bool { return have.set.ID == o.set.ID }); i >= 0 {
		t.changes[i] = o
	} else {
		t.changes = append(t.changes, o)
	}
}

// Summary is the turn's, as far as it has been seen.
func (t *tally) Summary() Summary {
	s := t.summary
	if t.quit && s.Stop == agent.TurnEnd { // a rejection ends a turn like any other; the user meant to stop
		s.Stop = agent.TurnCancelled
	}
	s.Text = t.text.String()
	s.Changes, s.Left = []Change{}, []change.Problem{} // lists, never null, for those who read JSON
	for _, o := range t.changes {
		o.count(&s)
	}
	return s
}

// outcome is what became of a change set.
type outcome struct {
	state change.State
	set   *change.Set
}

// count puts the outcome into a summary. A change whose verdict is missing is counted apart: adding it to the others
// would say that it introduces nothing.
func (o outcome) count(s *Summary) {
	for _, f := range o.set.Files {
		c := Change{Path: f.Path, State: string(o.state)}
		for _, h := range f.Hunks {
			c.Additions += h.NewLines
			c.Deletions += h.OldLines
		}
		s.Changes = append(s.Changes, c)
	}
	if o.state != change.Applied {
		return
	}
	if o.set.Evidence != nil {
		s.Checks = append(s.Checks, o.set.Evidence.Checks...)
	}
	if d := o.set.Verdict; d == nil || d.Certainty == change.Pending || d.Certainty == change.Unavailable {
		s.Unchecked++
	} else {
		s.Checked++
		introduced, fixed := d.Errors()
		s.Fixed += fixed
		s.Introduced += introduced
	}
}

// result prints the last lines of a turn. unasked: changes needed approval, and no user could give it.
func (t *sheet) result(s Summary, unasked bool) {
	t.endLine()
	applied, refused := 0, 0
	seen := map[string]bool{}
	for _, c := range s.Changes {
		if c.State == string(change.Applied) {
			// A file that was changed twice is one changed file.
			if !seen[c.Path] {
				applied++
			}
			seen[c.Path] = true
		} else {
			refused++
		}
	}
	parts := []string{}
	if applied > 0 {
		effect := ""
		if s.Checked > 0 {
			effect = fmt.Sprintf(", fixes %s, introduces %d", textutil.Plural(s.Fixed, "error"), s.Introduced)
		}
		if s.Unchecked > 0 {
			effect += ", " + unchecked(s)
		}
		parts = append(parts, t.paint(green, textutil.Plural(applied, "file")+" changed")+effect)
	}
	if refused > 0 {
		parts = append(parts, textutil.Plural(refused, "change")+" not applied")
	}
	parts = append(parts, t.checks(s.Checks)...)
	// The servers are named: they know nothing of failed tests.
	if s.LeftKnown {
		said, colour := "language servers: no problems left", green
		if len(s.Left) > 0 {
			said, colour = "language servers: "+textutil.Plural(len(s.Left), "problem")+" left", yellow
		}
		if len(s.NotChecked) > 0 {
			said += " in what they checked"
		}
		parts = append(parts, t.paint(colour, said))
		if len(s.NotChecked) > 0 {
			parts = append(parts, "not checked: "+strings.Join(s.NotChecked, ", "))
		}
	}
	if s.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", s.Cost))
	}
	if len(parts) > 0 {
		t.line("")
		t.line(t.paint(bold, "» ") + strings.Join(parts, " · "))
	}
	// An answer that names every problem that is left needs no list of them below it.
	if !named(s) {
		t.left(s.Left)
	}
	switch s.Stop {
	case agent.TurnCancelled:
		t.line(t.paint(yellow, "stopped"))
	case agent.TurnError:
		t.line(t.paint(red, "error: ") + Clean(s.Error))
	case agent.TurnMaxSteps:
		t.line(t.paint(yellow, "stopped at the step limit; run pillion with --continue to resume"))
	case agent.TurnRefusal: // its notice has said so
	case agent.TurnMaxTokens:
		t.line(t.paint(yellow, "the answer was cut at the model's limit; run pillion with --continue to resume"))
	}
	// Only where no user could answer: a person who has just said no needs no explanation.
	if refused > 0 && applied == 0 && unasked {
		t.line(t.paint(dim, "nothing was applied: the changes need approval, but there is no terminal; --approve all applies them"))
	}
}

// checks words the results of commands that were run on the applied changes: all tests together, and each command without tests.
func (t *sheet) checks(list []change.Check) (out []string) {
	var all change.Tally
	stale := false
	for i := range list {
		c := &list[i]
		switch n := len(c.Tests); {
		case !c.Ran():
			out = append(out, t.paint(yellow, c.Command+" not run"))
		case n > 0 && (c.Status == change.EvidencePassed || c.Count(change.EvidenceFailed) > 0):
			all.Add(c)
			stale = stale || c.Stale
		case c.Status == change.EvidenceFailed && c.Before == change.EvidenceFailed:
			out = append(out, t.paint(yellow, c.Command+" failed as before the change"))
		case c.Status == change.EvidenceFailed:
			out = append(out, t.paint(red, c.Command+" failed"))
		default:
			out = append(out, t.paint(green, c.Command+" passed")+early(c.Stale))
		}
	}
	switch words := all.Failures(); {
	case words != "" && all.Failed+all.Whole == all.Old+all.WholeOld:
		out = append(out, t.paint(yellow, words)+early(stale))
	case words != "":
		out = append(out, t.paint(red, words)+early(stale))
	case all.Tests > 0:
		out = append(out, t.paint(green, textutil.Plural(all.Tests, "test")+" passed")+early(stale))
	}
	return out
}

// early says of a check that it ran on other texts than those that were applied.
func early(stale bool) string {
	if stale {
		return " before the last change"
	}
	return ""
}

// unchecked words the number of applied changes that no language server could judge.
func unchecked(s Summary) string {
	if s.Checked == 0 {
		return "not checked by a language server"
	}
	return textutil.Plural(s.Unchecked, "change") + " not checked"
}

// named reports whether the answer has just listed every problem that is left. The name of the file is compared
// without its folder, because the answer may name it relative to another folder.
func named(s Summary) bool {
	for _, p := range s.Left {
		if !strings.Contains(s.Text, fmt.Sprintf("%s:%d", filepath.Base(p.Path), p.Line)) {
			return false
		}
	}
	return true
}

// left lists the problems that are left, at most 20 of them.
func (t *sheet) left(problems []change.Problem) {
	for i, p := range problems {
		if i == 20 {
			t.line(t.paint(dim, fmt.Sprintf("  … and %d more", len(problems)-i)))
			break
		}
		t.line("  " + t.problem(p))
	}
}
