package terminal

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// outcome is what became of a change set.
type outcome struct {
	state change.State
	set   *change.Set
}

// count puts the outcome into a summary.
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
	if d := o.set.Verdict; d == nil || d.Certainty == change.Pending || d.Certainty == change.Unavailable {
		s.Unchecked++
	} else {
		s.Checked++
		introduced, fixed := d.Errors()
		s.Fixed += fixed
		s.Introduced += introduced
	}
}

// Result prints the last lines of a turn.
func (t *Terminal) Result(s Summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	t.newline()
	applied, refused := 0, 0
	seen := map[string]bool{}
	for _, c := range s.Changes {
		if c.State == string(change.Applied) {
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
	if s.LeftKnown {
		if len(s.Left) == 0 {
			parts = append(parts, t.paint(green, "no problems left"))
		} else {
			parts = append(parts, t.paint(yellow, textutil.Plural(len(s.Left), "problem")+" left"))
		}
	}
	if s.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", s.Cost))
	}
	if len(parts) > 0 {
		t.line("")
		t.line(t.paint(bold, "» ") + strings.Join(parts, " · "))
	}
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
	if refused > 0 && applied == 0 && t.Keys == nil && t.Approve == Ask {
		t.line(t.paint(dim, "nothing was applied: the changes need approval, but there is no terminal; --approve all applies them"))
	}
}

// unchecked says how much of what was applied nobody could judge.
func unchecked(s Summary) string {
	if s.Checked == 0 {
		return "not checked by a language server"
	}
	return textutil.Plural(s.Unchecked, "change") + " not checked"
}

// named reports whether the answer has just listed every problem that is left.
func named(s Summary) bool {
	for _, p := range s.Left {
		if !strings.Contains(s.Text, fmt.Sprintf("%s:%d", filepath.Base(p.Path), p.Line)) {
			return false
		}
	}
	return true
}

func (t *Terminal) left(problems []change.Problem) {
	for i, p := range problems {
		if i == 20 {
			t.line(t.paint(dim, fmt.Sprintf("  … and %d more", len(problems)-i)))
			break
		}
		t.line("  " + t.problem(p))
	}
}
