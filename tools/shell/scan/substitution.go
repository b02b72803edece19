package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// substituted is what a command substitution may print. When answer does not know it, the value is unknown, and the output of
// echo and printf is kept in Value.printed for rules that deny.
func (x *expander) substituted(c *syntax.CmdSubst, st *state) []Value {
	vals := x.answer(c, st)
	if len(vals) != 1 || vals[0].Text != Wild {
		return vals
	}
	if p, ok := x.printsAll(c.Stmts, st); ok {
		// The shell removes all newlines at the end of the output.
		return []Value{{Text: Wild, Pattern: Wild, printed: strings.TrimRight(p.text, "\n"), hasPrinted: true}}
	}
	return vals
}

// answer is what a command substitution may print, for the few forms that are common in paths: $(pwd), $(mktemp),
// $(git rev-parse --show-toplevel), and programs that print a number, a date or a name without a slash
// (Programs.PlainAnswer). Of all others it returns anything.
func (x *expander) answer(c *syntax.CmdSubst, st *state) []Value {
	if len(c.Stmts) != 1 {
		return anything
	}
	// A number has no slash, so $(ls | wc -l) within a path does not make the command opaque.
	if x.counts(c.Stmts[0]) {
		return []Value{{Text: Hole, Pattern: Hole}}
	}
	// A redirection may send the output elsewhere, and the substitution is then empty.
	if len(c.Stmts[0].Redirs) > 0 {
		return anything
	}
	// An assignment in front may change what the program answers: GIT_DIR=/x git rev-parse --show-toplevel.
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return anything
	}
	// substituted leaves these to printsAll. Expanding their words here too would double the work with each level of nesting.
	switch call.Args[0].Lit() {
	case "echo", "printf", "cat":
		return anything
	}
	var words []string
	for _, word := range call.Args {
		lit := word.Lit()
		if lit == "" {
			if s, ok := x.argOf(word, "", st).One(); ok {
				lit = s
			} else {
				return anything
			}
		}
		words = append(words, lit)
	}
	text := strings.Join(words, " ")
	switch {
	// A function of this name may print anything.
	case x.funcs[words[0]] != nil:
		return anything
	case text == "pwd" && !st.unknown:
		var out []Value
		for _, d := range st.dirs {
			out = append(out, Literal(d))
		}
		return out
	// mktemp creates a name without a slash in the folder for temporary files (mktemp(1)).
	case text == "mktemp" || text == "mktemp -d":
		return []Value{{Text: x.req.tempDir() + "/" + Hole, Pattern: escapeGlob(x.req.tempDir()) + "/" + Hole}}
	// Only in the directory of the request: after a cd, the shell may be in another repository.
	case text == "git rev-parse --show-toplevel" && x.home(st):
		return []Value{Literal(x.req.Root)}
	case x.programs.PlainAnswer(words):
		return []Value{{Text: Hole, Pattern: Hole}}
	}
	return anything
}

// counts reports whether a statement prints one number: wc -l at the end of a pipe or with its input redirected. With a file
// as argument, wc prints the file's name after the number, so that form does not count.
func (x *expander) counts(s *syntax.Stmt) bool {
	call, _ := s.Cmd.(*syntax.CallExpr)
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe && len(s.Redirs) == 0 {
		call, _ = b.Y.Cmd.(*syntax.CallExpr)
	} else if len(s.Redirs) != 1 || s.Redirs[0].Op != syntax.RdrIn {
		return false
	}
	if call == nil || len(call.Args) != 2 || call.Args[0].Lit() != "wc" || x.funcs["wc"] != nil {
		return false
	}
	switch call.Args[1].Lit() {
	case "-l", "-c", "-w", "-m":
		return true
	}
	return false
}

// home reports whether the shell is certainly in Request.Dir. It does not mean the home folder of the user.
func (x *expander) home(st *state) bool {
	return !st.unknown && len(st.dirs) == 1 && st.dirs[0] == x.req.Dir
}
