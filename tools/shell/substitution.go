package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// harmless are command substitutions whose answer holds no slash.
var harmless = map[string]bool{
	"nproc": true, "whoami": true, "date": true, "id -u": true, "id -g": true, "id -un": true, "uname": true,
	"uname -s": true, "uname -m": true, "uname -r": true, "hostname": true, "arch": true, "git rev-parse HEAD": true,
	"git rev-parse --short HEAD": true, "sw_vers -productVersion": true, "getconf _NPROCESSORS_ONLN": true,
	"go env GOOS": true, "go env GOARCH": true, "go env GOVERSION": true,
}

// substituted is what a command substitution may print, where that is known without running it.
func (w *walker) substituted(c *syntax.CmdSubst, st *state) []value {
	if len(c.Stmts) != 1 {
		return anything
	}
	if w.counts(c.Stmts[0]) {
		return []value{{s: hole, pat: hole}}
	}
	if len(c.Stmts[0].Redirs) > 0 {
		return anything
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 {
		return anything
	}
	var words []string
	for _, word := range call.Args {
		lit := word.Lit()
		if lit == "" {
			if s, ok := w.argOf(word, "", st).one(); ok {
				lit = s
			} else {
				return anything
			}
		}
		words = append(words, lit)
	}
	text := strings.Join(words, " ")
	switch {
	case w.funcs[words[0]] != nil:
		return anything
	case text == "pwd" && !st.unknown:
		var out []value
		for _, d := range st.dirs {
			out = append(out, literal(d))
		}
		return out
	case text == "mktemp" || text == "mktemp -d":
		return []value{{s: w.tempDir() + "/" + hole, pat: escapeGlob(w.tempDir()) + "/" + hole}}
	case text == "git rev-parse --show-toplevel" && w.home(st):
		return []value{literal(w.req.Root)}
	case harmless[text], strings.HasPrefix(text, "date +") && !strings.ContainsAny(text, "/D"), strings.HasPrefix(text, "date -u +") && !strings.ContainsAny(text, "/D"):
		return []value{{s: hole, pat: hole}}
	}
	return anything
}

func (w *walker) tempDir() string {
	for _, v := range w.environment("TMPDIR") {
		if v.exact() && strings.HasPrefix(v.s, "/") {
			return v.s
		}
	}
	return "/tmp"
}

// counts reports a statement that prints one number: wc -l at the end of a pipe or with its input redirected.
func (w *walker) counts(s *syntax.Stmt) bool {
	call, _ := s.Cmd.(*syntax.CallExpr)
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe && len(s.Redirs) == 0 {
		call, _ = b.Y.Cmd.(*syntax.CallExpr)
	} else if len(s.Redirs) != 1 || s.Redirs[0].Op != syntax.RdrIn {
		return false
	}
	if call == nil || len(call.Args) != 2 || call.Args[0].Lit() != "wc" || w.funcs["wc"] != nil {
		return false
	}
	switch call.Args[1].Lit() {
	case "-l", "-c", "-w", "-m":
		return true
	}
	return false
}

// home reports whether the shell is surely where the request began.
func (w *walker) home(st *state) bool {
	return !st.unknown && len(st.dirs) == 1 && st.dirs[0] == w.req.Dir
}
