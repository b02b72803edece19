package shell

import (
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// disagreement compares where the two parsers see commands.
func disagreement(file *syntax.File, text string, limit time.Duration) string {
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
		case *syntax.LetClause:
			excused[int(n.Pos().Offset())] = true
		case *syntax.DeclClause:
			excused[int(n.Pos().Offset())] = true
		}
		return true
	})
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

// excuse marks the call that `time` runs: tree-sitter takes its name for an argument of time.
func excuse(s *syntax.Stmt, excused map[int]bool) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			excused[int(c.Args[0].Pos().Offset())] = true
		}
	case *syntax.BinaryCmd:
		excuse(c.X, excused)
	}
}
