package replay

import (
	"math/rand/v2"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/patch"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// Step is one edit of several in a file.
type Step struct{ Old, New string }

// ChainKinds are cases of several edits: each on the result of those before it (multiedit), one of them in the text that another has made,
// and all of them hunks of one patch, which quotes the file as it was.
var ChainKinds = []string{"several edits", "several edits, one in another's result", "several hunks"}

// misquotes are the damages of StoryKinds that leave the file as it is.
var misquotes = []string{"as it is", "lines left out", "shifted", "another unit", "first line bare", "deeper from the second line", "curled in places",
	"blanks put behind all", "escaped", "numbered", "line stuttered", "words misremembered", "elided", "blank lines lost"}

// Chains makes cases of two to four edits in one file, of which each but the first is damaged with one chance in two.
func Chains(r *rand.Rand, name, before, after string, most int) (out []Case) {
	before, after = strings.ReplaceAll(before, "\r\n", "\n"), strings.ReplaceAll(after, "\r\n", "\n")
	if !strings.HasSuffix(before, "\n") || strings.Contains(before, "\r") || strings.Count(before, "\n") < 30 {
		return nil
	}
	for try := 0; len(out) < most && try < most*8; try++ {
		if c, ok := chain(r, ChainKinds[r.IntN(len(ChainKinds))], before, after); ok {
			c.File = name
			out = append(out, c)
		}
	}
	return out
}

func chain(r *rand.Rand, kind, before, after string) (Case, bool) {
	c := Case{Kind: kind, Whole: kind, Text: before}
	now := before
	var last *story // the edit before
	var taken [][2]int
	for k := range 2 + r.IntN(3) {
		a := lines(now)
		var s *story
		if edits := diff.Strings(a, lines(after)); len(edits) > 0 && after != "" && r.IntN(2) == 0 {
			s = fromHistory(r, a, lines(after), edits)
		} else {
			s = invented(r, a)
		}
		if kind == ChainKinds[1] && k > 0 { // in what the last edit made
			s = invented(r, a[:min(len(a), last.at+last.n+8)])
			if s != nil && s.at+s.n <= last.at {
				return c, false
			}
		}
		if s == nil {
			return c, false
		}
		quote := strings.Join(a[s.at:s.at+s.n], "\n")
		if blank(quote) || strings.Count(now, quote) != 1 {
			return c, false
		}
		if kind != ChainKinds[1] {
			// Edits that do not touch each other, in the order of the file: the lines after the last one are those of the file as it was.
			if k > 0 && s.at < taken[k-1][1]+1 {
				return c, false
			}
		}
		if r.IntN(2) == 0 {
			how := misquotes[r.IntN(len(misquotes))]
			if !s.damage(how) {
				return c, false
			}
			c.Whole += " + " + how
		}
		one := s.build()
		if one.Text != now || one.Old == one.New || one.Want == one.Text || strings.TrimSpace(one.Old) == "" || one.elsewhere() || len(one.Also) > 0 {
			return c, false
		}
		c.Steps = append(c.Steps, Step{one.Old, one.New})
		taken = append(taken, [2]int{s.at, s.at + strings.Count(one.Want, "\n") - strings.Count(now, "\n") + s.n})
		now, last = one.Want, s
	}
	c.Want = now
	return c, true
}

// inTurn applies a case's edits one after the other, each to the result of the last, as multiedit does: one that fails makes all fail.
func inTurn(c Case, one func(Case) (string, bool)) (string, bool) {
	if len(c.Steps) == 0 {
		return one(c)
	}
	for _, s := range c.Steps {
		text, ok := one(Case{File: c.File, Text: c.Text, Old: s.Old, New: s.New})
		if !ok {
			return "", false
		}
		c.Text = text
	}
	return c.Text, true
}

// applyHunks applies all edits of a case as hunks of one patch.
func applyHunks(c Case) (string, bool) {
	if len(c.Steps) > 0 && c.Kind != ChainKinds[2] {
		return inTurn(c, applyHunks)
	}
	if c.All { // a patch has no such thing
		return "", false
	}
	steps := c.Steps
	if len(steps) == 0 {
		steps = []Step{{c.Old, c.New}}
	}
	p, err := patch.Parse(envelope(steps))
	if err != nil {
		return "", false
	}
	p.Literals = func(_, text string) ([][2]int, bool) { return symbol.LongLiterals(c.File, text) }
	changes, err := p.Apply(func(string) (string, bool, error) { return c.Text, true, nil })
	if err != nil || len(changes) != 1 {
		return "", false
	}
	for _, l := range changes[0].Loose { // as the tool does
		if _, broken := symbol.Breaks(c.File, c.Text, changes[0].New); l.Reworded && broken {
			return "", false
		}
	}
	return changes[0].New, true
}
