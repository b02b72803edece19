package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assignment is one place where a variable gets a value. With a nil word the value is not known.
type assignment struct {
	word  *syntax.Word
	off   int  // bytes from the start of the script
	sure  bool // whatever is further down runs after it, and it cannot have been skipped
	chain int  // index of the statement of the top level it belongs to, when that is one && chain; else -1
	adds  bool // += : the old value stays in front
}

// variables are all assignments of a script, found before it is walked: a variable may have any of the values that
// are assigned to it anywhere, so loops and functions need no second look.
type variables map[string][]assignment

// scriptText is the text that is being walked, with what was found in it beforehand. A nested script has its own.
type scriptText struct {
	src       string
	vars      variables
	outer     variables // of the scripts around this one
	chainEnds []chainSpan
	at        int // offset of the call being looked at, bytes
}

// maxVariables is how many a script may have before they all count as unknown.
// Looking up one variable may lead through all others.
const maxVariables = 256

// collect finds all assignments of a script and replaces the variables of the one before. It runs before the walk because
// a loop or a function may use a value that is assigned further down.
func (x *expander) collect(f *syntax.File) {
	x.text.vars = variables{}
	for i, s := range f.Stmts {
		leaves := map[syntax.Node]bool{}
		// One call that is not joined by && spoils the chain: x=1 || y=2 && rm $x may reach rm without the assignment.
		if chain(s, leaves) {
			x.text.chainEnds = append(x.text.chainEnds, chainSpan{i, int(s.Pos().Offset()), int(s.End().Offset())})
		} else {
			clear(leaves)
		}
		first := firstCall(s)
		syntax.Walk(s, func(n syntax.Node) bool {
			in := -1
			if leaves[n] {
				in = i
			}
			switch n := n.(type) {
			case *syntax.CallExpr:
				// Assignments before a program are for the program alone, but a function could keep them.
				for _, a := range n.Assigns {
					x.assign(a, in, syntax.Command(n) == first && len(n.Args) == 0)
				}
				x.assignedByArgs(n)
			case *syntax.DeclClause:
				for _, a := range n.Args {
					if a.Name != nil && !a.Naked {
						x.assign(a, in, syntax.Command(n) == first)
					}
				}
			// for x in a b: x has one of these values from here on, so the one of the environment does not count.
			case *syntax.WordIter:
				for _, item := range n.Items {
					x.text.vars[n.Name.Value] = append(x.text.vars[n.Name.Value], assignment{word: item, off: int(n.Pos().Offset()), sure: true, chain: -1})
				}
				// for x; do takes the positional parameters.
				if len(n.Items) == 0 {
					x.unknownVar(n.Name.Value)
				}
			// ${x:=word} assigns only when x is unset, so it is never sure.
			case *syntax.ParamExp:
				if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
					x.text.vars[n.Param.Value] = append(x.text.vars[n.Param.Value], assignment{word: n.Exp.Word, off: int(n.Pos().Offset()), chain: -1})
				}
			// (( x = 1 )) and its like leave a number in x.
			case *syntax.BinaryArithm:
				if n.Op >= syntax.Assgn && n.Op <= syntax.ShrAssgn || n.Op == syntax.Assgn {
					if name, ok := n.X.(*syntax.Word); ok {
						x.text.vars[name.Lit()] = append(x.text.vars[name.Lit()], assignment{word: numberWord, off: int(n.Pos().Offset()), chain: -1})
					}
				}
			case *syntax.UnaryArithm:
				if name, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.Inc || n.Op == syntax.Dec) {
					x.text.vars[name.Lit()] = append(x.text.vars[name.Lit()], assignment{word: numberWord, off: int(n.Pos().Offset()), chain: -1})
				}
			}
			return true
		})
	}
}

// numberWord stands for the result of arithmetic: part answers a hole, which is a number, for any ArithmExp.
var numberWord = &syntax.Word{Parts: []syntax.WordPart{&syntax.ArithmExp{}}}

// chainSpan is where a chain of && is: which statement of the top level it is, and its first and last byte.
type chainSpan struct{ chain, from, to int }

// chain reports a statement made of calls joined by && only, and collects its calls in leaves. A compound statement may be
// a link of the chain too, but what is assigned within it is not a leaf: its body may not run.
// Within such a chain a later call runs only when all before it have succeeded, so an assignment in it has surely happened.
func chain(s *syntax.Stmt, leaves map[syntax.Node]bool) bool {
	// ! x=1 && y: the next call runs although this one failed. x=1 & y: the assignment stays in a subshell.
	if s.Negated || s.Background {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && chain(c.X, leaves) && chain(c.Y, leaves)
	case *syntax.CallExpr, *syntax.DeclClause:
		leaves[c] = true
		return true
	case *syntax.ForClause, *syntax.WhileClause, *syntax.IfClause, *syntax.CaseClause, *syntax.Block, *syntax.Subshell, *syntax.TestClause:
		return true // what is in it still runs after what is before it
	}
	return false
}

// firstCall is the call that surely runs when the statement does.
// Nil when even the first call depends on a condition.
func firstCall(s *syntax.Stmt) syntax.Command {
	if s.Background {
		return nil
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr, *syntax.DeclClause:
		return c
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			return firstCall(c.X)
		}
	}
	return nil
}

// assign notes one assignment. An array, or one element of it, has no single value, so the variable becomes unknown.
func (x *expander) assign(a *syntax.Assign, chain int, sure bool) {
	if a.Name == nil {
		return
	}
	as := assignment{word: a.Value, off: int(a.Pos().Offset()), sure: sure, chain: chain, adds: a.Append}
	if a.Index != nil || a.Array != nil {
		as.word = nil
	} else if a.Value == nil {
		as.word = &syntax.Word{}
	}
	x.text.vars[a.Name.Value] = append(x.text.vars[a.Name.Value], as)
}

// unknownVar notes that something unknown is assigned to a variable somewhere.
func (x *expander) unknownVar(name string) {
	x.text.vars[name] = append(x.text.vars[name], assignment{chain: -1})
}

// assignedByArgs notes the variables that builtins set by the name they are given: read x, printf -v x. Every word that could
// be a name counts, since a variable that is unknown for no reason costs a question, and one that is missed hides a path.
func (x *expander) assignedByArgs(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		return
	}
	switch c.Args[0].Lit() {
	case "read", "mapfile", "readarray", "printf", "getopts", "wait", "unset", "let", "declare", "local", "export", "readonly", "typeset",
		"builtin", "command", "coproc":
		for _, word := range c.Args[1:] {
			name, _, _ := strings.Cut(word.Lit(), "=")
			if syntax.ValidName(name) {
				x.unknownVar(name)
			}
		}
	}
}

// numbers are the shell's own variables whose values are numbers.
var numbers = map[string]bool{
	"?": true, "$": true, "!": true, "#": true, "RANDOM": true, "SRANDOM": true, "LINENO": true, "SECONDS": true, "UID": true, "EUID": true,
	"PPID": true, "BASHPID": true, "EPOCHSECONDS": true, "SHLVL": true, "OPTIND": true, "COLUMNS": true, "LINES": true,
}

// variable lists what $name may be at the present place.
// Bash has dynamic scope and no types, so the place of an assignment says little: all values that are assigned anywhere
// count, and the environment's too unless one assignment surely ran before.
func (x *expander) variable(name string, st *state) []Value {
	// bash -c 'rm $x' sees the outer x only if it was exported, so its value is not taken from there.
	if x.text.outer != nil && len(x.text.vars[name]) == 0 && len(x.text.outer[name]) > 0 {
		return anything
	}
	as := x.text.vars[name]
	if len(as) == 0 {
		switch {
		case numbers[name]:
			return []Value{{Text: Hole, Pattern: Hole}}
		case name == "HOME":
			return []Value{Literal(x.req.Home)}
		case name == "PWD" && !st.unknown:
			var out []Value
			for _, d := range st.dirs {
				out = append(out, Literal(d))
			}
			return out
		}
		return x.environment(name)
	}
	// x=$y y=$x would not end.
	if x.visiting[name] || len(x.text.vars) > maxVariables || len(as) > maxValues || x.paths.exhausted || !x.step() {
		return anything
	}
	x.visiting[name] = true
	defer delete(x.visiting, name)
	var out []Value
	sure := false
	for _, a := range as {
		// += would need every order in which the assignments may run.
		if a.word == nil || a.adds {
			return anything
		}
		// An assignment expands no braces in bash; here each of them is one more possible value.
		for _, field := range x.args(a.word, st) {
			out = append(out, field.Values...)
		}
		sure = sure || a.off < x.text.at && (a.sure || a.chain >= 0 && x.inChain(a.chain))
		if len(out) > maxValues {
			return anything
		}
	}
	if !sure {
		out = append(out, x.environment(name)...)
	}
	if len(out) == 0 || len(out) > maxValues {
		return anything
	}
	return out
}

// inChain reports whether the present place is in that && chain.
func (x *expander) inChain(chain int) bool {
	for _, c := range x.text.chainEnds {
		if c.chain == chain {
			return c.from <= x.text.at && x.text.at < c.to
		}
	}
	return false
}

// environment is what a variable holds that the script does not set. An unset one may be anything: the command may later
// run where it is set.
func (x *expander) environment(name string) []Value {
	if !syntax.ValidName(name) {
		return anything // positional parameters, $@, $*, $-, $0
	}
	if x.req.Getenv != nil {
		if s, ok := x.req.Getenv(name); ok {
			// A control character of the environment must not pass for a mark of this package.
			if strings.ContainsAny(s, Hole+Wild) {
				return anything
			}
			return []Value{Literal(s)}
		}
	}
	if x.inArith {
		return []Value{{}} // an unset name counts as 0
	}
	return anything
}

// param is what a parameter expansion may be: ${x}, ${x:-word}, ${x%.go}. Of forms that it does not compute it answers anything.
func (x *expander) param(p *syntax.ParamExp, st *state) []Value {
	// ${#x} is a number.
	if p.Length {
		return []Value{{Text: Hole, Pattern: Hole}}
	}
	// Slices and replacements can turn a harmless value into any other one: ${x:1}, ${x/a/b}.
	if p.Param == nil || p.Excl || p.Names != 0 || p.Index != nil || p.Slice != nil || p.Repl != nil || len(p.Modifiers) > 0 || p.Flags != nil {
		return anything
	}
	vals := x.variable(p.Param.Value, st)
	if p.Exp == nil {
		return vals
	}
	// other is the word of ${x:-word} and its like.
	other := func() []Value {
		if p.Exp.Word == nil {
			return []Value{{}}
		}
		return x.parts(p.Exp.Word.Parts, false, st)
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		var out []Value
		for _, v := range vals {
			if v.Text != "" {
				out = append(out, v)
			}
		}
		// x surely has a value only where each of its values holds a text and the script assigns none: then word is not used.
		if len(out) == 0 || len(out) < len(vals) || len(x.text.vars[p.Param.Value]) > 0 {
			out = append(out, other()...)
		}
		return out
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		// ${x:+word} is word or empty, never x.
		return append(other(), Value{})
	// ${x:?} ends the shell when x is empty, so an empty value does not reach the program.
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		var out []Value
		for _, v := range vals {
			if v.Text != "" {
				out = append(out, v)
			}
		}
		if len(out) == 0 {
			return anything
		}
		return out
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return x.trimmed(p, vals)
	}
	return anything
}

// trimmed computes ${x%.go}, ${x##*/} and the like where that is simple.
// Only literal patterns are cut: a wildcard may match more or less than it seems to.
func (x *expander) trimmed(p *syntax.ParamExp, vals []Value) []Value {
	if p.Exp.Word == nil {
		return vals
	}
	// ${x##*/} is the usual spelling of basename; its result holds no slash even where x holds a wildcard.
	if p.Exp.Op == syntax.RemLargePrefix && p.Exp.Word.Lit() == "*/" {
		var out []Value
		for _, v := range vals {
			last := v.Text[strings.LastIndexByte(v.Text, '/')+1:]
			switch {
			case !v.Known():
				return anything
			case v.Exact():
				out = append(out, Literal(last))
			case last == "":
				out = append(out, Value{})
			default:
				out = append(out, Value{Text: Hole, Pattern: Hole}) // a name: neither "." nor ".." comes from a wildcard
			}
		}
		return out
	}
	cut := p.Exp.Word.Lit()
	if cut == "" || strings.ContainsAny(cut, `*?[\`) {
		return anything
	}
	var out []Value
	for _, v := range vals {
		if !v.Known() {
			return anything
		}
		if p.Exp.Op == syntax.RemSmallSuffix || p.Exp.Op == syntax.RemLargeSuffix {
			v.Text, v.Pattern = strings.TrimSuffix(v.Text, cut), strings.TrimSuffix(v.Pattern, cut)
		} else {
			v.Text, v.Pattern = strings.TrimPrefix(v.Text, cut), strings.TrimPrefix(v.Pattern, cut)
		}
		out = append(out, v)
	}
	return out
}
