// Package frontmatter reads Markdown files with a YAML head between two lines of dashes, as agents, commands and
// skills are written, and keeps the place of every value.
//
//	doc, err := frontmatter.Parse(src) // doc.Head is a mapping or nil, doc.Body the text behind it
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Doc is a file in its two parts.
type Doc struct {
	Head     *yaml.Node // a mapping; nil without a head
	Line     int        // lines before the head's first: what to add to a node's Line
	Body     string     // without the white space around it
	BodyLine int        // the body's first line, from 1
}

// Error is a head that is no YAML mapping. Line counts from 1 in the file.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// Get is the value of a key in the head, nil where there is none.
func (d Doc) Get(key string) *yaml.Node {
	if d.Head == nil {
		return nil
	}
	for i := 0; i+1 < len(d.Head.Content); i += 2 {
		if d.Head.Content[i].Value == key {
			return d.Head.Content[i+1]
		}
	}
	return nil
}

// Text is a key's value when it is a scalar.
func (d Doc) Text(key string) string {
	if n := d.Get(key); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Parse takes a file apart. A file without a head is all body. Heads that other programs write and that YAML refuses
// (a colon in a plain text) are read as they are meant.
func Parse(src []byte) (Doc, error) {
	text := string(bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(first, " \t") != "---" {
		return Doc{Body: strings.TrimSpace(text), BodyLine: 1 + leading(text)}, nil
	}
	head, body, line := "", "", 2
	closed := false
	for rest != "" {
		l, after, more := strings.Cut(rest, "\n")
		rest = after
		line++
		if t := strings.TrimRight(l, " \t"); t == "---" || t == "..." {
			body, closed = rest, true
			break
		}
		head += l + "\n"
		if !more {
			break
		}
	}
	if !closed {
		return Doc{}, &Error{Line: 1, Message: "the head that begins with --- has no end: a second line of ---"}
	}
	doc := Doc{Line: 1, Body: strings.TrimSpace(body), BodyLine: line + leading(body)}
	n, err := mapping(head)
	if err != nil {
		if m, again := mapping(quoted(head)); again == nil {
			n, err = m, nil
		}
	}
	if err != nil {
		return Doc{}, err
	}
	doc.Head = n
	return doc, nil
}

// leading counts the lines of white space a text begins with.
func leading(s string) int {
	return strings.Count(s[:len(s)-len(strings.TrimLeft(s, " \t\n\r"))], "\n")
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:.*?)line (\d+)(?:[,:] column \d+)?: ?(.*)$`)

func mapping(head string) (*yaml.Node, error) {
	if len(head) > maxHead {
		return nil, &Error{Line: 1, Message: fmt.Sprintf("the head is larger than %d bytes", maxHead)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		e := &Error{Line: 2, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
		first, _, _ := strings.Cut(err.Error(), "\n") // the lines after it quote the text, which may look like a place
		if m := yamlLine.FindStringSubmatch(first); m != nil {
			n, _ := strconv.Atoi(m[1])
			e.Line, e.Message = n+1, m[2]
		}
		return nil, e
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, nil
	}
	n := doc.Content[0]
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, &Error{Line: n.Line + 1, Message: "the head is no list of keys and values (key: value, one a line)"}
	}
	if err := plain(n, 0); err != nil {
		return nil, err
	}
	return n, nil
}

const (
	maxHead  = 256 << 10
	maxDepth = 20
)

// plain refuses what a small file can blow up with: aliases, and nesting without end.
func plain(n *yaml.Node, depth int) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return &Error{Line: n.Line + 1, Message: "aliases (*name) are not read here; write the value out"}
	case depth > maxDepth:
		return &Error{Line: n.Line + 1, Message: "the head is nested too deep"}
	}
	for _, c := range n.Content {
		if err := plain(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

var keyLine = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*):[ \t]+(.*)$`)

// quoted puts plain values of the top level into quotes.
func quoted(head string) string {
	lines := strings.Split(head, "\n")
	for i, l := range lines {
		m := keyLine.FindStringSubmatch(l)
		if m == nil || m[2] == "" || strings.ContainsAny(m[2][:1], `"'[{|>&*!#`) {
			continue
		}
		lines[i] = m[1] + ": '" + strings.ReplaceAll(strings.TrimSpace(m[2]), "'", "''") + "'"
	}
	return strings.Join(lines, "\n")
}

// Place finds the line of an error of Parse, 1 where it has none.
func Place(err error) (line int, message string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Line, e.Message
	}
	return 1, err.Error()
}
