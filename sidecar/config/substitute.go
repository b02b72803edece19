package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// substitute replaces {env:NAME} and {file:path} in the strings of a tree; paths are relative to the file that
// contains them. It changes the nodes in place. In an untrusted project, references that read secrets have been
// removed before (see withoutSecrets).
func (l *loader) substitute(n *node) []Problem {
	var out []Problem
	for _, m := range n.members {
		out = append(out, l.substitute(m.value)...)
	}
	for _, e := range n.elems {
		out = append(out, l.substitute(e)...)
	}
	if n.kind != kindString || n.raw || !strings.Contains(n.text, "{") {
		return out
	}
	text, bad := l.filled(n, n.text)
	n.text = text
	return append(out, bad...)
}

// filled is a text with its references replaced. A path may contain variables. Inserted text is not searched again: a
// file must not read the environment.
func (l *loader) filled(n *node, text string) (string, []Problem) {
	var b strings.Builder
	var out []Problem
	for rest := text; ; {
		at, file := reference(rest)
		end := -1
		if at >= 0 {
			end = closingBrace(rest[at+1:])
		}
		// Without a closing brace it is plain text.
		if end < 0 {
			return b.String() + rest, out
		}
		_, arg, _ := strings.Cut(rest[at+1:at+1+end], ":")
		b.WriteString(rest[:at])
		rest = rest[at+end+2:]
		if !file {
			v := l.Env(arg)
			if v == "" {
				// An unset variable is not a problem, since a key may be optional; the origin of the value says so.
				n.unset = arg
			}
			b.WriteString(v)
			continue
		}
		path, bad := l.filled(n, arg)
		out = append(out, bad...)
		content, err := l.include(n.file, path)
		if err != nil {
			out = append(out, n.problem("{file:%s} %v", path, err))
		}
		b.WriteString(content)
	}
}

// reference finds the first reference in a text; other braces, such as those of JSON in a string, are left alone.
// at is a byte offset, -1 without one.
func reference(text string) (at int, file bool) {
	env, in := strings.Index(text, "{env:"), strings.Index(text, "{file:")
	if in >= 0 && (env < 0 || in < env) {
		return in, true
	}
	return env, false
}

// closingBrace is the index of the brace that closes the one before the text; -1 without one. It counts nested
// ones, because a path may contain {env:…}.
func closingBrace(text string) int {
	depth := 0
	for i, c := range []byte(text) {
		switch {
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}

// include reads the file of a {file:…}, without its final line ends, and notes its state for Current. Files with a
// key usually end in a line end, which is not part of it and is invalid in an HTTP header.
func (l *loader) include(from, name string) (string, error) {
	if strings.HasPrefix(name, "~/") {
		name = filepath.Join(l.Env("HOME"), name[2:])
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	info, err := os.Stat(name)
	// Noted before the error is looked at, so that a file that appears later makes the configuration stale, too.
	l.included[name] = stateOf(info, err)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", cause(err))
	}
	if !info.Mode().IsRegular() || info.Size() > l.MaxBytes {
		return "", fmt.Errorf("is not a regular file of at most %d bytes", l.MaxBytes)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", cause(err))
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
