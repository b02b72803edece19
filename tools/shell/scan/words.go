package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// words walks what stands around the programs of a command, where expansion alone can run something: the substitutions in words,
// assignments, redirections, arithmetic and tests. It moves the shell nowhere.
type words struct {
	*expander
	commands subshells
	quoted   bool // what is walked stands in double quotes, a here document or arithmetic
}

// subshells walks the commands of a substitution, which run in a shell of their own from st.
type subshells interface {
	subshell(list []*syntax.Stmt, st state)
}

// inside walks the substitutions within a word. They run whatever the word is for, even where the program ignores it:
// true $(rm x) removes x.
func (w *words) inside(word *syntax.Word, st *state) {
	if word == nil {
		return
	}
	for _, p := range word.Parts {
		w.insidePart(p, st)
	}
}

// insidePart walks the substitutions within one part of a word. They run in subshells, so st stays as it is.
func (w *words) insidePart(p syntax.WordPart, st *state) {
	if !w.step() {
		return
	}
	switch p := p.(type) {
	case *syntax.SglQuoted:
		if w.quoted && (p.Dollar || strings.ContainsAny(p.Value, "$`\\")) { // "${x:-'$(cmd)'}" runs it
			w.opaque("single quotes within double quotes do not quote")
			w.salvage(strings.ReplaceAll(p.Value, "$(", "\n"))
		}
		w.single(p)
	case *syntax.DblQuoted:
		defer w.quoting(true)()
		for _, q := range p.Parts {
			w.insidePart(q, st)
		}
	case *syntax.CmdSubst:
		defer w.quoting(false)()
		w.commands.subshell(p.Stmts, *st)
	// Process substitution starts its command at once, beside the one whose argument it is.
	case *syntax.ProcSubst:
		defer w.quoting(false)()
		w.commands.subshell(p.Stmts, *st)
	case *syntax.ArithmExp:
		w.arithm(p.X, st)
	case *syntax.ExtGlob:
		w.opaque("extended globs may hide commands")
	case *syntax.ParamExp:
		w.insideParam(p, st)
	}
}

// quoting sets whether what is walked next is in double quotes. The function it returns restores what was set before.
func (w *words) quoting(on bool) func() {
	before := w.quoted
	w.quoted = on
	return func() { w.quoted = before }
}

// insideParam walks a parameter expansion. Some forms run what a variable holds (${x@P}), take its name from another
// variable (${!x}), or assign (${x:=y}); those are opaque or looked at like an assignment.
func (w *words) insideParam(p *syntax.ParamExp, st *state) {
	// ${!a[@]} alone lists the keys of an array; with anything after it, it is the variable named by a's value again.
	keys := isAll(p) && p.Exp == nil && p.Slice == nil && p.Repl == nil && len(p.Modifiers) == 0
	if p.Excl && p.Names == 0 && !keys {
		w.opaque("${!name} takes the name of a variable from another one")
	}
	// Both are zsh: ${${x}} and ${(e)x}, where the flag e expands the value again.
	if p.NestedParam != nil || p.Flags != nil {
		w.opaque("it holds an expansion bash does not have")
	}
	if p.Index != nil && !isAll(p) {
		w.arithm(p.Index, st)
	}
	if p.Slice != nil {
		w.arithm(p.Slice.Offset, st)
		w.arithm(p.Slice.Length, st)
	}
	if p.Repl != nil {
		w.inside(p.Repl.Orig, st)
		w.inside(p.Repl.With, st)
	}
	if p.Exp != nil {
		w.inside(p.Exp.Word, st)
		if w.quoted && p.Exp.Op <= syntax.AssignUnsetOrNull && p.Exp.Op >= syntax.AlternateUnset && holdsSingle(p.Exp.Word) {
			w.opaque("single quotes within double quotes do not quote")
		}
		switch p.Exp.Op {
		// @Q, @L, @U and @u only quote or change case. @P expands the value as a prompt, in which $(cmd) runs. The other operators
		// are opaque without a closer look.
		case syntax.OtherParamOps:
			if p.Exp.Word.Lit() != "Q" && p.Exp.Word.Lit() != "L" && p.Exp.Word.Lit() != "U" && p.Exp.Word.Lit() != "u" {
				w.opaque("${name@" + p.Exp.Word.Lit() + "} may run what the variable holds")
			}
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if p.Param != nil {
				w.setVariable(p.Param.Value, w.parts(wordParts(p.Exp.Word), false, st))
			}
		}
	}
}

// holdsSingle reports a word with a part in single quotes. In "${x:-'$(cmd)'}" bash does not take them for quotes.
func holdsSingle(word *syntax.Word) bool {
	for _, p := range wordParts(word) {
		if _, ok := p.(*syntax.SglQuoted); ok {
			return true
		}
	}
	return false
}

// wordParts is nil for an expansion without a word: ${x:=}.
func wordParts(word *syntax.Word) []syntax.WordPart {
	if word == nil {
		return nil
	}
	return word.Parts
}

// lists notes the folders outside the project that the wildcards in words list. It serves words that go to no program: those
// of a for loop and of an array; callExpr does the same for arguments.
func (w *words) lists(words []*syntax.Word, st *state) {
	for _, word := range words {
		for _, a := range w.args(word, st) {
			for _, v := range a.Values {
				w.listed(v, st)
			}
		}
	}
}
