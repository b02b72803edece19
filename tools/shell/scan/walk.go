package scan

import (
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// maxSteps bounds the statements, words and variables that are looked at, loops and functions included. Functions that call
// each other twice, and variables that hold each other twice, would take exponential time.
const maxSteps = 60_000

// walkTime bounds the whole walk. Ordinary commands take a fraction of a millisecond.
const walkTime = 40 * time.Millisecond

// maxDepth bounds scripts within scripts (sh -c "sh -c …") and functions that call functions.
const maxDepth = 12

// walker goes through a script as bash would, but takes every branch. It serves one analysis and one goroutine.
//
// Its parts own what they need to know: words what expansion runs, expander what words may be, accesses what is touched, mover
// where the shell is. The walker itself follows the commands: the order in which they run, what a call starts, which functions there
// are. Its methods are in walk.go (statements), call.go, functions.go, builtins.go and traps.go.
type walker struct {
	*words
	mover mover
	traps []trapped // texts that run at a signal or when the shell ends

	inFunc int // functions around what is walked
	depth  int // see maxDepth
}

// input is where a command's stdin comes from.
// A script may come through it: echo 'rm x' | sh.
type input struct {
	kind    string       // "", "pipe", "here", "file"
	from    *syntax.Stmt // of a pipe
	text    string       // of a here document or string, and of a pipe from echo, printf or cat <<
	decoded string       // the same to a shell whose echo decodes escapes
	ok      bool         // text is known
}

// newWalker makes the walker of one analysis, whose results go to a.
func newWalker(r Request, p Programs, a *Analysis) *walker {
	rep := &report{a: a, calls: map[string]int{}}
	x := &expander{accesses: &accesses{report: rep, paths: newPaths(r)}, req: r, programs: p, visiting: map[string]bool{}, funcs: map[string][]*function{}}
	w := &walker{words: &words{expander: x}, mover: mover{x: x}}
	w.commands = w
	return w
}

// subshell walks statements in a shell of their own: where they go and what they set ends with them.
func (w *walker) subshell(list []*syntax.Stmt, st state) { w.stmts(list, &st, input{}) }

// script analyses a text as bash: the command itself, or a string given to a shell.
func (w *walker) script(text string, st *state) {
	if w.depth >= maxDepth {
		w.opaque("scripts are nested too deeply")
		return
	}
	if len(text) > MaxCommand {
		w.opaque("a script in it is too long")
		return
	}
	limit := max(parseTime, w.req.Patience)
	file, err := parse(text, limit)
	if err != nil {
		w.opaque("it cannot be parsed: " + err.Error())
		w.salvage(text)
		return
	}
	// The walk continues: the calls that one parser sees are still worth denying.
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

// stmts walks statements in order. It leaves the state after the last in st, and returns the state when the last failed.
// A statement in the middle may fail unnoticed, so the next one starts from both states.
func (w *walker) stmts(list []*syntax.Stmt, st *state, in input) state {
	fail := *st
	for _, s := range list {
		fail = w.stmt(s, st, in)
		// Only the last failure is returned; that of one before counts for the statements that follow it.
		if s != list[len(list)-1] {
			*st = merge(*st, fail)
		}
	}
	return fail
}

// stmt walks one statement: st becomes the state after its success, the result is the state after its failure.
func (w *walker) stmt(s *syntax.Stmt, st *state, in input) state {
	if s == nil || !w.step() {
		return *st
	}
	before := *st
	in = w.redirects(s, st, in)
	fail := w.command(s, st, in)
	switch {
	// A background command is a subshell: cd x & leaves this shell where it is, and its failure is not seen.
	case s.Background || s.Coprocess:
		*st = before
		return before
	case s.Negated:
		*st, fail = fail, *st
	}
	return fail
}

// command walks the command of a statement, without its redirections. Like stmt it leaves the state after success in st
// and returns the one after failure. A construct that it does not know is opaque: new syntax must not pass unseen.
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
	// What a subshell changes of the folder ends with it: (cd x) leaves this shell where it is.
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
			// A loop may set any variable: for PATH in /tmp/evil; do ls; done.
			w.setVariable(l.Name.Value, nil)
		case *syntax.CStyleLoop:
			w.arithm(l.Init, st)
			w.arithm(l.Cond, st)
			w.arithm(l.Post, st)
		}
		loop(st, func(st *state) { w.stmts(c.Do, st, in) })
	// No pattern may match, so the state before the case stays among the results.
	case *syntax.CaseClause:
		w.inside(c.Word, st)
		after := *st
		for _, item := range c.Items {
			// Patterns are expanded, so a substitution in one runs: case x in $(cmd)) …
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
			// Bash takes -- for the end of the options of time; the parser takes it for the program, and what follows for arguments.
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

// binary walks &&, || and pipes. The right side of && starts where the left side succeeded, that of || where it failed:
// "cd x || exit; rm *" removes in x only.
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
	// lastpipe would run the last part in this shell; setting it is opaque.
	default: // each side of a pipe is a shell of its own
		left, right := *st, *st
		w.stmt(c.X, &left, in)
		from := c.X
		// a | b | c is (a | b) | c to the parser; what c reads comes from b.
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

// ifClause walks both branches: the first from where the condition succeeded, the other from where it failed.
func (w *walker) ifClause(c *syntax.IfClause, st *state, in input) {
	other := *st
	if len(c.Cond) > 0 {
		other = w.stmts(c.Cond, st, in)
	}
	fail := w.stmts(c.Then, st, in)
	*st = merge(*st, fail)
	switch {
	// To the parser elif is an IfClause in Else with a condition, and else one without.
	case c.Else == nil:
	case len(c.Else.Cond) == 0:
		fail = w.stmts(c.Else.Then, &other, in)
		other = merge(other, fail)
	default:
		w.ifClause(c.Else, &other, in)
	}
	*st = merge(*st, other)
}

// loop walks a body until the state stays the same, twice at most. When it still changes, the body is walked once more from
// an unknown folder, in which every relative path makes the command opaque.
// "while cd ..; do …" is in another folder in every round: no number of rounds would find them all.
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
