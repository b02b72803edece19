package symbol

import (
	"regexp"
	"strings"
	"sync"
)

// yamlKey matches a key of a block mapping, plain or quoted, with its colon. Groups: 1 the dashes of list items before it, 2 the
// key as written, 3 the value. After a colon there must be white space or the end of the line, as in YAML 1.2 ("Plain Style"), so a
// URL is not a key. Go's regexp does not backtrack, so no line can make it slow.
var yamlKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:- +)*)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"&*!|>%@\x60{}\[\],-][^#]*?|-[^\s#][^#]*?):(\s.*|)$`)
})

// yamlLine is a line that is not blank.
type yamlLine struct {
	start, end int // in the text, without the line's end
	indent     int
	said       string
}

// yamlKeys lists the keys of block mappings; items of lists count from 0. The lines below a key belong to it if they are indented
// further; a list may have the same indentation as its key. It reads lines and not the whole syntax: anchors, flow mappings and
// block scalars are values whose content is skipped. That is enough to cut out most keys; the others are Fixed.
func yamlKeys(text string) ([]Symbol, error) {
	type open struct {
		indent int
		path   []string
		at     int // index in out; -1 for an item of a list
		items  int // number of items so far, if the value is a list
	}
	var out []Symbol
	stack := []open{{indent: -1, at: -1}}
	last := 0 // end of the last line that was not blank
	closeTo := func(indent int) {
		for len(stack) > 1 && stack[len(stack)-1].indent >= indent {
			if top := stack[len(stack)-1]; top.at >= 0 {
				out[top.at].End = last
			}
			stack = stack[:len(stack)-1]
		}
	}
	scalar := -1   // indentation of the key of the current block scalar
	comments := -1 // start of the comment lines right above
	flow := 0      // brackets of a flow value that are still open
	for at := 0; at < len(text); {
		end, next := len(text), len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		full := strings.TrimSuffix(text[at:end], "\r")
		said := strings.TrimLeft(full, " ")
		l := yamlLine{start: at + len(full) - len(said), end: at + len(strings.TrimRight(full, " \t")), indent: len(full) - len(said), said: strings.TrimRight(said, " \t")}
		at = next
		switch {
		case l.said == "":
			comments = -1
			continue
		// Lines of a block scalar (| or >) are text, even if they look like keys.
		case scalar >= 0 && l.indent > scalar:
			last, comments = l.end, -1
			continue
		// A flow collection continues on further lines until its brackets are closed.
		case flow > 0:
			flow += brackets(l.said)
			last, comments = l.end, -1
			continue
		case strings.HasPrefix(l.said, "#"):
			if comments < 0 {
				comments = l.start
			}
			continue
		case strings.HasPrefix(full, "---"), strings.HasPrefix(full, "..."), strings.HasPrefix(full, "%"):
			closeTo(0)
			last, comments, scalar = l.end, -1, -1
			continue
		}
		scalar = -1
		m := yamlKey().FindStringSubmatchIndex(l.said)
		dash := strings.HasPrefix(l.said, "- ") || l.said == "-"
		if m == nil && !dash { // a further line of a value
			last, comments = l.end, -1
			continue
		}
		indent := l.indent
		if dash { // a list may have the same indentation as its key
			closeTo(indent + 1)
			if top := stack[len(stack)-1]; top.indent == indent && top.at < 0 && len(stack) > 1 {
				stack = stack[:len(stack)-1] // end the item before
			}
			top := &stack[len(stack)-1]
			stack = append(stack, open{indent: indent, path: append(append([]string(nil), top.path...), itoa(top.items)), at: -1})
			stack[len(stack)-2].items++
			if m == nil {
				flow = max(0, brackets(l.said))
				last, comments = l.end, -1
				continue
			}
			indent += m[3] - m[2]
		} else {
			closeTo(indent)
		}
		key := l.said[m[4]:m[5]]
		name := strings.Trim(key, `"'`)
		value := strings.TrimSpace(l.said[m[6]:m[7]])
		top := stack[len(stack)-1]
		s := Symbol{Path: append(append([]string(nil), top.path...), name), Kind: "key", At: l.start + m[4] + strings.Index(key, name), Start: l.start + m[4], Bare: l.start + m[4], Deco: l.start + m[4], End: l.end}
		if comments >= 0 && !dash {
			s.Start = comments
		}
		// The key shares its line with the dash: deleting the line would delete the beginning of the item, and the rest would
		// become part of the item before it.
		if dash {
			s.Fixed = "it begins an item of a list"
		}
		last, comments = l.end, -1
		out = append(out, s)
		stack = append(stack, open{indent: indent, path: s.Path, at: len(out) - 1})
		if strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">") {
			scalar = indent
		} else if strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
			flow = max(0, brackets(value))
		}
	}
	closeTo(-1)
	return out, nil
}

// brackets is how many more brackets a line opens than it closes, ignoring strings. A # after a blank begins a comment, where the
// count ends.
func brackets(line string) (n int) {
	quote := byte(0)
	for i := range len(line) {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{':
			n++
		case c == ']' || c == '}':
			n--
		case c == '#' && i > 0 && line[i-1] == ' ':
			return n
		}
	}
	return n
}
