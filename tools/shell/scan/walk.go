package scan

import (
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// maxSteps bounds the statements, words and variables that are walked, each round of a loop and each call of a function
// counted. Functions that call each other twice, and variables that hold each other twice, would take exponential time.
const maxSteps = 60_000

// walkTime bounds the whole walk. Ordinary commands take a fraction of a millisecond. Request.Patience raises it.
const walkTime = 40 * time.Millisecond

// maxDepth bounds scripts within scripts (sh -c "sh -c …") and functions that call functions.
const maxDepth = 12

// walker walks a script as bash would run it, but takes every branch. It serves one analysis and one goroutine.
//
// The embedded types do the rest: words walks substitutions and arithmetic, expander computes the values of words, accesses
// collects the paths, report the calls and reasons; mover follows cd. The methods of walker itself are in walk.go
// (statements), call.go, functions.go, builtins.go and traps.go.
type walker struct {
	*words
	mover mover
	traps []trapped // scripts that run at a signal or when the shell ends

	inFunc int // how many function bodies enclose the present statement
	depth  int // how many scripts and function calls enclose it; see maxDepth
}

// input is where the standard input of a command comes from. It may be a script: echo 'rm x' | sh.
type input struct {
	kind    string       // "", "pipe", "here", "file"
	from    *syntax.Stmt // the left side of a pipe
	text    string       // of a here document or string, and of a pipe from echo, printf or cat <<
	decoded string       // text as produced by a shell whose echo decodes escapes; of a pipe only
	ok      bool         // text is certainly the input
}

// newWalker returns the walker for one analysis. The results go to a.
func newWalker(r Request, p Programs, a *Analysis) *walker {
	rep := &report{a: a, calls: map[string]int{}}
	x := &expander{accesses: &accesses{report: rep, paths: newPaths(r)}, req: r, programs: p, visiting: map[string]bool{}, funcs: map[string][]*function{}}
	w := &walker{words: &words{expander: x}, mover: mover{x: x}}
	w.commands = w
	return w
}

// subshell walks statements in a subshell: a cd in them does not move the shell around it. st is a copy.
func (w *walker) subshell(list []*syntax.Stmt, st state) { w.stmts(list, &st, input{}) }

// script parses and walks a text as bash: the command itself, or a string given to a shell. st becomes the state after it.
func (w *walker) script(text string, st *state) {
	if w.depth >= maxDepth {
		w.opaque("scripts are nested too deeply")
		return
	}
	if len(text) > MaxCommand {
		w.opaque("a script in it is too long")
		return
	}
	limit := max(parseTime, w.req.limit)
	file, err := parse(text, limit)
	if err != nil {
		w.opaque("it cannot be parsed: " + err.Error())
		w.salvage(text)
		return
	}
	// The walk continues, so that rules that deny can match the calls that the first parser sees.
	if why := disagreement(file, text, limit, w.depth == 0); why != "" {
		w.opaque(why)
	}
	before := w.text
	w.text = scriptText{src: text, outer: around(before.vars, before.outer)}
	w.depth++
	w.text.collect(file)
	w.stmts(file.Stmts, st, input{})
	w.depth--
	w.text = before
}

// stmts walks statements in order: st becomes the state after the last one succeeds, the result is the state after it fails.
// A statement in the middle may fail and the script goes on, so the next one starts from both of its states.
func (w *walker) stmts(list []*syntax.Stmt, st *state, in input) state {
	fail := *st
	for _, s := range list {
		fail = w.stmt(s, st, in)
		// The last statement keeps the two states apart, for an && or || after the list.
		if s != list[len(list)-1] {
			*st = merge(*st, fail)
		}
	}
	return fail
}

// stmt walks one statement: st becomes the state after it succeeds, the result is the state after it fails.
func (w *walker) stmt(s *syntax.Stmt, st *state, in input) state {
	if s == nil || !w.step() {
		return *st
	}
	before := *st
	in = w.redirects(s, st, in)
	fail := w.command(s, st, in)
	switch {
	// A background command is a subshell: "cd x &" leaves this shell where it is.
	case s.Background || s.Coprocess:
		*st = before
		return before
	case s.Negated:
		*st, fail = fail, *st
	}
	return fail
}

// command walks the command of a statement, without its redirections, with the same states as stmt. A construct that it does
// not know makes the command opaque, so that syntax added to the parser cannot pass unnoticed.
func (w *walker) command(s *syntax.Stmt, st *state, in input) state {
	switch c := s.Cmd.(type) {
	case nil:
		return *st
	case *syntax.CallExpr:
		return w.callExpr(s, c, st, in)
	case *syntax.BinaryCmd:
		return w.binary(c, st, in)
	case *syntax.Block:
		return w.stmts(c.Stmts, st, in)
	// A copy of the state, because (cd x) leaves this shell where it is.
	case *syntax.Subshell:
		inner := *st
		w.stmts(c.Stmts, &inner, in)
	case *syntax.IfClause:
		w.ifClause(c, st, in)
	case *syntax.WhileClause:
		loop(st, func(st *state) {
			fail := w.stmts(c.Cond, st, in)
			after := merge(*st, fail)
			w.stmts(c.Do, st, in)
			*st = merge(*st, after)
		})
	case *syntax.ForClause:
		switch l := c.Loop.(type) {
		case *syntax.WordIter:
			for _, item := range l.Items {
				w.inside(item, st)
			}
			w.lists(l.Items, st)
			// The loop variable may be one that matters: for PATH in /tmp/evil; do ls; done.
			w.setVariable(l.Name.Value, nil)
		case *syntax.CStyleLoop:
			w.arithm(l.Init, st)
			w.arithm(l.Cond, st)
			w.arithm(l.Post, st)
		}
		loop(st, func(st *state) { w.stmts(c.Do, st, in) })
	// Perhaps no pattern matches, so the state before the case is merged into the result.
	case *syntax.CaseClause:
		w.inside(c.Word, st)
		after := *st
		for _, item := range c.Items {
			// Bash expands patterns, so a substitution in one runs: case x in $(cmd)) …
			for _, p := range item.Patterns {
				w.inside(p, st)
			}
			branch := *st
			fail := w.stmts(item.Stmts, &branch, in)
			after = merge(after, merge(branch, fail))
		}
		*st = after
	case *syntax.FuncDecl:
		if b, ok := declaredFirst(c); ok {
			return w.binary(b, st, in)
		}
		w.function(c, st)
	case *syntax.ArithmCmd:
		w.arithm(c.X, st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithm(x, st)
		}
	case *syntax.TestClause:
		w.test(c.X, st)
	case *syntax.DeclClause:
		w.declare(c, st)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			// In "time -- rm x" bash runs rm, since -- ends the options of time; the parser takes -- for the program.
			if call, ok := c.Stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == "--" {
				w.opaque("time -- hides what runs from a parser")
				w.salvage(strings.TrimPrefix(w.text.src[call.Pos().Offset():call.End().Offset()], "--"))
			}
			return w.stmt(c.Stmt, st, in)
		}
	// A coprocess runs in a subshell.
	case *syntax.CoprocClause:
		inner := *st
		w.stmt(c.Stmt, &inner, in)
	default:
		w.opaque("it holds a construct that is not understood")
	}
	return *st
}

// binary walks &&, || and pipes. The right side of && starts from the state after the left side succeeds, that of || from the
// state after it fails: so in "cd x || exit; rm *" rm runs in x only.
func (w *walker) binary(c *syntax.BinaryCmd, st *state, in input) state {
	switch c.Op {
	case syntax.AndStmt:
		fail := w.stmt(c.X, st, in)
		return merge(fail, w.stmt(c.Y, st, in))
	case syntax.OrStmt:
		other := w.stmt(c.X, st, in)
		fail := w.stmt(c.Y, &other, in)
		*st = merge(*st, other)
		return fail
	// Each side of a pipe runs in a subshell. The option lastpipe would change that; a command that sets it is opaque.
	default:
		left, right := *st, *st
		w.stmt(c.X, &left, in)
		from := c.X
		// The parser groups a | b | c as (a | b) | c; the input of c comes from b.
		for {
			b, ok := from.Cmd.(*syntax.BinaryCmd)
			if !ok || b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
				break
			}
			from = b.Y
		}
		piped := input{kind: "pipe", from: from}
		if p, ok := w.prints(from, st); ok {
			piped.text, piped.decoded, piped.ok = p.text, p.decoded, p.same
		}
		w.stmt(c.Y, &right, piped)
		return *st
	}
}

// ifClause walks both branches, the first from the state after the condition succeeds, the other from that after it fails.
func (w *walker) ifClause(c *syntax.IfClause, st *state, in input) {
	other := *st
	if len(c.Cond) > 0 {
		other = w.stmts(c.Cond, st, in)
	}
	fail := w.stmts(c.Then, st, in)
	*st = merge(*st, fail)
	switch {
	// Else is an IfClause: with a condition for elif, without one for else.
	case c.Else == nil:
	case len(c.Else.Cond) == 0:
		fail = w.stmts(c.Else.Then, &other, in)
		other = merge(other, fail)
	default:
		w.ifClause(c.Else, &other, in)
	}
	*st = merge(*st, other)
}

// loop walks the body of a loop until the state stays the same, twice at most. If it still changes, as in "while cd ..; do …",
// which is in another folder in every round, the body is walked once more from an unknown folder, in which every relative
// path makes the command opaque.
func loop(st *state, body func(*state)) {
	before := *st
	body(st)
	*st = merge(before, *st)
	if st.same(&before) {
		return
	}
	again := *st
	body(st)
	*st = merge(again, *st)
	if !st.same(&again) {
		st.unknown = true
		body(st)
	}
}
