package scan

import (
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// disagreement compares where the two parsers see commands; the walk would miss a command that only the second one sees. An
// empty answer means that both see the same commands at the same byte offsets, apart from the constructs that the two
// grammars are known to name differently: [, test, unset, time, let, declarations. limit bounds the second parser.
// outermost is false for a text within the command, which may be for a shell other than bash: there ((…)) may be two
// subshells, so it is not excused.
func disagreement(file *syntax.File, text string, limit time.Duration, outermost bool) string {
	seen, why := witness(text, limit)
	if why != "" {
		return why
	}
	ours := map[int]bool{}
	excused := map[int]bool{} // starts that only one of the two calls a command
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				at := int(n.Args[0].Pos().Offset())
				switch n.Args[0].Lit() {
				case "[", "unset", "test":
					excused[at] = true
				}
				ours[at] = true
			}
		case *syntax.TimeClause:
			excused[int(n.Pos().Offset())] = true
			if n.Stmt != nil {
				excuse(n.Stmt, excused)
			}
		case *syntax.ArithmCmd:
			from, to := int(n.Pos().Offset()), int(n.End().Offset())
			if outermost && plainArithm(text[from:to]) {
				for at := from; at < to; at++ { // tree-sitter may take (( x = 1 )) for two subshells
					excused[at] = true
				}
			}
		case *syntax.LetClause:
			excused[int(n.Pos().Offset())] = true
		case *syntax.DeclClause:
			excused[int(n.Pos().Offset())] = true
		}
		return true
	})
	// The walk sees only our calls, so one that tree-sitter alone sees could run unnoticed. One that it misses counts too: either
	// parser may be wrong, and which one it is cannot be told.
	for _, at := range seen {
		if !ours[at] && !excused[at] {
			return "two parsers disagree about the commands in it"
		}
		delete(ours, at)
	}
	for at := range ours {
		if !excused[at] {
			return "two parsers disagree about the commands in it"
		}
	}
	return ""
}

// plainArithm reports ((…)) with nothing between but names, numbers and operators: no shell takes that for commands.
func plainArithm(s string) bool {
	s, open := strings.CutPrefix(s, "((")
	s, closed := strings.CutSuffix(s, "))")
	return open && closed && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_ +-*/%<>=!?:&|^~,", r)
	}) < 0
}

// excuse marks the call that `time` runs: tree-sitter takes its name for an argument of time.
func excuse(s *syntax.Stmt, excused map[int]bool) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			excused[int(c.Args[0].Pos().Offset())] = true
		}
	// Of time a | b only the first call is after the word time.
	case *syntax.BinaryCmd:
		excuse(c.X, excused)
	}
}
