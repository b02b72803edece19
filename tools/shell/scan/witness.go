package scan

import (
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// disagreement compares where the two parsers see commands, because the walk would miss a command that only the second parser
// sees. The result is empty when both see commands at the same byte offsets, apart from the constructs that the two
// grammars name differently: [, test, unset, time, let, declarations. limit bounds the time of the second parser.
// outermost is false for a text within the command, which may be for a shell other than bash: there ((…)) may be two
// subshells, so a difference about it counts.
func disagreement(file *syntax.File, text string, limit time.Duration, outermost bool) string {
	seen, why := witness(text, limit)
	if why != "" {
		return why
	}
	ours := map[int]bool{}
	excused := map[int]bool{} // offsets at which the two parsers may differ
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
				for at := from; at < to; at++ { // tree-sitter may parse (( x = 1 )) as two subshells
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
	// The walk uses the first parser's calls only, so one that only tree-sitter sees could run unnoticed. One that tree-sitter does
	// not see counts too, since it is not known which of the parsers is wrong.
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

// plainArithm reports whether s is ((…)) with only names, numbers and operators in it. A difference about such a text is harmless.
func plainArithm(s string) bool {
	s, open := strings.CutPrefix(s, "((")
	s, closed := strings.CutSuffix(s, "))")
	return open && closed && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_ +-*/%<>=!?:&|^~,", r)
	}) < 0
}

// excuse marks the call after time: tree-sitter parses its name as an argument of time.
func excuse(s *syntax.Stmt, excused map[int]bool) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			excused[int(c.Args[0].Pos().Offset())] = true
		}
	// In "time a | b" only a follows the word time.
	case *syntax.BinaryCmd:
		excuse(c.X, excused)
	}
}
