package scan

import (
	"slices"
	"strings"
)

// report collects what the scan finds out: the calls, each text once, and the reasons why something is opaque.
type report struct {
	a     *Analysis      // what Analyze returns; filled in while the walk continues
	calls map[string]int // index in a.Calls by text
	why   []string       // the first reasons, each once
}

// maxReasons is how many reasons a person is told. The first ones explain the command; more would only repeat them.
const maxReasons = 3

// opaque notes that something cannot be determined.
func (r *report) opaque(why string) {
	r.a.Opaque = true
	if len(r.why) < maxReasons && !slices.Contains(r.why, why) {
		r.why = append(r.why, why)
	}
}

// addCall adds a call. Of two with the same text the weaker promises count: rules only see the text.
func (r *report) addCall(c Call) {
	if strings.TrimSpace(c.Text) == "" {
		c.Text = "''"
	}
	if c.Program == "" {
		c.Program, _, _ = strings.Cut(strings.TrimSpace(c.Text), " ")
	}
	if i, ok := r.calls[c.Text]; ok {
		have := &r.a.Calls[i]
		have.ReadOnly = have.ReadOnly && c.ReadOnly
		have.NoGrant = have.NoGrant || c.NoGrant
		have.Silent = have.Silent && c.Silent
		have.Complete = have.Complete && c.Complete
		have.Exact = have.Exact || c.Exact
		if c.Always == "" {
			have.Always = ""
		}
		return
	}
	r.calls[c.Text] = len(r.a.Calls)
	r.a.Calls = append(r.a.Calls, c)
}

// maxSalvaged is how much of a text that cannot be parsed is looked at, in bytes.
const maxSalvaged = 4096

// salvage guesses the calls in a text that cannot be parsed, so that rules that deny have something to match. The caller has
// made the command opaque. The cut at operators knows no quotes, so a call may be named that never runs: that can only deny more.
func (r *report) salvage(text string) {
	if len(text) > maxSalvaged {
		text = text[:maxSalvaged]
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n;|&(){}`", r) }) {
		if part = strings.TrimSpace(part); part != "" {
			r.addCall(Call{Text: part, Program: strings.Fields(part)[0], NoGrant: true})
		}
	}
}

// maxFound is how many hidden files are listed. One is enough to ask; a person reads no more than these.
const maxFound = 50

// found notes a hidden file that the command may print without naming it.
func (r *report) found(path string) {
	if len(r.a.Found) < maxFound && !slices.Contains(r.a.Found, path) {
		r.a.Found = append(r.a.Found, path)
	}
}
