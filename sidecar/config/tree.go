package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// node is a JSON value that remembers the place it was written. Sources other than JSON (Markdown, OpenCode,
// Claude Code) are turned into nodes too, so that every layer is checked, merged and explained in the same way.
type node struct {
	file    string // a path, or what people read in its place: "editor settings", a variable's name
	line    int    // 1-based
	column  int    // 1-based, bytes
	kind    byte
	text    string   // string: decoded; number, true, false, null: as written
	raw     bool     // references in the text are not replaced: it is prose, a shell's, or another program's
	unset   string   // the environment variable of a {env:…} in it that is not set
	members []member // of an object, in the order of the file; a key can be there twice, see get
	elems   []*node  // of a list
	// offset is where the value begins in source, the whole file, in bytes. Only nodes that were read from JSON have them.
	offset int
	source []byte
}

// Kinds of a node. Except for numbers and true or false, which have several first characters, they are the first
// byte of the value.
const (
	kindObject = '{'
	kindArray  = '['
	kindString = '"'
	kindNumber = '0'
	kindBool   = 't'
	kindNull   = 'n'
)

// member is a key of an object with its value.
type member struct {
	key   string
	at    *node // position of the key
	value *node
}

// origin is where the value was written, as file:line:column.
func (n *node) origin() string { return fmt.Sprintf("%s:%d:%d", n.file, n.line, n.column) }

// problem is a mistake at this value.
func (n *node) problem(format string, a ...any) Problem {
	return Problem{File: n.file, Line: n.line, Column: n.column, Message: fmt.Sprintf(format, a...)}
}

// get is the value of a key; the last one counts when a file has it twice, as in encoding/json.
func (n *node) get(key string) *node {
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// parse reads JSONC. A file that is not JSONC at all yields one fatal problem.
func parse(file string, src []byte) (*node, *Problem) {
	// Editors on Windows may write a byte order mark, which is not JSON; RFC 8259, section 8.1 lets a reader ignore
	// it.
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	// An empty file, as an editor creates it, is an object without settings and no mistake.
	if len(bytes.TrimSpace(src)) == 0 {
		return &node{file: file, line: 1, column: 1, kind: kindObject}, nil
	}
	v, err := hujson.Parse(src)
	if err != nil {
		// So is one with comments only. hujson wants a value, so one is appended; if that parses, nothing else was
		// wrong.
		if _, onlyComments := hujson.Parse(append(bytes.Clone(src), "\n{}"...)); onlyComments == nil {
			return &node{file: file, line: 1, column: 1, kind: kindObject}, nil
		}
		p := Problem{File: file, Line: 1, Column: 1, Fatal: true, Message: err.Error()}
		// hujson says "line L, column C: what"
		var l, c int
		if i := strings.Index(p.Message, "line "); i >= 0 {
			if n, _ := fmt.Sscanf(p.Message[i:], "line %d, column %d", &l, &c); n == 2 {
				p.Line, p.Column = l, c
				if j := strings.Index(p.Message[i:], ": "); j >= 0 {
					p.Message = p.Message[i+j+2:]
				}
			}
		}
		return nil, &p
	}
	r := reader{file: file, src: src}
	return r.node(&v), nil
}

// reader converts a parsed file into nodes, with positions.
type reader struct {
	file string
	src  []byte
	// line and at advance together: offsets only grow while walking.
	line, lineStart, at int
}

// place is the position of a byte offset; line and column count from 1, the column in bytes. It reads on from the
// last offset, because starting over for each value would be quadratic.
func (r *reader) place(offset int) (line, column int) {
	if offset < r.at {
		r.line, r.lineStart, r.at = 0, 0, 0
	}
	for i := r.at; i < offset && i < len(r.src); i++ {
		if r.src[i] == '\n' {
			r.line++
			r.lineStart = i + 1
		}
	}
	r.at = offset
	return r.line + 1, offset - r.lineStart + 1
}

// node converts a value.
func (r *reader) node(v *hujson.Value) *node {
	n := &node{file: r.file, offset: v.StartOffset, source: r.src}
	n.line, n.column = r.place(v.StartOffset)
	switch x := v.Value.(type) {
	case *hujson.Object:
		n.kind = kindObject
		for i := range x.Members {
			m := &x.Members[i]
			key := r.node(&m.Name)
			n.members = append(n.members, member{key: key.text, at: key, value: r.node(&m.Value)})
		}
	case *hujson.Array:
		n.kind = kindArray
		for i := range x.Elements {
			n.elems = append(n.elems, r.node(&x.Elements[i]))
		}
	case hujson.Literal:
		switch x.Kind() {
		case '"':
			n.kind, n.text = kindString, x.String()
		case 't', 'f':
			n.kind, n.text = kindBool, string(x)
		case 'n':
			n.kind, n.text = kindNull, "null"
		default:
			n.kind, n.text = kindNumber, string(x)
		}
	}
	return n
}

// merge lays over onto base: objects are merged key by key, everything else is replaced. Only instructions, hooks and
// disabled_providers are joined: a project adds to the person's. Neither argument is changed; path is the dotted path of both.
func merge(base, over *node, path string) *node {
	if base == nil || base.kind != kindObject || over.kind != kindObject {
		if (path == "instructions" || path == "disabled_providers" || strings.HasPrefix(path, "hooks.")) && base != nil && base.kind == kindArray && over.kind == kindArray {
			joined := *over
			joined.elems = append(append([]*node(nil), base.elems...), over.elems...)
			return &joined
		}
		return over
	}
	out := *base
	out.members = append([]member(nil), base.members...)
next:
	for _, m := range over.members {
		sub := m.key
		if path != "" {
			sub = path + "." + m.key
		}
		for i := range out.members {
			if out.members[i].key == m.key {
				out.members[i].value = merge(out.members[i].value, m.value, sub)
				// The key's place is the one that counts: origins and problems name the file whose value won.
				out.members[i].at = m.at
				continue next
			}
		}
		out.members = append(out.members, m)
	}
	return &out
}

// json writes the node as standard JSON: no comments, no trailing commas. Numbers are copied as written, so none
// loses digits.
func (n *node) json(b *bytes.Buffer) {
	switch n.kind {
	case kindObject:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			k, _ := json.Marshal(m.key)
			b.Write(k)
			b.WriteByte(':')
			m.value.json(b)
		}
		b.WriteByte('}')
	case kindArray:
		b.WriteByte('[')
		for i, e := range n.elems {
			if i > 0 {
				b.WriteByte(',')
			}
			e.json(b)
		}
		b.WriteByte(']')
	case kindString:
		s, _ := json.Marshal(n.text)
		b.Write(s)
	default:
		b.WriteString(n.text)
	}
}

// leaves calls f for every value that is not an object, with its dotted path. A list is one value: its elements
// come from one layer, except those of instructions and hooks.
func (n *node) leaves(path string, f func(path string, n *node)) {
	if n.kind != kindObject {
		f(path, n)
		return
	}
	for _, m := range n.members {
		sub := m.key
		if path != "" {
			sub = path + "." + m.key
		}
		m.value.leaves(sub, f)
	}
}

// kindName names a kind for people.
func kindName(k byte) string {
	switch k {
	case kindObject:
		return "an object"
	case kindArray:
		return "a list"
	case kindString:
		return "a string"
	case kindNumber:
		return "a number"
	case kindBool:
		return "true or false"
	}
	return "null"
}

// shown is the node as JSON, for messages.
func (n *node) shown() string {
	var b bytes.Buffer
	n.json(&b)
	return b.String()
}

// object is an object without members at the place of another node.
func (n *node) object() *node {
	return &node{file: n.file, line: n.line, column: n.column, kind: kindObject}
}

// isInteger reports a number without a fraction or an exponent that fits into 64 bits, which is what decoding into an int accepts.
func isInteger(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}
