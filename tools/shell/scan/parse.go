package scan

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// parseTime bounds each of the two parsers. Ordinary commands take microseconds; only hostile ones come near the limit.
// Request.Patience raises it.
const parseTime = 25 * time.Millisecond

// maxNesting is how deep compound commands, substitutions and brackets may nest. Both the parser and the walk recurse, and a
// Go stack overflow ends the process: it cannot be recovered from, unlike a panic. What people write nests about ten deep.
const maxNesting = 100

// maxFrames is how many stack frames the parser may use: about 40 for each level of arithmetic, 5 to 10 for each level of any
// other construct (measured with v3.14.1 of the parser). It catches nested keywords, which the function nesting cannot count:
// "if" is a keyword only where a command begins.
const maxFrames = 50 * maxNesting

// errDeep is what parse returns for a text that exceeds maxNesting or maxFrames. It is shown to the person.
var errDeep = errors.New("it is nested too deeply to be understood")

// errSlow is what parse returns when the limit of time is reached. It is shown to the person.
var errSlow = errors.New("it takes too long to parse")

// parse parses bash with mvdan.cc/sh, whose tree the walker uses. A second parser (see witness) must find commands at the same
// offsets, so that a bug in one parser does not hide a command.
func parse(text string, limit time.Duration) (*syntax.File, error) {
	// nesting cannot count backquotes, which open and close with the same character; a pair is at most one level.
	if nesting(text) > maxNesting || strings.Count(text, "`") > 2*maxNesting {
		return nil, errDeep
	}
	p := syntax.NewParser(syntax.Variant(syntax.LangBash))
	file, err := p.Parse(&boundedReader{text: text, end: time.Now().Add(limit)}, "")
	if err == nil && treeNesting(file) > maxNesting {
		return nil, errDeep
	}
	return file, err
}

// boundedReader stops the parser, which accepts neither a context nor a limit, by failing a read when the time is up or the stack
// is too deep. It returns at most 1,024 bytes at a time, so that the parser reads often; one such piece nests a few hundred
// levels at most (f()f()f()…).
type boundedReader struct {
	text string
	end  time.Time
}

// Read returns the next piece of the text, errSlow after end, or errDeep.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	if time.Now().After(r.end) {
		return 0, errSlow
	}
	// The parser calls Read from the depth that it has reached, so the number of frames on the stack shows that depth.
	var frames [maxFrames]uintptr
	if runtime.Callers(0, frames[:]) == maxFrames {
		return 0, errDeep
	}
	n := copy(p[:min(len(p), 1024)], r.text)
	r.text = r.text[n:]
	return n, nil
}

// treeNesting is how deep a parsed text nests. Lists, pipes and chains of && and || do not count: a hundred calls in a row
// are long, not deep.
func treeNesting(file *syntax.File) int {
	depth, deepest := 0, 0
	var counted []bool // for each enclosing node, whether it counts
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil { // the end of the node that was entered last
			if counted[len(counted)-1] {
				depth--
			}
			counted = counted[:len(counted)-1]
			return true
		}
		deeper := nests(n)
		if deeper {
			depth++
			deepest = max(deepest, depth)
		}
		counted = append(counted, deeper)
		return true
	})
	return deepest
}

// nests reports whether a node adds a level of nesting.
func nests(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.IfClause: // an else branch is an IfClause without a condition, in the IfClause of the if
		return len(n.Cond) > 0
	case *syntax.FuncDecl: // the block of f() { …; } counts already
		_, block := n.Body.Cmd.(*syntax.Block)
		return !block
	case *syntax.Block, *syntax.Subshell, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause,
		*syntax.TimeClause, *syntax.CoprocClause, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp,
		*syntax.ParenArithm, *syntax.UnaryArithm, *syntax.ParenTest, *syntax.UnaryTest:
		return true
	}
	return false
}

// nesting is an estimate of how deep brackets nest in a text, cheap enough to run before parsing. It ignores quotes: an
// opening bracket in quotes makes it too high, a closing one too low. Keywords are not counted. maxFrames and treeNesting
// catch the texts for which it is too low.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return deepest
}
