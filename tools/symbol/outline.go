package symbol

import (
	"strings"
)

// node is one node of a syntax tree, copied out of the parser's memory so that nothing refers to C memory after parse has
// returned. Offsets are bytes in the text.
type node struct {
	kind, field string
	word        string // text of a short leaf
	start, end  int
	parent      *node
	index       int // index among the parent's children
	kids        []*node
}

// child is the first child in a field of the grammar, or nil.
func (n *node) child(field string) *node {
	for _, k := range n.kids {
		if k.field == field {
			return k
		}
	}
	return nil
}

// find is the first node of a kind below n, or nil. It searches depth first, in the order of the text. maxDepth of the reader
// limits the depth.
// maxDepth of the reader.
func (n *node) find(kind string) *node {
	for _, k := range n.kids {
		if k.kind == kind {
			return k
		}
		if f := k.find(kind); f != nil {
			return f
		}
	}
	return nil
}

// span is a part of the text, in bytes, that the parser could not read. An edit that touches one is refused, because the tree
// around it may be wrong.
type span struct{ start, end int }

// trim moves the start of every node after the white space before it. The Lua grammar makes that space part of the token, so
// without this a symbol would begin on the line before.
func (n *node) trim(text string) {
	n.start = n.end - len(strings.TrimLeft(text[n.start:n.end], " \t\r\n"))
	for _, k := range n.kids {
		k.trim(text)
	}
}

// outliner collects the symbols of one tree. The fields out and last grow together: last[i] is the node of out[i], which
// tells an overload's signature from the body.
type outliner struct {
	g      *grammar
	text   string
	broken []span
	out    []Symbol
	last   []*node // the declaration of each symbol
}

// walk adds the declarations below n; path is the name path of the declarations around them. It also descends into nodes that are
// not declarations, because a condition or a block may contain some.
func (o *outliner) walk(n *node, path []string, local bool) {
	for _, k := range n.kids {
		d, ok := o.g.decls[k.kind]
		if !ok {
			o.walk(k, path, local)
			continue
		}
		names := d.names(k, o.text)
		if len(names) == 0 {
			o.walk(k, path, local)
			continue
		}
		// If one statement has several names (var a, b int), each is a symbol; declarations inside it belong to the last of them.
		inside := path
		for _, nm := range names {
			own := append([]string(nil), path...)
			// In a CSS selector dots do not separate anything; in Go, C++ or Lua A.f is a path of two parts.
			if d.raw {
				own = append(own, nm.text)
			} else {
				for p := range strings.SplitSeq(nm.text, ".") {
					if p != "" {
						own = append(own, p)
					}
				}
			}
			// A name that consists of dots has no parts. Nobody could ask for such a symbol, and Name would panic on an empty path.
			if len(own) == len(path) {
				continue
			}
			if !d.silent {
				o.add(k, d, own, nm.at, local, len(names) > 1)
			}
			inside = own
		}
		o.walk(k, inside, local || d.sealed && !o.holds(k))
	}
}

// holds reports whether the value of a declaration is an object literal or a Lua table, or whether it exports a class. Its members
// are as visible as the declaration itself, so they are not Local.
func (o *outliner) holds(n *node) bool {
	v := n.child("value")
	if v == nil && n.kind == "export_statement" {
		return n.find("class_body") != nil
	}
	return v != nil && (v.kind == "object" || v.kind == "tableconstructor")
}

// add makes a symbol of a declaration.
func (o *outliner) add(n *node, d decl, path []string, at int, local, several bool) {
	s := Symbol{Path: path, Kind: d.kind, At: at, Local: local}
	if d.kindOf != nil {
		s.Kind = d.kindOf(n, d.kind)
	}
	if n.parent != nil && d.sep != "" && n.parent.kind == d.in || n.kind == "method_definition" && n.parent.kind == "object" {
		s.Sep = ","
	}
	// Nodes around a declaration (export, decorators, const) belong to it: "the function" means the whole statement. If two
	// declarations share such a node, they cannot be separated.
	top := n
	for top.parent != nil {
		group, wraps := o.g.wraps[top.parent.kind]
		if !wraps {
			break
		}
		if o.declared(top.parent) > 1 {
			if group {
				break
			}
			several = true
		}
		top = top.parent
	}
	s.Bare, s.End = top.start, top.end
	for len(s.Path) > 0 && s.End > s.Bare && (o.text[s.End-1] == '\n' || o.text[s.End-1] == '\r') { // some nodes include the line's end
		s.End--
	}
	// Decorators may be children of what they decorate.
	for _, k := range top.kids {
		if o.g.leads[k.kind] == 0 {
			s.Bare = k.start
			break
		}
	}
	s.Start, s.Deco = s.Bare, s.Bare
	for _, k := range top.kids {
		if kind := o.g.leads[k.kind]; kind != 0 && k.start < s.Bare {
			o.lead(&s, k, kind)
		}
	}
	o.before(&s, top)
	o.behind(&s, top)
	switch {
	case several:
		s.Fixed = "it is declared together with others in one statement"
	case !o.ownLines(s):
		s.Fixed = "it shares its lines with other code"
	}
	// The span of a broken neighbour may reach into this declaration or end too early, so the declaration is refused even if it
	// only touches the span.
	for _, b := range o.broken {
		if b.start <= s.End && b.end >= s.Start {
			s.Fixed = "there is a syntax error in it or next to it"
		}
	}
	// Overloads and their implementation become one symbol. TypeScript has a signature for each overload, and code in which only
	// one of them is replaced does not compile.
	if i := len(o.out) - 1; i >= 0 && strings.HasSuffix(o.last[i].kind, "_signature") && !strings.HasPrefix(o.last[i].kind, "property") && (n.kind == "function_declaration" || n.kind == "method_definition" || n.kind == o.last[i].kind) &&
		o.out[i].String() == s.String() && strings.TrimSpace(o.text[o.out[i].End:s.Start]) == "" {
		p := &o.out[i]
		p.End, p.At = s.End, s.At
		if p.Fixed == "" {
			p.Fixed = s.Fixed
		}
		o.last[i] = n
		return
	}
	o.out, o.last = append(o.out, s), append(o.last, n)
}

// declared counts the declarations directly inside a node.
func (o *outliner) declared(n *node) int {
	c := 0
	for _, k := range n.kids {
		if _, ok := o.g.decls[k.kind]; ok {
			c++
		} else if _, ok := o.g.wraps[k.kind]; ok {
			c += o.declared(k)
		}
	}
	return c
}

// lead extends a declaration to a comment ('c') or decorator ('d') in front of it.
func (o *outliner) lead(s *Symbol, k *node, kind byte) {
	s.Start = min(s.Start, k.start)
	if kind == 'd' {
		s.Deco = min(s.Deco, k.start)
	}
}

// before extends a declaration to the comments and decorators directly above it. It stops at a blank line: a comment above that is
// about something else, such as a section of the file.
func (o *outliner) before(s *Symbol, top *node) {
	if top.parent == nil {
		return
	}
	if p := top.parent; top.index == 0 && p.kind == "body_statement" && p.parent != nil {
		top = p // what is before the first declaration of a body is outside the body
	}
	for i := top.index - 1; i >= 0; i-- {
		k := top.parent.kids[i]
		kind := o.g.leads[k.kind]
		if kind == 0 || k.end > s.Start {
			return
		}
		gap := o.text[len(strings.TrimRight(o.text[:k.end], " \t\r\n")):s.Start]
		if strings.TrimSpace(gap) != "" || strings.Count(gap, "\n") > 1 {
			return
		}
		line := strings.LastIndexByte(o.text[:k.start], '\n') + 1
		if strings.TrimSpace(o.text[line:k.start]) != "" { // a comment at the end of the line before
			return
		}
		if said := o.text[k.start:]; kind == 'c' && (strings.HasPrefix(said, "#!") || strings.HasPrefix(said, "//!") || strings.HasPrefix(said, "/*!")) {
			return // a comment on the file, or on the declaration around this one
		}
		o.lead(s, k, kind)
	}
}

// behind extends a declaration to a semicolon and a comment after it on the same line. A comment of several lines is left out,
// because its last line may belong to the next declaration.
func (o *outliner) behind(s *Symbol, top *node) {
	if top.parent == nil {
		return
	}
	for _, k := range top.parent.kids[top.index+1:] {
		if k.start < s.End {
			continue
		}
		gap := o.text[s.End:k.start]
		if strings.ContainsRune(gap, '\n') || strings.TrimSpace(gap) != "" {
			return
		}
		if k.kind != ";" && (o.g.leads[k.kind] != 'c' || strings.ContainsRune(strings.TrimRight(o.text[k.start:k.end], "\r\n"), '\n')) {
			return
		}
		s.End = k.start + len(strings.TrimRight(o.text[k.start:k.end], "\r\n"))
	}
}

// ownLines reports whether no other code is on the lines of a declaration, so that it can be replaced or deleted as whole lines.
func (o *outliner) ownLines(s Symbol) bool {
	from := strings.LastIndexByte(o.text[:s.Start], '\n') + 1
	to := len(o.text)
	if i := strings.IndexByte(o.text[s.End:], '\n'); i >= 0 {
		to = s.End + i
	}
	after := strings.TrimSpace(o.text[s.End:to])
	// The separator and a comment after it move with the declaration, so they do not count as other code.
	if s.Sep != "" {
		after = strings.TrimSpace(strings.TrimPrefix(after, s.Sep))
		if after != "" && o.g.leads["comment"]+o.g.leads["line_comment"] != 0 && strings.HasPrefix(after, o.g.remark()) {
			after = ""
		}
	}
	return strings.Trim(o.text[from:s.Start], " \t\ufeff") == "" && after == ""
}

// result removes a symbol that is declared inside its own declaration again: typedef struct S {…} S. Both would have the same name,
// and every request for S would be ambiguous.
func (o *outliner) result() []Symbol {
	out := o.out[:0:0]
	for _, s := range o.out {
		double := false
		for i := len(out) - 1; i >= 0 && !double && out[i].End > s.Start; i-- {
			double = out[i].Start <= s.Start && s.End <= out[i].End && out[i].Name() == s.Name() && (s.Kind == "struct" || s.Kind == "enum") && out[i].Kind == "class"
		}
		if !double {
			out = append(out, s)
		}
	}
	return out
}
