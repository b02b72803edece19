package quickfix

import (
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// fix works through the errors, one quick fix after the other. Each is proposed like any edit, and undone when the number of errors does
// not fall, so there are never more errors at the end than at the start.
func fix(w *walk, where string) {
	d := diagnose(w, where)
	if !d.ok {
		return
	}
	start := d.errors()
	if len(start) == 0 {
		w.say("There are no errors%s%s.", in(where), d.asFarAs())
		if n := len(d.problems); n > 0 {
			w.say(" %s of lesser weight %s left as they are; `explain problems` lists them.", textutil.Plural(n, "problem"), isAre(n))
		}
		return
	}
	w.say("Found %s in %s.\n\n", textutil.Plural(len(start), "error"), textutil.Plural(len(byFile(start)), "file"))
	f := fixer{walk: w, where: where, why: map[string]string{}, tried: map[string]bool{}, organised: map[string]bool{}}
	current := start
	// Between a step and the count after it current is one step behind, and the report says less than what is done, never more.
	w.soFar = func() { f.report(start, current, d.asFarAs()) }
	// The bound ends the loop also where every step uncovers another error.
	for f.steps < 2*len(start)+10 { // a step may uncover errors that a syntax error hid
		p, ok := f.next(current)
		if !ok {
			break
		}
		done := f.attempt(p)
		if done == nil {
			continue
		}
		f.steps++
		if d = diagnose(w, where); !d.ok {
			return
		}
		now := d.errors()
		f.done = append(f.done, step{p, done, uncovered(current, now)})
		// As many errors as before are not progress either, so the step is undone.
		if len(now) >= len(current) && !uncovered(current, now) && !(len(now) == len(current) && advanced(p, done, now)) {
			f.undo(p, done)
			f.done = f.done[:len(f.done)-1]
			if d = diagnose(w, where); !d.ok {
				return
			}
			now = d.errors()
		} else if done.Effect != nil && done.Effect.Stub {
			// A stub compiles and fails at run time, so the report names it.
			f.stubs = append(f.stubs, fmt.Sprintf("%s (%s)", done.Title, f.show(p.Path)))
		}
		current = now
	}
	if f.takeBack(start, current) {
		if d = diagnose(w, where); !d.ok {
			return
		}
		current = d.errors()
	}
	f.report(start, current, d.asFarAs())
}

// step is an action that was applied and kept.
type step struct {
	problem
	*action
	syntax bool // it removed a syntax error
}

// takeBack undoes the steps in each file in which a syntax error was removed and that has more errors now than at the start. What appeared
// behind the syntax error may have been there before; but a bracket at a wrong place gives errors of its own, and the two cannot be told apart.
// So the file is left as it was, with the one error that the person knows. It reports whether it undid something.
func (f *fixer) takeBack(start, now []problem) (undone bool) {
	worse, why := map[string]bool{}, map[string]string{}
	for _, s := range f.done {
		n := countIn(s.Path, now)
		if s.syntax && n > countIn(s.Path, start) {
			worse[s.Path] = true
			why[s.key()] = fmt.Sprintf("%q left %s in its file, so I took it back", s.Title, textutil.Plural(n, "error"))
		}
	}
	for i := len(f.done) - 1; i >= 0; i-- {
		if s := f.done[i]; worse[s.Path] {
			f.undo(s.problem, s.action)
			undone = true
		}
	}
	maps.Copy(f.why, why) // in place of the reasons that the undo gave
	return undone
}

// countIn is how many of the problems are in a file.
func countIn(path string, ps []problem) (n int) {
	for _, p := range ps {
		if p.Path == path {
			n++
		}
	}
	return n
}

// uncovered reports that a syntax error is gone. The errors that appear behind it existed before and are not caused by the step. Without
// this rule a fixed bracket would be undone as soon as the errors behind it become visible.
func uncovered(before, after []problem) bool { return syntaxErrors(after) < syntaxErrors(before) }

// advanced reports that a step for the syntax error p has mended one of several in its file. gopls reports only the first of them, so their
// number stays the same, and without this rule no file with two syntax errors could be mended. The effect of the action counts all of them.
func advanced(p problem, a *action, after []problem) bool {
	if p.Source != "syntax" || a.Effect == nil || a.Effect.Errors >= 0 {
		return false
	}
	for _, q := range after {
		if q.Path == p.Path && q.Source == "syntax" {
			return q.Line > p.Line+1 // on the same line or the next it is rather the same mistake, seen later
		}
	}
	return false
}

// syntaxErrors counts the problems that a parser reports.
func syntaxErrors(ps []problem) (n int) {
	for _, p := range ps {
		if p.Source == "syntax" {
			n++
		}
	}
	return n
}

// fixer is the state of one "fix" request. It lives for one replay of the script; because the script is deterministic, it has the same
// state at the same call of each replay. why and tried outlast a step, so that an action that failed for a problem is not tried for it
// again.
type fixer struct {
	*walk
	where     string
	why       map[string]string // problem key → why it is left
	tried     map[string]bool   // problem key, NUL and title of an action
	organised map[string]bool   // paths of files whose imports were organised
	done      []step
	stubs     []string // what was added and is empty until someone writes it
	steps     int
	refused   int // proposals that were not accepted; the final advice depends on it
}

// unusedCodes are gopls's errors, by source and code, for a name that nothing uses; see next.
var unusedCodes = map[string]bool{"compiler UnusedVar": true, "compiler UnusedImport": true}

// next returns the first problem that is not given up. A syntax error hides what is behind it, so it comes first. A name that nothing
// uses comes last: what should use it may be misspelt, and then it must stay. All others come in the order of file and line. An action is
// chosen by how many errors it removes everywhere, so a declaration that many uses fail for is repaired at the first of them.
func (f *fixer) next(current []problem) (first problem, ok bool) {
	for _, p := range current {
		if _, given := f.why[p.key()]; given {
			continue
		}
		if p.Source == "syntax" {
			return p, true
		}
		if !ok || unusedCodes[first.Source+" "+first.Code] && !unusedCodes[p.Source+" "+p.Code] {
			first, ok = p, true
		}
	}
	return first, ok
}

// attempt tries one action for p. It returns the action when something was applied, else nil.
func (f *fixer) attempt(p problem) *action {
	a, ok := f.ask(p, p)
	// Once an action was tried for p, its outcome is the reason that counts.
	if !ok && !f.triedAny(p) {
		// An analyser may report the same trouble a few columns further on, with the fix attached there. Servers run analysers on open
		// files only, so the list of the whole project does not show it.
		if near := diagnose(f.walk, p.Path); near.ok {
			for _, q := range near.problems {
				if !ok && q.Line == p.Line && q.Column != p.Column {
					a, ok = f.ask(p, q)
				}
			}
		}
	}
	if !ok {
		return f.organise(p)
	}
	return f.apply(p, a)
}

// apply applies an action for p, once in this request. It returns the action when something was applied, else nil.
func (f *fixer) apply(p problem, a action) *action {
	delete(f.why, p.key()) // the reason that another place gave
	f.tried[p.key()+"\x00"+a.Title] = true
	r := f.call("lsp", map[string]any{"operation": "codeActions", "filePath": p.Path, "apply": a.ID})
	switch {
	case r.refused():
		f.refused++
		// The person has decided, so the problem is not proposed again in this request.
		f.why[p.key()] = notAccepted(r, strconv.Quote(a.Title))
		return nil
	case r.failed:
		f.why[p.key()] = fmt.Sprintf("%q failed: %s", a.Title, textutil.FirstLine(r.text))
		return nil
	}
	return &a
}

// importCodes are the errors, by source and code, that organising imports can fix where no quick fix is offered: an unknown name, an
// unused import.
var importCodes = map[string]bool{
	"compiler UndeclaredName": true, "compiler UnusedImport": true, "compiler UndeclaredImportedName": true,
	"ts 2304": true, "ts 2552": true, "typescript 2304": true, "typescript 2552": true, "ts 2503": true,
	// Above are the codes of gopls and of TypeScript, below those of Pyright and basedpyright.
	"Pyright reportUndefinedVariable": true, "basedpyright reportUndefinedVariable": true, "Pyright reportUnusedImport": true,
}

// organise organises the imports of p's file, once for each file, when p is an error about imports without a quick fix. It applies the
// server's action by its ID and not by the tool's operation organizeImports, so that it can be undone like every step.
func (f *fixer) organise(p problem) *action {
	if !importCodes[p.Source+" "+p.Code] || f.organised[p.Path] {
		return nil
	}
	f.organised[p.Path] = true
	const kind = "source.organizeImports"
	r := f.askAgainIfBusy(map[string]any{"operation": "codeActions", "filePath": p.Path, "kind": kind})
	for _, a := range r.actions() {
		// Servers may list actions of other kinds as well.
		if a.Disabled == "" && (a.Kind == kind || strings.HasPrefix(a.Kind, kind+".")) {
			return f.apply(p, a)
		}
	}
	return nil
}

// maxTries is how many actions are tried for one problem. Each costs five calls when it does not help.
const maxTries = 3

// undo takes back a step that did not lower the number of errors. tried keeps it from being tried again; another action may be.
func (f *fixer) undo(p problem, a *action) {
	if f.tries(p) >= maxTries {
		f.why[p.key()] = strconv.Quote(a.Title) + " did not fix it"
	}
	r := f.call("lsp", map[string]any{"operation": "codeActions", "filePath": p.Path, "undo": a.ID})
	if r.failed {
		f.why[p.key()] = fmt.Sprintf("%q did not fix it, and could not be undone: %s", a.Title, textutil.FirstLine(r.text))
	}
}

// notAccepted says why a proposal was not applied: the user rejected it, or no user was connected.
func notAccepted(r result, what string) string {
	if r.kind == "unanswered" {
		return what + " was proposed and not applied: no user could approve it"
	}
	return "you did not accept " + what
}

// ask lists the actions that are offered at a place and chooses one for p.
func (f *fixer) ask(p, at problem) (action, bool) {
	r := f.askAgainIfBusy(map[string]any{"operation": "codeActions", "filePath": at.Path, "line": at.Line, "character": at.Column})
	if r.failed {
		f.why[p.key()] = "the language server could not say what would help: " + textutil.FirstLine(r.text)
		return action{}, false
	}
	return f.choose(p, r.actions())
}

// askAgainIfBusy repeats a question once when the server was still loading the project. A third equal call would be stopped by the
// agent's loop guard.
func (f *fixer) askAgainIfBusy(question map[string]any) result {
	r := f.call("lsp", question)
	if r.failed && r.kind == "busy" {
		r = f.call("lsp", question)
	}
	return r
}

// choose returns the untried quick fix that removes most errors. One that would not lower their number is not proposed at all.
func (f *fixer) choose(p problem, all []action) (action, bool) {
	var fit []action
	had := false
	for _, a := range all {
		if !a.quickfix() {
			continue
		}
		had = true
		if f.tried[p.key()+"\x00"+a.Title] || a.Effect != nil && a.Effect.Errors >= 0 {
			continue
		}
		fit = append(fit, a)
	}
	if len(fit) == 0 {
		switch {
		case f.triedAny(p): // also an action that is no quick fix: organised imports
			f.why[p.key()] = "its quick fixes did not fix it"
		case !had:
			f.why[p.key()] = "the language server offers no quick fix for it"
		default:
			f.why[p.key()] = "its quick fixes would not lower the number of errors"
		}
		return action{}, false
	}
	sort.SliceStable(fit, func(i, j int) bool { return rank(fit[i]) < rank(fit[j]) })
	return fit[0], true
}

// rank orders actions: first those that leave the fewest errors, then those that could not be checked in time, then stubs, which only
// move the failure to run time. The weights keep the three groups apart for fewer than 100,000 errors.
func rank(a action) int {
	n := 0
	switch {
	case a.Effect == nil:
		n = 1_000_000
	case a.Effect.Stub:
		n = 2_000_000 + 10*a.Effect.Errors
	default:
		n = 10 * a.Effect.Errors
	}
	// Among equals the server's preferred action comes first, and one last that only silences the error.
	if !a.Preferred {
		n++
	}
	if a.Effect != nil && a.Effect.Discards {
		n += 2
	}
	return n
}

// triedAny reports whether an action was tried for p: then the last failure is the reason that is reported.
func (f *fixer) triedAny(p problem) bool { return f.tries(p) > 0 }

// tries is how many actions were tried for p.
func (f *fixer) tries(p problem) (n int) {
	for k := range f.tried {
		if strings.HasPrefix(k, p.key()+"\x00") {
			n++
		}
	}
	return n
}

// report says what was fixed, what is left and why.
func (f *fixer) report(start, left []problem, asFarAs string) {
	gone := len(start) - len(left)
	switch {
	case len(left) == 0:
		f.say("Done: %s fixed, none left%s.\n", textutil.Plural(len(start), "error"), asFarAs)
	case gone > 0:
		f.say("Fixed %d of %s; %d left.\n", gone, textutil.Plural(len(start), "error"), len(left))
	case f.refused > 0:
		f.say("Nothing was changed: what I proposed was not applied.\n")
	case f.atLimit():
		f.say("Fixed none of %s so far.\n", textutil.Plural(len(start), "error"))
	default:
		f.sayUndone("I could fix none of the %s.\n", textutil.Plural(len(start), "error"))
	}
	if len(f.stubs) > 0 {
		f.say("\nThese compile, and do nothing until you write them:\n")
		for _, s := range f.stubs {
			f.say("- %s\n", s)
		}
	}
	if len(left) == 0 {
		return
	}
	f.say("\nLeft:\n")
	for i, p := range left {
		// A longer list would not be read.
		if i == 30 {
			f.say("- … and %d more\n", len(left)-i)
			break
		}
		why := f.why[p.key()]
		if why == "" {
			why = "I stopped before it"
		}
		f.say("- %s:%d:%d %s — %s\n", f.show(p.Path), p.Line, p.Column, textutil.FirstLine(p.Message), why)
	}
	// The advice would be wrong after a refusal, because the person has left these errors, and at the limit, because more can be fixed.
	if f.refused == 0 && !f.atLimit() {
		f.say("\nThese need judgement that I do not have: change them by hand, or choose a larger model (`pillion models`).\n")
	}
}
