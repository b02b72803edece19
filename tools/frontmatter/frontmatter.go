// Package frontmatter reads Markdown files that begin with YAML between two lines of dashes (front matter), as agents,
// commands and skills are written, and keeps the line of every value for error messages. What the values mean is left to
// others.
//
//	doc, err := frontmatter.Parse(src) // doc.Head is a mapping or nil, doc.Body the text after it
//	model := doc.Text("model")
//
// The files may come with a repository that nobody trusts: size and depth are bounded and YAML aliases are refused,
// because a few lines of them can expand to gigabytes.
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Doc is a file in its two parts, the front matter (Head) and the rest (Body).
type Doc struct {
	Head     *yaml.Node // a mapping; nil without front matter or when it is empty
	Line     int        // lines before the front matter: what to add to the Line of a node to get the file's line
	Body     string     // with LF, without the white space around it
	BodyLine int        // the body's first line in the file, from 1
}

// Error is returned for front matter that is not closed or is not a YAML mapping. Line counts from 1 in the file.
type Error struct {
	Line    int
	Message string
}

// Error is the message with its line; the caller names the file. Place takes the two apart.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// Get is the value of a top-level key of the front matter, nil without one. Keys are compared as written.
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

// Text is a key's value as written when it is a scalar (a number or a boolean too), else "".
func (d Doc) Text(key string) string {
	if n := d.Get(key); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Parse splits a file into front matter and body. A file without front matter is all body. Other programs accept some front matter that
// is not valid YAML: a plain value with a colon ("description: Use when: …") or with text after a bracket ("argument-hint: [a] [b]").
// Parse reads such values as plain text. The error is an *Error.
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
		return Doc{}, &Error{Line: 1, Message: "the front matter that begins with --- is not closed; add a second line of ---"}
	}
	doc := Doc{Line: 1, Body: strings.TrimSpace(body), BodyLine: line + leading(body)}
	// YAML as it is written comes first: quoting the values could change the meaning of a file that is correct.
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

// yamlLine finds the line in a message of the YAML library, which writes it in several forms.
var yamlLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:yaml: )?(?:.*?)line (\d+)(?:[,:] column \d+)?: ?(.*)$`)
})

// mapping parses front matter; nil and no error when it is empty or null. Lines of errors are the file's: the head begins
// in its second line.
func mapping(head string) (*yaml.Node, error) {
	if len(head) > maxHead {
		return nil, &Error{Line: 1, Message: fmt.Sprintf("the front matter is larger than %d bytes", maxHead)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		e := &Error{Line: 2, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
		first, _, _ := strings.Cut(err.Error(), "\n") // the lines after it quote the text, which may look like a place
		if m := yamlLine().FindStringSubmatch(first); m != nil {
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
		return nil, &Error{Line: n.Line + 1, Message: "the front matter is not a list of keys and values; write one key: value on each line"}
	}
	if err := plain(n, 0); err != nil {
		return nil, err
	}
	return n, nil
}

const (
	maxHead  = 256 << 10 // bytes
	maxDepth = 20        // levels of nesting; the readers of the values are recursive
)

// plain refuses aliases and deep nesting: both let a small file take unbounded memory or stack when it is read further.
func plain(n *yaml.Node, depth int) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return &Error{Line: n.Line + 1, Message: "YAML aliases (*name) are not supported in front matter; write the value out"}
	case depth > maxDepth:
		return &Error{Line: n.Line + 1, Message: "the front matter is nested too deeply; 20 levels at most"}
	}
	for _, c := range n.Content {
		if err := plain(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// severalLists matches words in brackets followed by more text, such as "[from] [to]". It is not YAML, but commands of other programs
// describe their arguments like this.
var severalLists = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[[^\[\]]*\][ \t]*[^ \t#]`) })

// keyLine matches a top-level key with a value on its line.
var keyLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*):[ \t]+(.*)$`) })

// quoted puts the plain values of top-level keys into single quotes. Values that are quoted, block texts, flow mappings,
// anchors, tags or comments already stay.
func quoted(head string) string {
	lines := strings.Split(head, "\n")
	for i, l := range lines {
		m := keyLine().FindStringSubmatch(l)
		if m == nil || m[2] == "" || strings.ContainsAny(m[2][:1], `"'{|>&*!#`) || m[2][0] == '[' && !severalLists().MatchString(m[2]) {
			continue
		}
		lines[i] = m[1] + ": '" + strings.ReplaceAll(strings.TrimSpace(m[2]), "'", "''") + "'"
	}
	return strings.Join(lines, "\n")
}

// Place returns the line of an error of Parse, from 1, and its message without the line; 1 for any other error.
func Place(err error) (line int, message string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Line, e.Message
	}
	return 1, err.Error()
}
