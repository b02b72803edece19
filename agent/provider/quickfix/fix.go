package quickfix

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// maxRounds bounds the quick fixes of one turn; each is a step of the loop with its own diagnosis.
const maxRounds = 300

// fix works through the errors: organise imports where imports are the trouble, then one quick fix after the other,
// each judged by what it does to the problems before it is proposed.
func fix(w *walk, where string) {
	d := diagnose(w, where)
	if !d.ok {
		return
	}
	start := d.errors()
	if len(start) == 0 {
		w.say("There are no errors%s%s.", in(where), d.asFarAs())
		if n := len(d.problems); n > 0 {
			w.say(" %s of lesser weight %s left as they are; `explain problems` lists them.", plural(n, "problem"), isAre(n))
		}
		return
	}
	w.say("Found %s in %s.\n\n", plural(len(start), "error"), plural(len(byFile(start)), "file"))
	f := fixer{walk: w, where: where, why: map[string]string{}, tried: map[string]bool{}, organised: map[string]bool{}}
	current := start
	for round := 0; round < maxRounds; round++ {
		p, ok := f.next(current)
		if !ok {
			break
		}
		if !f.attempt(p) {
			continue
		}
		if d = diagnose(w, where); !d.ok {
			return
		}
		current = d.errors()
	}
	f.report(start, current, d.asFarAs())
}

type fixer struct {
	*walk
	where     string
	why       map[string]string // problem → why it is left
	tried     map[string]bool   // problem + action
	organised map[string]bool   // files whose imports were organised
	stubs     []string          // what was created and panics until it is written
	applied   int
	refused   int
}

// next is the first problem that is not given up. Missing declarations come before the uses that depend on them
// only by luck, so the order is the server's: file, then line.
func (f *fixer) next(current []problem) (problem, bool) {
	for _, p := range current {
		if _, given := f.why[p.key()]; !given {
			return p, true
		}
	}
	return problem{}, false
}

// attempt tries one thing for p and reports whether something may have changed.
func (f *fixer) attempt(p problem) bool {
	if aboutImports(p.message) && !f.organised[p.path] {
		f.organised[p.path] = true
		r := f.patiently(map[string]any{"operation": "organizeImports", "filePath": p.path})
		if !r.failed && changed(r.text) {
			f.applied++
			return true
		}
		if r.failed && refused(r.text) {
			f.refused++
			f.why[p.key()] = notAccepted(r.text, "the change of its imports")
			return false
		}
	}
	a, ok := f.ask(p, p)
	if !ok && !f.triedAny(p) {
		// An analyser may report the same trouble a few columns on, and the fix may hang there; servers run analysers
		// on open files only, so the whole project's list does not show it.
		if near := diagnose(f.walk, p.path); near.ok {
			for _, q := range near.problems {
				if !ok && q.line == p.line && q.column != p.column {
					a, ok = f.ask(p, q)
				}
			}
		}
	}
	if !ok {
		return false
	}
	delete(f.why, p.key()) // what another place said
	f.tried[p.key()+"\x00"+a.title] = true
	r := f.call("lsp", map[string]any{"operation": "codeActions", "filePath": p.path, "apply": a.id})
	switch {
	case r.failed && refused(r.text):
		f.refused++
		f.why[p.key()] = notAccepted(r.text, strconv.Quote(a.title))
		return false
	case r.failed:
		f.why[p.key()] = fmt.Sprintf("%q failed: %s", a.title, firstLine(r.text))
		return false
	}
	f.applied++
	if makesStub(a.title) {
		f.stubs = append(f.stubs, fmt.Sprintf("%s (%s)", a.title, p.path))
	}
	return true
}

// notAccepted tells a person's no from a run in which nobody could be asked.
func notAccepted(text, what string) string {
	if strings.Contains(text, "nobody can be asked") {
		return what + " was proposed and not applied: nobody could be asked"
	}
	return "you did not accept " + what
}

// ask lists what is offered for p at a place and chooses.
func (f *fixer) ask(p, at problem) (action, bool) {
	r := f.patiently(map[string]any{"operation": "codeActions", "filePath": at.path, "line": at.line, "character": at.column})
	if r.failed {
		f.why[p.key()] = "the language server could not say what would help: " + firstLine(r.text)
		return action{}, false
	}
	return f.choose(p, parseActions(r.text))
}

// patiently asks once more when the server had not yet read the project: what it would say then is worth the wait. It
// is only once, since a third call of the same kind counts as a loop.
func (f *fixer) patiently(question map[string]any) result {
	r := f.call("lsp", question)
	if r.failed && busy(r.text) {
		r = f.call("lsp", question)
	}
	return r
}

// choose takes the untried quick fix that cures most and causes nothing; what would cause as much as it cures is not
// proposed at all.
func (f *fixer) choose(p problem, all []action) (action, bool) {
	var fit []action
	had := false
	for _, a := range all {
		if !strings.HasPrefix(a.kind, "quickfix") && a.kind != "" {
			continue
		}
		had = true
		if f.tried[p.key()+"\x00"+a.title] || a.effectKnown && a.fixes <= a.introduces {
			continue
		}
		fit = append(fit, a)
	}
	if len(fit) == 0 {
		switch {
		case !had:
			f.why[p.key()] = "the language server offers no quick fix for it"
		case f.triedAny(p):
			f.why[p.key()] = "its quick fixes did not cure it"
		default:
			f.why[p.key()] = "its quick fixes would cause as many problems as they cure"
		}
		return action{}, false
	}
	sort.SliceStable(fit, func(i, j int) bool {
		a, b := fit[i], fit[j]
		if a.introduces != b.introduces {
			return a.introduces < b.introduces
		}
		if a.preferred != b.preferred {
			return a.preferred
		}
		if makesStub(a.title) != makesStub(b.title) {
			return !makesStub(a.title)
		}
		return a.fixes > b.fixes
	})
	return fit[0], true
}

func (f *fixer) triedAny(p problem) bool {
	for k := range f.tried {
		if strings.HasPrefix(k, p.key()+"\x00") {
			return true
		}
	}
	return false
}

// report says what was fixed, what is left and why.
func (f *fixer) report(start, left []problem, asFarAs string) {
	gone := len(start) - len(left)
	switch {
	case len(left) == 0:
		f.say("Done: %s fixed, none left%s.\n", plural(len(start), "error"), asFarAs)
	case gone > 0:
		f.say("Fixed %d of %s; %d left.\n", gone, plural(len(start), "error"), len(left))
	case f.refused > 0:
		f.say("Nothing was changed: what I proposed was not applied.\n")
	default:
		f.cannot("I could fix none of the %s.\n", plural(len(start), "error"))
	}
	if len(f.stubs) > 0 {
		f.say("\nThese are stubs that panic until you write them:\n")
		for _, s := range f.stubs {
			f.say("- %s\n", s)
		}
	}
	if len(left) == 0 {
		return
	}
	f.say("\nLeft:\n")
	for i, p := range left {
		if i == 30 {
			f.say("- … and %d more\n", len(left)-i)
			break
		}
		why := f.why[p.key()]
		if why == "" {
			why = "I stopped before it"
		}
		f.say("- %s:%d:%d %s — %s\n", p.path, p.line, p.column, firstLine(p.message), why)
	}
	if f.refused == 0 {
		f.say("\nThese need judgement that I do not have: change them by hand, or choose a larger model (`pillion models`).\n")
	}
}

// aboutImports guesses from the message; a wrong guess costs one call that changes nothing.
func aboutImports(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "import") || strings.HasPrefix(m, "undefined:") || strings.Contains(m, "cannot find name")
}

func makesStub(title string) bool {
	return strings.HasPrefix(title, "Declare missing method") || strings.HasPrefix(title, "Create function") || strings.HasPrefix(title, "Implement ") || strings.HasPrefix(title, "Add missing function")
}
