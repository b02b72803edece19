package config

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads TOML as a tree of the same shape as JSON, with the places of its values, so that everything after it need not know
// where a setting came from. Dates become strings. A file with a mistake yields one fatal problem and no tree.
func parseTOML(file string, src []byte) (*node, *Problem) {
	t := tomlReader{file: file, src: src}
	t.p.Reset(src)
	root := t.at(0, kindObject)
	// Keys before the first [header] belong to the file itself.
	section := root
	for t.p.NextExpression() {
		e := t.p.Expression()
		switch e.Kind {
		case unstable.Table:
			section = t.table(root, e.Key(), false)
		case unstable.ArrayTable:
			section = t.table(root, e.Key(), true)
		case unstable.KeyValue:
			t.set(section, e)
		}
	}
	if err := t.p.Error(); err != nil {
		p := Problem{File: file, Line: 1, Column: 1, Fatal: true, Message: err.Error()}
		if bad, ok := err.(*unstable.ParserError); ok { //nolint:errorlint // the parser's own, never wrapped
			at := t.at(int(t.p.Range(bad.Highlight).Offset), kindNull)
			p.Line, p.Column, p.Message = at.line, at.column, bad.Message
		}
		return nil, &p
	}
	return root, nil
}

// tomlReader makes nodes of a parser's expressions. It uses the unstable package of go-toml because the stable one gives values without
// places.
type tomlReader struct {
	file string
	src  []byte
	p    unstable.Parser
}

// at is an empty node for a byte offset, with line and column from 1, the column in bytes. Files are short, so lines are counted from the
// beginning each time.
func (t *tomlReader) at(offset int, kind byte) *node {
	before := string(t.src[:min(offset, len(t.src))])
	return &node{file: t.file, line: 1 + strings.Count(before, "\n"), column: len(before) - strings.LastIndexByte(before, '\n'), kind: kind}
}

// place is at for a key or a value, by the parser's Raw range. Where the parser gives no range the place is the file's first line; set
// corrects that for values.
func (t *tomlReader) place(n *unstable.Node, kind byte) *node { return t.at(int(n.Raw.Offset), kind) }

// table finds or makes the object that a [header] or a dotted key names; list: a new element of the list at its end.
func (t *tomlReader) table(from *node, key unstable.Iterator, list bool) *node {
	at := from
	for key.Next() {
		k := key.Node()
		last := key.IsLast()
		next := at.get(string(k.Data))
		if next == nil {
			next = t.place(k, kindObject)
			if last && list {
				next.kind = kindArray
			}
			at.members = append(at.members, member{string(k.Data), t.place(k, kindString), next})
		}
		if next.kind == kindArray { // a list of tables: its last element is meant, or a new one
			if last && list || len(next.elems) == 0 {
				next.elems = append(next.elems, t.place(k, kindObject))
			}
			next = next.elems[len(next.elems)-1]
		}
		at = next
	}
	return at
}

// set adds a key with its value to an object; the key may be dotted.
func (t *tomlReader) set(to *node, e *unstable.Node) {
	var keys []*unstable.Node
	for key := e.Key(); key.Next(); {
		keys = append(keys, key.Node())
	}
	for _, k := range keys[:len(keys)-1] {
		next := to.get(string(k.Data))
		if next == nil {
			next = t.place(k, kindObject)
			to.members = append(to.members, member{string(k.Data), t.place(k, kindString), next})
		}
		to = next
	}
	last := keys[len(keys)-1]
	at := t.place(last, kindString)
	v := t.value(e.Value())
	v.line, v.column = at.line, at.column // the place of its key: values have none of their own in every form
	to.members = append(to.members, member{string(last.Data), at, v})
}

// value converts a value. The line of those inside lists is that of the list.
func (t *tomlReader) value(v *unstable.Node) *node {
	n := t.place(v, kindString)
	switch v.Kind {
	case unstable.Bool:
		n.kind, n.text = kindBool, string(v.Data)
	case unstable.Integer, unstable.Float:
		// TOML allows what JSON does not: digits grouped by _, a sign +, other bases, inf and nan. Other bases, inf and nan stay
		// strings, which check then reports where a number is expected.
		n.kind, n.text = kindNumber, strings.ReplaceAll(string(v.Data), "_", "")
		if strings.HasPrefix(n.text, "0x") || strings.HasPrefix(n.text, "0o") || strings.HasPrefix(n.text, "0b") || strings.ContainsAny(n.text, "nN") {
			n.kind = kindString // no number of JSON's
		}
		n.text = strings.TrimPrefix(n.text, "+")
	case unstable.Array:
		n.kind = kindArray
		for it := v.Children(); it.Next(); {
			n.elems = append(n.elems, t.value(it.Node()))
		}
	case unstable.InlineTable:
		n.kind = kindObject
		for it := v.Children(); it.Next(); {
			t.set(n, it.Node())
		}
	default:
		n.text = string(v.Data)
	}
	// A value of a kind without text must not look like an empty string that somebody wrote.
	if n.kind == kindString && n.text == "" && v.Kind != unstable.String {
		n.text = fmt.Sprint(v.Kind)
	}
	return n
}
