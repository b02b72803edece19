package scan

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// arithm walks an arithmetic expression. Bash evaluates the value of each variable in it as an expression again, and an
// array index in such a value may hold $(a command): x='a[$(cmd)]'; echo $((x)) runs cmd. So unless every name in the expression
// is known to hold a number, the command becomes opaque.
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
	// x = 1 and x += 1 are binary expressions too. Their left side is checked like any other name: += evaluates its value.
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

// inName reports whether r may be part of the name of a variable.
func inName(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// test walks [[ … ]]: its substitutions, the files that it tests, and the operands of -eq and its like, which bash evaluates
// as arithmetic.
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
		// -v and -R take the name of a variable, and bash evaluates an index in it: [[ -v 'a[$(cmd)]' ]] runs cmd.
		// The operators in the second case take a string, an option or a descriptor; all others read the metadata of a file.
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

// number makes the command opaque unless the word is certain to be a number or the name of a variable that holds one.
func (x *expander) number(word *syntax.Word, st *state) {
	if len(word.Parts) == 1 {
		// The elements of an array are not followed (see assign), so the value of ${a[1]} is not known.
		if p, ok := word.Parts[0].(*syntax.ParamExp); ok && p.Index != nil && !p.Excl {
			x.opaque("the value of an array element is evaluated as arithmetic")
			return
		}
	}
	// inArith is for environment: an unset variable is 0 in arithmetic, but may be any text elsewhere.
	x.inArith = true
	defer func() { x.inArith = false }()
	for _, v := range x.parts(word.Parts, true, st) {
		if v.Glob || !x.numeric(v.Text, st, 0) { // a wildcard becomes the names of files, which may be any text
			x.opaque("arithmetic evaluates " + x.text.source(word) + ", which is not surely a number")
			return
		}
	}
}

// numeric reports whether bash can evaluate s as arithmetic without running a command: s consists of numbers, operators
// and names of variables whose values are numeric too. "[" is not among the operators, since an index may hold $(a command).
// depth counts the variables followed to get here.
func (x *expander) numeric(s string, st *state, depth int) bool {
	s = strings.TrimSpace(s)
	if s == "" {
		return true
	}
	if syntax.ValidName(s) {
		// Bash follows chains of any length; more than five names are given up here, since each multiplies the values to check.
		if depth > 4 || x.visiting[s] {
			return depth <= 4 // visiting: the value of s refers to s, as in i=$((i+1)), and the result is a number
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
		case r >= '0' && r <= '9': // letters after a digit belong to the number: 0x1f, 16#ff; bash rejects a wrong one
			rest = strings.TrimLeftFunc(rest, func(r rune) bool { return inName(r) || strings.ContainsRune("#@.", r) })
		case word != "": // a variable, whose value is an expression again
			if !x.numeric(word, st, depth) || strings.HasPrefix(rest[len(word):], Hole) {
				return false
			}
			rest = rest[len(word):]
		case r == hole || strings.ContainsRune("+-*/%<>=&|!().# ", r):
			rest = rest[size:]
			if next, _ := utf8.DecodeRuneInString(rest); r == hole && inName(next) && (next < '0' || next > '9') {
				return false // a Hole followed by a letter may be the name of any variable
			}
		default:
			return false
		}
	}
	return true
}
