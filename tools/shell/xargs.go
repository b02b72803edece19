package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// xargs adds words from its input to the command.
func (w *walker) xargs(args []arg, c *call) {
	takes := map[string]bool{}
	for _, o := range strings.Fields("-I -n -P -L -d -E -s -a -R -J -S --max-args --max-procs --max-lines --delimiter --max-chars --arg-file --process-slot-var") {
		takes[o] = true
	}
	rest := args
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
		s := rest[0].text
		rest = rest[1:]
		if s == "--" {
			break
		}
		if key, val, has := strings.Cut(s, "="); has && key == "--arg-file" {
			w.recordArg(plainArg(val), Read, c.st)
			continue
		}
		if strings.HasPrefix(s, "-a") && len(s) > 2 {
			w.recordArg(plainArg(s[2:]), Read, c.st)
		}
		if takes[s] && len(rest) > 0 {
			if s == "-a" || s == "--arg-file" {
				w.recordArg(rest[0], Read, c.st)
			}
			rest = rest[1:]
		}
	}
	options := args[:len(args)-len(rest)]
	if len(rest) == 0 {
		rest = []arg{plainArg("echo")}
	}
	if mark := replacement(options); mark != "" {
		replaced := append([]arg(nil), rest...)
		for i, a := range replaced {
			if strings.Contains(a.text, mark) {
				replaced[i].vals = []value{{s: strings.ReplaceAll(a.text, mark, wild), pat: wild}}
				replaced[i].static = false
				if a.text == mark && w.fedInside(c) {
					replaced[i].vals = []value{{s: hole, pat: hole}}
				}
			}
		}
		w.run(&call{args: replaced, st: c.st, wrapped: true, more: true})
		return
	}
	added := arg{vals: anything, many: true, hidden: true}
	if w.fedInside(c) {
		added.vals = []value{{s: hole, pat: hole}}
	}
	// The words come at the end, or wherever the replacement string stands: at the end they are any word.
	w.run(&call{args: append(rest[:len(rest):len(rest)], added), st: c.st, wrapped: true, more: true})
}

// replacement is the string that xargs replaces by its input, where it was given one.
func replacement(options []arg) string {
	for i, a := range options {
		s := a.text
		switch {
		case s == "-I" || s == "-J":
			if i+1 < len(options) {
				return options[i+1].text
			}
		case strings.HasPrefix(s, "-I"):
			return s[2:]
		case s == "-i" || s == "--replace":
			return "{}"
		case strings.HasPrefix(s, "-i"):
			return s[2:]
		case strings.HasPrefix(s, "--replace="):
			return s[len("--replace="):]
		}
	}
	return ""
}

func (w *walker) fedInside(c *call) bool {
	return c.in.kind == "pipe" && w.listsInside(c.in.from, c.st)
}

// listsInside reports a producer of file names that surely lie in the project: find, git ls-files, rg -l and the like.
func (w *walker) listsInside(s *syntax.Stmt, st *state) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return false
	}
	var words []string
	for _, word := range call.Args {
		for _, a := range w.args(word, st) {
			v, ok := a.one()
			if !ok {
				return false
			}
			words = append(words, v)
		}
	}
	if w.funcs[words[0]] != nil {
		return false
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || strings.Contains(word, "..") || strings.HasPrefix(word, "-printf") || strings.HasPrefix(word, "--format") || strings.HasPrefix(word, "-exec") || strings.HasPrefix(word, "--files-from") || strings.HasPrefix(word, "--replace") || word == "-L" || word == "--follow" || word == "-r" && words[0] == "rg" {
			return false
		}
	}
	if !w.home(st) && !w.allDirsInside(st) {
		return false
	}
	switch words[0] {
	case "find", "fd", "ls":
		return true
	case "git":
		return len(words) > 1 && (words[1] == "ls-files" || words[1] == "diff" && contains(words, "--name-only"))
	case "rg", "grep":
		return contains(words, "-l") || contains(words, "--files") || contains(words, "--files-with-matches") || contains(words, "-rl") || contains(words, "-lr")
	}
	return false
}

func (w *walker) allDirsInside(st *state) bool {
	if st.unknown {
		return false
	}
	for _, d := range st.dirs {
		if !w.paths.inside(w.paths.real(d), Write) {
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// parallel builds command lines from a template and hands them to a shell.
func (w *walker) parallel(rest []arg, c *call) {
	var template []arg
	for _, a := range rest {
		if strings.HasPrefix(a.text, ":::") {
			break
		}
		template = append(template, a)
	}
	w.opaque("parallel hands lines to a shell that are put together while it runs")
	if s, ok := expandedText(template); ok && s != "" {
		w.nested(plainArg(s), c.st, "parallel")
	}
}
