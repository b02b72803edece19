package scan

import (
	"maps"
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

// collect finds all assignments of a script. It runs before the walk because
// a loop or a function may use a value that is assigned further down.
func (t *scriptText) collect(f *syntax.File) {
	t.vars = variables{}
	for i, s := range f.Stmts {
		leaves := map[syntax.Node]bool{}
		// One call that is not joined by && spoils the chain: x=1 || y=2 && rm $x may reach rm without the assignment.
		if chain(s, leaves) {
			t.chainEnds = append(t.chainEnds, chainSpan{i, int(s.Pos().Offset()), int(s.End().Offset())})
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
					t.assign(a, in, syntax.Command(n) == first && len(n.Args) == 0)
				}
				t.assignedByArgs(n)
			case *syntax.DeclClause:
				for _, a := range n.Args {
					if a.Name != nil && !a.Naked {
						t.assign(a, in, syntax.Command(n) == first)
					}
				}
			// for x in a b: x has one of these values from here on, so the one of the environment does not count.
			case *syntax.WordIter:
				for _, item := range n.Items {
					t.vars[n.Name.Value] = append(t.vars[n.Name.Value], assignment{word: item, off: int(n.Pos().Offset()), sure: true, chain: -1})
				}
				// for x; do takes the positional parameters.
				if len(n.Items) == 0 {
					t.unknownVar(n.Name.Value)
				}
			// ${x:=word} assigns only when x is unset, so it is never sure.
			case *syntax.ParamExp:
				if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
					t.vars[n.Param.Value] = append(t.vars[n.Param.Value], assignment{word: n.Exp.Word, off: int(n.Pos().Offset()), chain: -1})
				}
			// (( x = 1 )) and its like leave a number in x.
			case *syntax.BinaryArithm:
				if n.Op >= syntax.Assgn && n.Op <= syntax.ShrAssgn || n.Op == syntax.Assgn {
					if name, ok := n.X.(*syntax.Word); ok {
						t.vars[name.Lit()] = append(t.vars[name.Lit()], assignment{word: numberWord, off: int(n.Pos().Offset()), chain: -1})
					}
				}
			case *syntax.UnaryArithm:
				if name, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.Inc || n.Op == syntax.Dec) {
					t.vars[name.Lit()] = append(t.vars[name.Lit()], assignment{word: numberWord, off: int(n.Pos().Offset()), chain: -1})
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
func (t *scriptText) assign(a *syntax.Assign, chain int, sure bool) {
	if a.Name == nil {
		return
	}
	as := assignment{word: a.Value, off: int(a.Pos().Offset()), sure: sure, chain: chain, adds: a.Append}
	if a.Index != nil || a.Array != nil {
		as.word = nil
	} else if a.Value == nil {
		as.word = &syntax.Word{}
	}
	t.vars[a.Name.Value] = append(t.vars[a.Name.Value], as)
}

// unknownVar notes that something unknown is assigned to a variable somewhere.
func (t *scriptText) unknownVar(name string) {
	t.vars[name] = append(t.vars[name], assignment{chain: -1})
}

// assignedByArgs notes the variables that builtins set by the name they are given: read x, printf -v x. Every word that could
// be a name counts, since a variable that is unknown for no reason costs a question, and one that is missed hides a path.
func (t *scriptText) assignedByArgs(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		return
	}
	switch c.Args[0].Lit() {
	case "read", "mapfile", "readarray", "printf", "getopts", "wait", "unset", "let", "declare", "local", "export", "readonly", "typeset",
		"builtin", "command", "coproc":
		for _, word := range c.Args[1:] {
			name, _, _ := strings.Cut(word.Lit(), "=")
			if syntax.ValidName(name) {
				t.unknownVar(name)
			}
		}
	}
}

// inChain reports whether the present place is in that && chain.
func (t *scriptText) inChain(chain int) bool {
	for _, c := range t.chainEnds {
		if c.chain == chain {
			return c.from <= t.at && t.at < c.to
		}
	}
	return false
}

// source is the text of a node in the script that is being walked; empty when the node's offsets do not fit that text. The
// offsets count bytes.
func (t *scriptText) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(t.src) || from > to {
		return ""
	}
	return t.src[from:to]
}

// around joins the variables of all scripts around one. A nested script (bash -c '…$x…') may have been given the outer
// value or not, so such a variable has no known value in it.
func around(vars, outer variables) variables {
	if len(outer) == 0 || len(vars) == 0 {
		if len(vars) == 0 {
			return outer
		}
		return vars
	}
	out := maps.Clone(outer)
	maps.Copy(out, vars)
	return out
}
