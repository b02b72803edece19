package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// callExpr looks at a simple command: its assignments, its words, then what it runs.
func (w *walker) callExpr(s *syntax.Stmt, c *syntax.CallExpr, st *state, in input) state {
	w.text.at = int(c.Pos().Offset())
	readsIFS := len(c.Args) > 0 && c.Args[0].Lit() == "read"
	for _, a := range c.Assigns {
		w.assignment(a, st, readsIFS)
	}
	if len(c.Args) == 0 {
		return *st
	}
	var args []Word
	for _, word := range c.Args {
		if !w.step() {
			return *st
		}
		w.inside(word, st)
		args = append(args, w.args(word, st)...)
	}
	// The shell expands a wildcard whatever the program does with it, so echo /root/* lists a folder that echo never opens.
	for _, a := range args {
		for _, v := range a.Values {
			w.listed(v, st)
		}
	}
	if len(args) == 0 {
		return *st
	}
	return w.run(w.visit(args, st, in))
}

// visit makes the visit of a call.
func (w *walker) visit(args []Word, st *state, in input) *Visit {
	return &Visit{Surroundings: &Surroundings{w.req, w.paths}, Args: args, w: w, st: st, in: in}
}

// run looks at one program call. It returns the state after its failure; c.st becomes the one after its success.
// A program whose name is only known at run time ($CMD x) gets a call of its own text, so that rules can match it, and
// all words that look like paths count as written.
func (w *walker) run(c *Visit) state {
	if len(c.Args) == 0 || !w.step() {
		return *c.st
	}
	name, ok := program(c.Args[0])
	if !ok {
		w.opaque("which program runs cannot be said: " + c.Args[0].Source)
		entry := Call{Text: TextOf(c.Args), Program: c.Args[0].Text, NoGrant: true}
		if s, ok := Spelled(c.Args); ok && s != entry.Text {
			entry.Also = append(entry.Also, s)
		}
		w.addCall(entry)
		for _, a := range c.Args[1:] {
			c.TouchIfPath(a, Write)
		}
		return *c.st
	}
	// env f and xargs f start a program f: only the shell itself calls its functions.
	if !c.wrapped && w.funcs[name] != nil {
		after, sure := w.calledFunction(name, c)
		if sure {
			// The function itself does nothing: its body was walked, and what it calls is in the list.
			w.addCall(Call{Text: TextOf(c.Args), Program: name, ReadOnly: true, Silent: true})
			*c.st = after
			return after
		}
		fail := w.named(name, c)
		*c.st = merge(*c.st, after)
		return merge(fail, after)
	}
	return w.named(name, c)
}

// named looks at the program, or builtin, of a name.
func (w *walker) named(name string, c *Visit) state {
	base, foreign := w.locate(name, c.st)
	entry := Call{Text: TextOf(append([]Word{Plain(name)}, c.Args[1:]...)), Program: base}
	// Rules are written for names, so /usr/bin/git matches as git. A program with a path of its own keeps the path in its
	// text, so that no grant for git covers ./git; the short name is listed beside it for rules that deny.
	if name != base {
		short := TextOf(append([]Word{Plain(base)}, c.Args[1:]...))
		if foreign {
			entry.Also = append(entry.Also, short)
		} else {
			entry.Also, entry.Text = append(entry.Also, entry.Text), short
		}
	}
	// A rule that denies may have been written for the call as typed, or as expanded: both spellings are offered to it.
	if typed := sourceOf(c.Args); typed != entry.Text {
		entry.Also = append(entry.Also, typed)
	}
	if s, ok := Spelled(c.Args); ok && s != entry.Text {
		entry.Also = append(entry.Also, s)
	}
	c.Call, c.Name = &entry, base
	fail := w.behave(base, c)
	if foreign {
		entry.ReadOnly = false
	}
	// The words that xargs adds may be options that write.
	if c.more {
		entry.ReadOnly = false
	}
	if entry.Text != "" {
		w.addCall(entry)
	}
	return fail
}

// behave looks at what runs: builtins change the shell, everything else is a program.
// test, [ and printf exist as programs too and behave alike, except for -v.
func (w *walker) behave(name string, c *Visit) (fail state) {
	fail = *c.st
	if isBuiltin(name) {
		return w.builtin(name, c, c.Call)
	}
	if name == "test" || name == "[" || name == "printf" {
		namesVariable(c)
	}
	// The three belong to one program: a Manner that stayed would make the next program's paths "deep" or unnoted.
	w.paths.folders, w.paths.files, w.paths.manner = nil, 0, Manner{}
	w.programs.Call(c)
	w.paths.manner = Manner{}
	w.runsIn(c.st, c.ReadOnly)
	return fail
}

// program is the name of what runs, where it is written out.
// A name from an expansion does not count even where its value is known: the text that a person and a rule see would be
// $X and the program something else.
func program(a Word) (string, bool) {
	s, ok := a.One()
	if ok && s == "[" {
		return s, true
	}
	if !ok || s == "" || strings.ContainsAny(s, " \t\n*?[]$`\"'\\;|&<>(){}") {
		return "", false
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return "", false // a look-alike; programs have ASCII names
		}
	}
	// A tilde is the one expansion that always says the same.
	return s, a.Static || strings.HasPrefix(a.Source, "~/")
}

// TextOf is words as rules see them, joined by blanks. Hidden words, which xargs adds, are left out.
func TextOf(args []Word) string { return joined(args, func(a Word) string { return a.Text }) }

// sourceOf is words as typed, joined by blanks, quotes included.
func sourceOf(args []Word) string { return joined(args, func(a Word) string { return a.Source }) }

// joined puts f of each word after the other with single blanks, so a blank within a word cannot be told from one between two.
func joined(args []Word, f func(Word) string) string {
	var b strings.Builder
	for i, a := range args {
		if a.Hidden {
			continue
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f(a))
	}
	return b.String()
}

// Expanded is the call with what its words expand to. It reports false when a word has several values or one that is not
// known. A wildcard stays in the text: what it finds may change before the command runs.
func Expanded(args []Word) (string, bool) {
	for _, a := range args {
		if a.Hidden {
			continue
		}
		if len(a.Values) != 1 || strings.ContainsAny(a.Values[0].Text, Hole+Wild) {
			return "", false
		}
	}
	return joined(args, func(a Word) string {
		// An empty argument would vanish from the text, and the words after it would move to another place.
		if a.Values[0].Text == "" {
			return "''"
		}
		return a.Values[0].Text
	}), true
}

// Spelled is Expanded for rules that deny, and for scripts of a command that is opaque already: it takes what echo and printf most
// likely print in a substitution for known.
func Spelled(args []Word) (string, bool) {
	var out []Word
	for _, a := range args {
		if a.Hidden {
			continue
		}
		if len(a.Values) != 1 {
			return "", false
		}
		s, ok := a.Values[0].spelled()
		if !ok {
			return "", false
		}
		out = append(out, Word{Values: []Value{{Text: s}}})
	}
	return Expanded(out)
}
