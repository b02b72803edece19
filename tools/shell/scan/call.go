package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// callExpr walks a simple command: its assignments, its words, then the program or builtin that it runs.
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

// visit returns the Visit for a call with these arguments.
func (w *walker) visit(args []Word, st *state, in input) *Visit {
	return &Visit{Surroundings: &Surroundings{w.req, w.paths}, Args: args, w: w, st: st, in: in}
}

// run walks one call. It returns the state after the call fails and sets c.st to the state after it succeeds.
// When the program is known only at run time ($CMD x), the command is opaque, rules can match the call as it was typed,
// and every argument that looks like a path counts as written.
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
	// Wrappers (env f, xargs f) start a program f, never the shell's function f.
	if !c.wrapped && w.funcs[name] != nil {
		after, sure := w.calledFunction(name, c)
		if sure {
			// The call itself does nothing: the calls in the function's body are already in the list.
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

// named walks a call of the program or builtin with this name, and adds the Call to the report. Like run it returns the state
// after failure.
func (w *walker) named(name string, c *Visit) state {
	base, foreign := w.locate(name, c.st)
	entry := Call{Text: TextOf(append([]Word{Plain(name)}, c.Args[1:]...)), Program: base}
	// Rules are written for names, so the text of /usr/bin/git begins with git. A foreign program keeps its path in the text,
	// so that no grant for git covers ./git; the short name goes to Also, for rules that deny.
	if name != base {
		short := TextOf(append([]Word{Plain(base)}, c.Args[1:]...))
		if foreign {
			entry.Also = append(entry.Also, short)
		} else {
			entry.Also, entry.Text = append(entry.Also, entry.Text), short
		}
	}
	// A rule that denies may be written for the call as typed or as expanded, so Also gets both spellings.
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
	// xargs and its like add arguments that are not known; an option that writes may be among them.
	if c.more {
		entry.ReadOnly = false
	}
	if entry.Text != "" {
		w.addCall(entry)
	}
	return fail
}

// behave hands the call to builtin or, for everything else, to Programs. test, [ and printf are builtins that behave like the
// programs of that name, except for -v.
func (w *walker) behave(name string, c *Visit) (fail state) {
	fail = *c.st
	if isBuiltin(name) {
		return w.builtin(name, c, c.Call)
	}
	if name == "test" || name == "[" || name == "printf" {
		namesVariable(c)
	}
	// These fields describe one program only. A Manner left over from the program before would be applied to this one's paths.
	w.paths.folders, w.paths.files, w.paths.manner = nil, 0, Manner{}
	w.programs.Call(c)
	w.paths.manner = Manner{}
	w.runsIn(c.st, c.ReadOnly)
	return fail
}

// program is the name of the program, if it is written out. A name from an expansion does not count even where its value is
// known: a person and a rule would see $X while another program runs.
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
			return "", false // it may be a look-alike of another program; real names are ASCII
		}
	}
	// ~/ is allowed although it is an expansion: a reader knows what it stands for.
	return s, a.Static || strings.HasPrefix(a.Source, "~/")
}

// TextOf is the text of a call as rules see it: its words joined by blanks, without Hidden words, which xargs adds.
func TextOf(args []Word) string { return joined(args, func(a Word) string { return a.Text }) }

// sourceOf is the text of a call as typed: its words with their quotes, joined by blanks.
func sourceOf(args []Word) string { return joined(args, func(a Word) string { return a.Source }) }

// joined is f of each word that is not Hidden, separated by single blanks. A blank within a word looks the same as a separator.
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

// Expanded is the text of a call with its words expanded. It reports false when a word has several values, or one that is not
// known. Wildcards are not expanded, since the matching files may change before the command runs.
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
		// Without the quotes an empty argument would vanish from the text, and the arguments after it would move up.
		if a.Values[0].Text == "" {
			return "''"
		}
		return a.Values[0].Text
	}), true
}

// Spelled is like Expanded, but for the output of echo and printf in a substitution it uses the most likely text. So its
// result serves only rules that deny, and scripts in a command that is opaque already.
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
