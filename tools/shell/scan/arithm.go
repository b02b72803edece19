package scan

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// arithm looks at arithmetic. Bash evaluates the *values* of the variables in it as expressions again, and an array
// index in such a value may hold $(a command). So every name in it must be known to hold a number.
func (w *words) arithm(x syntax.ArithmExpr, st *state) {
	if x == nil || !w.step() {
		return
	}
	switch x := x.(type) {
	// A substitution in arithmetic runs like one in double quotes: $((x + $(cmd))) starts cmd.
	case *syntax.Word:
		unquote := w.quoting(true)
		w.inside(x, st)
		unquote()
		w.number(x, st)
	// An assignment is a binary expression as well: its left side is a name, whose present value bash may evaluate too.
	case *syntax.BinaryArithm:
		w.arithm(x.X, st)
		w.arithm(x.Y, st)
	case *syntax.UnaryArithm:
		w.arithm(x.X, st)
	case *syntax.ParenArithm:
		w.arithm(x.X, st)
	default:
		w.opaque("it holds arithmetic that is not understood")
	}
}

// inName reports a character that the name of a variable may have.
func inName(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// test looks at [[ … ]]: its substitutions, its arithmetic, and the files it looks for.
// [[ is syntax and not a program: words in it are not split, but -eq and its like evaluate both sides as arithmetic.
func (w *words) test(x syntax.TestExpr, st *state) {
	if x == nil || !w.step() {
		return
	}
	switch x := x.(type) {
	case *syntax.Word:
		w.inside(x, st)
	case *syntax.ParenTest:
		w.test(x.X, st)
	case *syntax.UnaryTest:
		w.test(x.X, st)
		word, ok := x.X.(*syntax.Word)
		if !ok {
			return
		}
		// Most tests of one file read its metadata. -v and -R take the name of a variable, and bash evaluates an index in it:
		// [[ -v 'a[$(cmd)]' ]] runs cmd. Those without a path ask about a string, an option or a descriptor.
		switch x.Op {
		case syntax.TsVarSet, syntax.TsRefVar:
			if !syntax.ValidName(word.Lit()) {
				w.opaque("a test evaluates the index of a variable")
			}
		case syntax.TsNempStr, syntax.TsEmpStr, syntax.TsNot, syntax.TsOptSet, syntax.TsFdTerm:
		default:
			w.pathWord(word, Read, st)
		}
	case *syntax.BinaryTest:
		w.test(x.X, st)
		w.test(x.Y, st)
		switch x.Op {
		// -nt, -ot and -ef compare the metadata of two files.
		case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.pathWord(word, Read, st)
				}
			}
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.number(word, st)
				}
			}
		}
	}
}

// number makes the command opaque unless the word is surely a number or the name of a variable that holds one.
func (x *expander) number(word *syntax.Word, st *state) {
	if len(word.Parts) == 1 {
		// The elements of an array are not followed (see assign), so the value of ${a[1]} is not known.
		if p, ok := word.Parts[0].(*syntax.ParamExp); ok && p.Index != nil && !p.Excl {
			x.opaque("the value of an array element is evaluated as arithmetic")
			return
		}
	}
	// environment reads inArith: an unset name counts as 0 in arithmetic, and as any text elsewhere.
	x.inArith = true
	defer func() { x.inArith = false }()
	for _, v := range x.parts(word.Parts, true, st) {
		if v.Glob || !x.numeric(v.Text, st, 0) { // a wildcard becomes the names of files, which may be any text
			x.opaque("arithmetic evaluates " + x.text.source(word) + ", which is not surely a number")
			return
		}
	}
}

// numeric reports that arithmetic evaluates s without running anything: it is made of digits and operators, or names a
// variable whose every value is. "[" is missing among the characters on purpose: an index may hold $(a command).
func (x *expander) numeric(s string, st *state, depth int) bool {
	s = strings.TrimSpace(s)
	if s == "" {
		return true
	}
	if syntax.ValidName(s) {
		// A name that is being looked up refers to itself. A chain of more than four names is given up: bash would follow it, and
		// each further name multiplies the values to look at.
		if depth > 4 || x.visiting[s] {
			return depth <= 4 // i=$((i+1)): a number, as the sum is
		}
		for _, v := range x.variable(s, st) {
			if v.Glob || !x.numeric(v.Text, st, depth+1) {
				return false
			}
		}
		return true
	}
	// From here on s is an expression: numbers, names and operators, taken apart from left to right.
	hole, _ := utf8.DecodeRuneInString(Hole)
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		word := rest[:len(rest)-len(strings.TrimLeftFunc(rest, inName))]
		switch {
		case r >= '0' && r <= '9': // 0x1f, 16#ff: letters within are digits, and what is not a digit is an error
			rest = strings.TrimLeftFunc(rest, func(r rune) bool { return inName(r) || strings.ContainsRune("#@.", r) })
		case word != "": // a variable, whose value is an expression again
			if !x.numeric(word, st, depth) || strings.HasPrefix(rest[len(word):], Hole) {
				return false
			}
			rest = rest[len(word):]
		case r == hole || strings.ContainsRune("+-*/%<>=&|!().# ", r):
			rest = rest[size:]
			if next, _ := utf8.DecodeRuneInString(rest); r == hole && inName(next) && (next < '0' || next > '9') {
				return false // unknown characters and a letter may be the name of any variable
			}
		default:
			return false
		}
	}
	return true
}
