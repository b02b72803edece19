package scan

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// function is a shell function with the script it is in.
type function struct {
	body *syntax.Stmt // with its redirections
	text scriptText   // where it was declared
}

// declaredFirst splits f() { …; } && more, and f() { …; } | more, as bash does: it declares f and then runs more. The
// parser takes more for a part of the body, where it would be looked at only when f is called.
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

// function notes a declaration, and walks the body at once: it may be called by a name that cannot be read off the
// command, so what it runs and touches counts even without a visible call.
func (w *walker) function(c *syntax.FuncDecl, st *state) {
	if c.Name == nil {
		w.opaque("it declares a function without a name")
		return
	}
	name := c.Name.Value
	w.funcs[name] = append(w.funcs[name], &function{c.Body, w.text})
	st.funcs = union(st.funcs, []string{name})
	// The body is walked from a copy: a declaration alone moves the shell nowhere.
	inner := *st
	w.inFunc++
	w.stmt(c.Body, &inner, input{})
	w.inFunc--
}

// calledFunction walks every body that a function of this name has anywhere in the script. sure is true when the name can
// only mean the function. It may mean the program instead when the declaration depends on a condition, is in a subshell or in
// another shell, or was unset: the caller then looks at the program too. Of the name of a builtin sure is never true.
// A name may be declared in two branches; whichever ran last counts in bash, so all bodies are walked and merged.
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
	// The body is a part of the script it was declared in: its offsets and variables are those of that text, not the caller's.
	before := w.text
	w.text.src, w.text.vars, w.text.chainEnds = f.text.src, f.text.vars, f.text.chainEnds
	w.depth++
	w.inFunc++
	fail := w.stmt(f.body, st, in)
	w.inFunc--
	*st = merge(*st, fail)
	st.dead = false // return leaves the function only; exit is not told apart, so what follows is looked at as well
	w.depth--
	w.text = before
}
