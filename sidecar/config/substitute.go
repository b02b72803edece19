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
	var b strings.Builder
	rest := n.text
	for {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			break
		}
		inner := rest[i+1 : i+end]
		b.WriteString(rest[:i])
		switch kind, arg, _ := strings.Cut(inner, ":"); kind {
		case "env":
			v := l.Env(arg)
			if v == "" {
				n.unset = arg
			}
			b.WriteString(v)
		case "file":
			text, err := l.include(n.file, arg)
			if err != nil {
				out = append(out, n.problem("{file:%s} %v", arg, err))
			}
			b.WriteString(text)
		default:
			b.WriteString(rest[i : i+end+1])
		}
		rest = rest[i+end+1:]
	}
	n.text = b.String() + rest
	return out
}

func (l *loader) include(from, name string) (string, error) {
	if strings.HasPrefix(name, "~/") {
		name = filepath.Join(l.Env("HOME"), name[2:])
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	info, err := os.Stat(name)
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
