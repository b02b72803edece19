package scan

import (
	"slices"
	"strings"
)

// report collects the calls, each text once, and the reasons why the command is opaque.
type report struct {
	a     *Analysis      // what Analyze will return; filled in during the walk
	calls map[string]int // index in a.Calls by text
	why   []string       // the first reasons, each once
	other bool           // the command is opaque for a reason that no sandbox bounds
}

// maxReasons is how many reasons a person is shown. Further ones rarely add anything.
const maxReasons = 3

// opaque makes the command opaque. why is for the person: "it …", a clause about the command.
func (r *report) opaque(why string) {
	r.a.Opaque, r.other, r.a.Bounded = true, true, false
	r.reason(why)
}

// opaqueBounded makes the command opaque for a reason that a sandbox bounds. Only where there is no other one is Analysis.Bounded set.
func (r *report) opaqueBounded(why string) {
	r.a.Opaque, r.a.Bounded = true, !r.other
	r.reason(why)
}

// reason adds a reason for the person.
func (r *report) reason(why string) {
	if len(r.why) < maxReasons && !slices.Contains(r.why, why) {
		r.why = append(r.why, why)
	}
}

// addCall adds a call to the list. Rules only see the text, so calls with the same text are one entry, which is ReadOnly,
// Silent or Complete only if all of them are, and NoGrant or Exact if any of them is.
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

// maxSalvaged is how much salvage reads of a text that cannot be parsed, in bytes.
const maxSalvaged = 4096

// salvage guesses the calls in a text that cannot be parsed, so that rules that deny have something to match. It splits at
// operators and ignores quotes, so it may list calls that never run; that can only deny more. The caller must make the command
// opaque.
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

// maxFound is how many hidden files are listed. One is enough to need approval; more than 50 would not be read.
const maxFound = 50

// found notes a hidden file that the command may print without naming it.
func (r *report) found(path string) {
	if len(r.a.Found) < maxFound && !slices.Contains(r.a.Found, path) {
		r.a.Found = append(r.a.Found, path)
	}
}
