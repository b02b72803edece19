package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"strings"
)

// xargs looks at xargs, which adds words from its input to the command. Where the names in the pipe are known to be in the
// project, the added word is a Hole, which stays below the folder; otherwise it is anything, so that a program that takes files
// becomes opaque.
func xargs(args []scan.Word, c *scan.Visit) {
	// The options of GNU and BSD xargs whose value is the next word (xargs(1)).
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
	// Without a command xargs prints its words.
	if len(rest) == 0 {
		rest = []scan.Word{scan.Plain("echo")}
	}
	if mark := replacement(options); mark != "" {
		// A copy: the words belong to the caller's call.
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
	// The words come at the end, or wherever the replacement string is: at the end they are any word.
	c.RunWithMore(append(rest[:len(rest):len(rest)], added))
}

// replacement is the string that xargs replaces by its input, where it was given one.
// Empty: the words are added at the end.
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

// fedInside reports that the words from the pipe are file names that surely are in the project: what find, git ls-files,
// rg -l and the like list.
// Options that print something else than plain names below the folder, or that follow links out of it, answer false.
func fedInside(c *scan.Visit) bool {
	// Only a command before the pipe whose words are all known can be trusted.
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

// contains reports that the list holds s.
func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// parallel builds command lines from a template and hands them to a shell.
// After ::: are the arguments, before it the template; the shell reads the two joined, so a file's name can become a command.
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
