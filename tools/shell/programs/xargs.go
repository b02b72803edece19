package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"strings"
)

// xargs analyzes a call of xargs, which adds words from its input to the inner call. If fedInside knows that these words are names of
// files in the project, the added word is a Hole, which cannot lead out of the folder. Otherwise it may be anything, and a program
// that takes files makes the command opaque.
func xargs(args []scan.Word, c *scan.Visit) {
	// The options of GNU and BSD xargs that take the next word as their value (xargs(1)).
	takes := map[string]bool{}
	for _, o := range strings.Fields("-I -n -P -L -d -E -s -a -R -J -S --max-args --max-procs --max-lines --delimiter --max-chars --arg-file " +
		"--process-slot-var") {
		takes[o] = true
	}
	rest := args
	for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
		s := rest[0].Text
		rest = rest[1:]
		if s == "--" {
			break
		}
		if key, val, has := strings.Cut(s, "="); has && key == "--arg-file" {
			c.Touch(scan.Plain(val), scan.Read)
			continue
		}
		if strings.HasPrefix(s, "-a") && len(s) > 2 {
			c.Touch(scan.Plain(s[2:]), scan.Read)
		}
		if takes[s] && len(rest) > 0 {
			if s == "-a" || s == "--arg-file" {
				c.Touch(rest[0], scan.Read)
			}
			rest = rest[1:]
		}
	}
	options := args[:len(args)-len(rest)]
	// Without an inner call xargs runs echo.
	if len(rest) == 0 {
		rest = []scan.Word{scan.Plain("echo")}
	}
	if mark := replacement(options); mark != "" {
		// A copy, because the words belong to the caller.
		replaced := append([]scan.Word(nil), rest...)
		for i, a := range replaced {
			if strings.Contains(a.Text, mark) {
				replaced[i].Values = []scan.Value{{Text: strings.ReplaceAll(a.Text, mark, scan.Wild), Pattern: scan.Wild}}
				replaced[i].Static = false
				if a.Text == mark && fedInside(c) {
					replaced[i].Values = []scan.Value{{Text: scan.Hole, Pattern: scan.Hole}}
				}
			}
		}
		c.RunWithMore(replaced)
		return
	}
	added := scan.Unknown()
	if fedInside(c) {
		added.Values = []scan.Value{{Text: scan.Hole, Pattern: scan.Hole}}
	}
	// Without a replacement string xargs adds the words at the end.
	c.RunWithMore(append(rest[:len(rest):len(rest)], added))
}

// replacement returns the string that xargs replaces by words from its input; empty if it adds them at the end.
func replacement(options []scan.Word) string {
	for i, a := range options {
		s := a.Text
		switch {
		case s == "-I" || s == "-J":
			if i+1 < len(options) {
				return options[i+1].Text
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

// fedInside reports that the command before the pipe, such as find, git ls-files or rg -l, certainly prints only names of files in the
// project. It is false if an option may make that command print anything else, or follow links out of the folder.
func fedInside(c *scan.Visit) bool {
	// Producer finds the command only if all its words are known.
	words, ok := c.Producer()
	if !ok || !c.InProject() {
		return false
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || strings.Contains(word, "..") || strings.HasPrefix(word, "-printf") ||
			strings.HasPrefix(word, "--format") || strings.HasPrefix(word, "-exec") || strings.HasPrefix(word, "--files-from") || strings.HasPrefix(word,
			"--replace") || word == "-L" || word == "--follow" || word == "-r" && words[0] == "rg" {
			return false
		}
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

// contains reports that s is in list.
func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// parallel analyzes the words of GNU parallel: a template, then ":::" and arguments. Parallel puts the arguments into the template and
// runs the result in a shell, so the name of a file can become a command. That makes the command opaque; the template is
// analyzed for rules that deny.
func parallel(rest []scan.Word, c *scan.Visit) {
	var template []scan.Word
	for _, a := range rest {
		if strings.HasPrefix(a.Text, ":::") {
			break
		}
		template = append(template, a)
	}
	c.Opaque("parallel hands lines to a shell that are put together while it runs")
	if s, ok := scan.Spelled(template); ok && s != "" {
		c.Script(scan.Plain(s), "parallel")
	}
}
