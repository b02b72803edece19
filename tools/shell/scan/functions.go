package scan

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// function is one declaration of a shell function.
type function struct {
	body *syntax.Stmt // with its redirections
	text scriptText   // the script that declares it
}

// declaredFirst regroups f() { …; } && more, and f() { …; } | more. Bash declares f and then runs more; the parser
// makes more a part of the body of f. The result is the BinaryCmd with the declaration on its left side, ok false if there is none.
func declaredFirst(c *syntax.FuncDecl) (*syntax.BinaryCmd, bool) {
	if c.Body == nil {
		return nil, false
	}
	b, ok := c.Body.Cmd.(*syntax.BinaryCmd)
	if !ok {
		return nil, false
	}
	left := *c
	left.Body = b.X
	out := *b
	out.X = &syntax.Stmt{Cmd: &left, Position: c.Pos()}
	return &out, true
}

// function registers a declaration and walks the body at once. The function may be called under a name that is only known
// at run time, so what the body runs and touches counts even without a visible call.
func (w *walker) function(c *syntax.FuncDecl, st *state) {
	if c.Name == nil {
		w.opaque("it declares a function without a name")
		return
	}
	name := c.Name.Value
	w.funcs[name] = append(w.funcs[name], &function{c.Body, w.text})
	st.funcs = union(st.funcs, []string{name})
	// A copy, because a cd in the body takes effect only when the function is called.
	inner := *st
	w.inFunc++
	w.stmt(c.Body, &inner, input{})
	w.inFunc--
}

// calledFunction walks a call of a function. A name may be declared in several branches, so it walks every body found so far
// and merges the states after them. sure is true when the name certainly means the function. It may mean a program instead when
// the declaration depends on a condition, is in a subshell or was unset; the caller then walks the call as a program too.
// For the name of a builtin sure is never true.
func (w *walker) calledFunction(name string, c *Visit) (after state, sure bool) {
	sure = slices.Contains(c.st.funcs, name) && !isBuiltin(name)
	after = *c.st
	// Every body starts from the state of the call, not from where the body before it ended: only one of them runs.
	for i, f := range w.funcs[name] {
		st := *c.st
		w.invoke(f, &st, c.in)
		if i > 0 {
			st = merge(after, st)
		}
		after = st
	}
	return after, sure
}

// invoke walks a function's body where it is called.
func (w *walker) invoke(f *function, st *state, in input) {
	if w.depth >= maxDepth {
		w.opaque("functions call each other too deeply")
		return
	}
	// Offsets and variables of the body belong to the script that declares it, not to the caller's.
	before := w.text
	w.text.src, w.text.vars, w.text.chainEnds = f.text.src, f.text.vars, f.text.chainEnds
	w.depth++
	w.inFunc++
	fail := w.stmt(f.body, st, in)
	w.inFunc--
	*st = merge(*st, fail)
	st.dead = false // return only ends the function; exit sets dead too, and then walking on can only add approval requests
	w.depth--
	w.text = before
}
