package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// substitute replaces {env:NAME} and {file:path} inside strings; paths are relative to the file they stand in.
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

// filled is a text with its references replaced. A path may have variables in it; what is put in is taken as it is.
func (l *loader) filled(n *node, text string) (string, []Problem) {
	var b strings.Builder
	var out []Problem
	for rest := text; ; {
		at, file := reference(rest)
		end := -1
		if at >= 0 {
			end = closing(rest[at+1:])
		}
		if end < 0 {
			return b.String() + rest, out
		}
		_, arg, _ := strings.Cut(rest[at+1:at+1+end], ":")
		b.WriteString(rest[:at])
		rest = rest[at+end+2:]
		if !file {
			v := l.Env(arg)
			if v == "" {
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

// reference finds the first one in a text; other braces, as of JSON in a string, mean nothing.
func reference(text string) (at int, file bool) {
	env, in := strings.Index(text, "{env:"), strings.Index(text, "{file:")
	if in >= 0 && (env < 0 || in < env) {
		return in, true
	}
	return env, false
}

// closing finds the brace that ends what was opened before a text; -1 without one.
func closing(text string) int {
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

func (l *loader) include(from, name string) (string, error) {
	if strings.HasPrefix(name, "~/") {
		name = filepath.Join(l.Env("HOME"), name[2:])
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	info, err := os.Stat(name)
	l.included[name] = markOf(info, err)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", cause(err))
	}
	if !info.Mode().IsRegular() || info.Size() > l.MaxBytes {
		return "", errors.New("is not a regular file of a sensible size")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", cause(err))
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
