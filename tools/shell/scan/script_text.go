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
	sure  bool // it always runs, and runs before everything after it in the text
	chain int  // index of its top-level statement when that is a chain of && (see chain); else -1
	adds  bool // +=, which appends to the value before
}

// variables are all assignments of a script, by name of the variable. A variable may have any value that the script assigns
// to it anywhere; so no order of loops and function calls needs to be followed.
type variables map[string][]assignment

// scriptText is the script that is being walked and the assignments in it. A nested script (bash -c) has its own.
type scriptText struct {
	src       string
	vars      variables
	outer     variables // assignments in the enclosing scripts
	chainEnds []chainSpan
	at        int // offset of the call that is being walked, in bytes
}

// collect finds all assignments of a script. It must run before the walk, because a loop or a function may use a value that is
// assigned further down.
func (t *scriptText) collect(f *syntax.File) {
	t.vars = variables{}
	for i, s := range f.Stmts {
		leaves := map[syntax.Node]bool{}
		// A chain counts only if all of its operators are &&: in x=1 || y=2 && rm $x, y=2 may be skipped.
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
				// An assignment in front of a program ends with it; in front of a function it may stay.
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
			// for x in a b: from here on x has one of these values, and no longer that of the environment.
			case *syntax.WordIter:
				for _, item := range n.Items {
					t.vars[n.Name.Value] = append(t.vars[n.Name.Value], assignment{word: item, off: int(n.Pos().Offset()), sure: true, chain: -1})
				}
				// "for x; do" loops over the positional parameters.
				if len(n.Items) == 0 {
					t.unknownVar(n.Name.Value)
				}
			// ${x:=word} assigns only when x is unset, so it is never sure.
			case *syntax.ParamExp:
				if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
					t.vars[n.Param.Value] = append(t.vars[n.Param.Value], assignment{word: n.Exp.Word, off: int(n.Pos().Offset()), chain: -1})
				}
			// (( x = 1 )) and its like set x to a number.
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

// numberWord is a word whose value is an unknown number: part returns a Hole for every ArithmExp.
var numberWord = &syntax.Word{Parts: []syntax.WordPart{&syntax.ArithmExp{}}}

// chainSpan is a chain of &&: the index of its top-level statement, and the range [from, to) of its bytes in the script.
type chainSpan struct{ chain, from, to int }

// chain reports whether a statement consists of commands joined by && only, and collects its simple commands in leaves. Each
// of them runs only when all before it have succeeded, so an earlier assignment of the chain has certainly happened. A compound
// statement may be part of the chain, but its calls are not leaves: its body may not run.
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
		return true // it too runs only after the commands before it have succeeded
	}
	return false
}

// firstCall is the call that always runs when the statement runs; nil when there is none, as in a compound statement.
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

// unknownVar notes an assignment of an unknown value to a variable.
func (t *scriptText) unknownVar(name string) {
	t.vars[name] = append(t.vars[name], assignment{chain: -1})
}

// assignedByArgs notes the variables that a builtin sets by name: read x, printf -v x. Every argument that could be a name
// counts: one too many costs an approval request, one too few would hide which path is touched.
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

// inChain reports whether the call that is being walked is in this chain of &&.
func (t *scriptText) inChain(chain int) bool {
	for _, c := range t.chainEnds {
		if c.chain == chain {
			return c.from <= t.at && t.at < c.to
		}
	}
	return false
}

// source is the text of a node as written; empty when the node's byte offsets are not within the script that is being walked.
func (t *scriptText) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(t.src) || from > to {
		return ""
	}
	return t.src[from:to]
}

// around joins the variables of all enclosing scripts, for scriptText.outer. A nested script (bash -c '…$x…') sees the outer
// x only if it is exported, so there the value of x is unknown.
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
