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

// maxFrames is how many calls deep the parser may be: about 40 for each level of arithmetic, 5 to 10 for one of any other
// construct (measured with v3.14.1 of the parser). It bounds what nesting cannot count before a text is parsed: "if" is a
// keyword only where a command begins.
const maxFrames = 50 * maxNesting

// errDeep is the answer to a text that exceeds maxNesting.
var errDeep = errors.New("it is nested too deeply to be understood")

// errSlow is what the parser returns when boundedReader refused to continue; its text ends up among the reasons for a person.
var errSlow = errors.New("it takes too long to parse")

// parse is the first of two parsers: mvdan.cc/sh, whose tree is walked. The second one (see witness) must agree with it on
// where commands begin, so that a mistake of one parser does not hide a command.
func parse(text string, limit time.Duration) (*syntax.File, error) {
	// Backquotes open and close with the same character, so they are counted in pairs.
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

// boundedReader stops the parser by failing a read when its time is up or its stack too deep: the parser takes neither a
// context nor a limit. It hands the text out in pieces of 1,024 bytes so that there is a read to fail; one piece nests a few
// hundred levels at most (f()f()f()…).
type boundedReader struct {
	text string
	end  time.Time
}

// Read gives the next piece, errSlow when the time is up, or errDeep.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	if time.Now().After(r.end) {
		return 0, errSlow
	}
	// The parser reads more from wherever it stands, so the frames above this one tell how deep that is.
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
	var counted []bool // of each node around the present one, whether it counts
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

// nests reports a node that may stand within one of its own kind without an end.
func nests(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.IfClause: // to the parser else is one without a condition, within that of the if
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

// nesting is how deep brackets nest in a text, counted without understanding quotes. A bracket in quotes counts as well, so
// the figure may be too high. It may also be too low: a closing bracket in quotes lowers it, and keywords are not counted. Such
// a text is left to maxFrames and treeNesting; this count is there because it is the cheapest.
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
