package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects walks the redirections of a statement and returns where its standard input comes from. The shell opens the files
// before the command runs, so even ": > file" writes one.
func (w *words) redirects(s *syntax.Stmt, st *state, in input) input {
	w.text.at = int(s.Pos().Offset())
	for _, r := range s.Redirs {
		w.inside(r.Word, st)
		if r.N != nil && strings.HasPrefix(r.N.Value, "{") { // {name}> file sets the variable name to the descriptor's number
			w.setVariable(strings.Trim(r.N.Value, "{}"), nil)
		}
		// Only descriptor 0 is the standard input that a program such as sh could run.
		stdin := r.N == nil || r.N.Value == "0"
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			unquote := w.quoting(true)
			w.inside(r.Hdoc, st)
			unquote()
			if stdin {
				in = input{kind: "here"}
				in.text, in.ok = w.hereText(r, st)
			}
		case syntax.WordHdoc:
			if stdin {
				in = input{kind: "here"}
				// Bash does not split the word after <<<. args may return several for one with braces; the text is then unknown.
				if args := w.args(r.Word, st); len(args) == 1 {
					in.text, in.ok = args[0].One()
				}
			}
		case syntax.RdrIn:
			w.pathWord(r.Word, Read, st)
			if stdin {
				in = input{kind: "file"}
			}
		// <> opens for reading and writing, and creates the file.
		case syntax.RdrInOut:
			w.writeTo(r.Word, st)
			if stdin {
				in = input{kind: "file"}
			}
		case syntax.DplIn, syntax.DplOut:
			// >&2, <&3, >&- and 2>&1- name descriptors; >&word writes a file.
			if lit := strings.TrimSuffix(r.Word.Lit(), "-"); lit == "" && r.Word.Lit() == "-" || lit != "" && strings.Trim(lit, "0123456789") == "" {
				continue
			}
			if vals := w.parts(r.Word.Parts, false, st); len(vals) == 1 && vals[0].Text == Hole { // >&$fd, where fd is a number
				continue
			}
			if r.Op == syntax.DplIn {
				w.opaque("it duplicates a file descriptor that is not a number")
				continue
			}
			w.writeTo(r.Word, st)
		default: // > >> >| &> &>> and the operators of zsh
			w.writeTo(r.Word, st)
		}
	}
	return in
}

// pathWord notes an access to the path in a word, or to each path if it has several values. It reports false when all of
// them are empty or devices without data, such as /dev/null: a redirection to these leaves the command read-only.
func (x *expander) pathWord(word *syntax.Word, access Access, st *state) bool {
	if word == nil {
		return false
	}
	real := false
	for _, a := range x.args(word, st) {
		for _, v := range a.Values {
			real = x.record(v, access, st) || real
		}
	}
	return real
}

// writeTo notes a file that the shell itself writes, in Analysis.Redirected as well as in Writes: it is written even when the
// program writes nothing.
func (x *expander) writeTo(word *syntax.Word, st *state) {
	before := len(x.paths.writes)
	if x.pathWord(word, Write, st) {
		x.writes = true
	}
	x.a.Redirected = append(x.a.Redirected, x.paths.writes[before:]...)
}
