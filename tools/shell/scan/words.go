package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// words walks the parts of a command in which expansion alone can run something: substitutions in words, assignments,
// redirections, arithmetic and tests. It never moves the shell.
type words struct {
	*expander
	commands subshells
	quoted   bool // the present part is in double quotes, a here document or arithmetic
}

// subshells walks the commands of a substitution in a subshell that starts from st. The walker implements it.
type subshells interface {
	subshell(list []*syntax.Stmt, st state)
}

// inside walks the substitutions within a word. They run even if the program ignores the word: true $(rm x) removes x.
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
		if w.quoted && (p.Dollar || strings.ContainsAny(p.Value, "$`\\")) { // "${x:-'$(cmd)'}" runs cmd
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
	// Bash starts the command of <(…) or >(…) at once, in parallel with the command that has it as an argument.
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

// quoting sets quoted. The function that it returns restores the value before.
func (w *words) quoting(on bool) func() {
	before := w.quoted
	w.quoted = on
	return func() { w.quoted = before }
}

// insideParam walks a parameter expansion. Forms that may run the value of a variable (${x@P}) or take the variable's name from
// another one (${!x}) make the command opaque; ${x:=y} is checked like an assignment.
func (w *words) insideParam(p *syntax.ParamExp, st *state) {
	// ${!a[@]} alone lists the keys of an array. Followed by an operator, it is the variable whose name a holds.
	keys := isAll(p) && p.Exp == nil && p.Slice == nil && p.Repl == nil && len(p.Modifiers) == 0
	if p.Excl && p.Names == 0 && !keys {
		w.opaque("${!name} takes the name of a variable from another one")
	}
	// Syntax of zsh: ${${x}}, and ${(e)x}, where the flag e expands the value again.
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
		// @Q, @L, @U and @u only quote or change case. @P expands the value like a prompt, and runs a $(cmd) in it. All others are
		// opaque too.
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

// holdsSingle reports whether a word has a part in single quotes. In "${x:-'$(cmd)'}" bash does not treat them as quotes.
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

// lists calls listed for words that are not arguments: those of a for loop and of an array. callExpr does it for arguments.
func (w *words) lists(words []*syntax.Word, st *state) {
	for _, word := range words {
		for _, a := range w.args(word, st) {
			for _, v := range a.Values {
				w.listed(v, st)
			}
		}
	}
}
