package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// inside walks the substitutions within a word: they run whatever the word is for.
func (w *walker) inside(word *syntax.Word, st *state) {
	if word == nil {
		return
	}
	for _, p := range word.Parts {
		w.insidePart(p, st)
	}
}

func (w *walker) insidePart(p syntax.WordPart, st *state) {
	if !w.step() {
		return
	}
	switch p := p.(type) {
	case *syntax.SglQuoted:
		w.single(p)
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			w.insidePart(q, st)
		}
	case *syntax.CmdSubst:
		inner := *st
		w.stmts(p.Stmts, &inner, input{})
	case *syntax.ProcSubst:
		inner := *st
		w.stmts(p.Stmts, &inner, input{})
	case *syntax.ArithmExp:
		w.arithm(p.X, st)
	case *syntax.ExtGlob:
		w.opaque("extended globs may hide commands")
	case *syntax.ParamExp:
		w.insideParam(p, st)
	}
}

func (w *walker) insideParam(p *syntax.ParamExp, st *state) {
	if p.Excl && p.Names == 0 {
		w.opaque("${!name} takes the name of a variable from another one")
	}
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
		switch p.Exp.Op {
		case syntax.OtherParamOps:
			if p.Exp.Word.Lit() != "Q" && p.Exp.Word.Lit() != "L" && p.Exp.Word.Lit() != "U" && p.Exp.Word.Lit() != "u" {
				w.opaque("${name@" + p.Exp.Word.Lit() + "} may run what the variable holds")
			}
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if p.Param != nil {
				w.dangerousName(p.Param.Value, w.parts(wordParts(p.Exp.Word), false, st))
			}
		}
	}
}

func wordParts(word *syntax.Word) []syntax.WordPart {
	if word == nil {
		return nil
	}
	return word.Parts
}
