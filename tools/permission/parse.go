package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// Parse reads the permission section of a configuration, whose comments were removed before, in the order of its keys:
//
//	"ask" | {"edit": "ask", "bash": {"*": "ask", "git status *": "allow"}, "my_server_*": "deny"}
//
// origin names the place of a byte offset in data, such as pillion.jsonc:12:3; nil leaves origins empty. All mistakes are reported
// together, each a *ParseError. The correct rules are returned beside them, but a caller that uses them must know that a deny may be
// among the missing ones.
func Parse(data []byte, origin func(offset int) string) (Ruleset, error) {
	p := parser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), origin: origin}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	p.section()
	if at := p.start(); !p.broken {
		if _, err := p.dec.Token(); err != io.EOF {
			p.fail(at, "something follows the end of the permission section")
		}
	}
	return p.rules, errors.Join(p.errs...)
}

// ParseError is one mistake in a permission section.
type ParseError struct {
	Offset  int    // bytes from the start of the section
	Origin  string // what the caller's origin function said; may be empty
	Message string
}

// Error begins with the origin where there is one, as compilers do, so that editors and terminals can link it.
func (e *ParseError) Error() string {
	if e.Origin == "" {
		return e.Message
	}
	return e.Origin + ": " + e.Message
}

// parser reads tokens itself instead of unmarshalling into a map: the order of the keys decides which rule wins, and a map
// has none.
type parser struct {
	data   []byte
	dec    *json.Decoder
	origin func(int) string
	rules  Ruleset
	errs   []error
	broken bool // the JSON itself is wrong: nothing after this can be read
}

// section reads the value of the "permission" key: one action for everything, or an object by permission.
func (p *parser) section() {
	at := p.start()
	switch tok := p.token().(type) {
	case nil:
		if !p.broken {
			p.fail(at, `permission is null; write "allow", "ask", "deny" or an object`)
		}
	case string:
		if a, ok := p.action(at, "permission", tok); ok {
			p.add(at, "*", "*", a)
		}
	case json.Delim:
		if tok != '{' {
			p.fail(at, `permission is a list; write "allow", "ask", "deny" or an object`)
			p.skip()
			return
		}
		p.object(p.permission)
	default:
		p.fail(at, fmt.Sprintf(`permission is %v; write "allow", "ask", "deny" or an object`, tok))
	}
}

// object calls f for each key of the object whose brace was just read.
func (p *parser) object(f func(at int, key string)) {
	for p.dec.More() {
		at := p.start()
		key, ok := p.token().(string)
		if !ok {
			return
		}
		f(at, key)
	}
	p.token()
}

// permission reads the value of one permission: an action, which is a rule for "*", or an object by pattern. The rules of an
// object have the place of their pattern as origin, the rule of an action has the place of the action.
func (p *parser) permission(_ int, name string) {
	at := p.start()
	where := "permission." + name
	switch tok := p.token().(type) {
	case string:
		if a, ok := p.action(at, where, tok); ok {
			p.add(at, name, "*", a)
		}
	case json.Delim:
		if tok != '{' {
			p.fail(at, where+` is a list; write "allow", "ask", "deny" or {"pattern": "action"}`)
			p.skip()
			return
		}
		p.object(func(keyAt int, pattern string) {
			at := p.start()
			where := fmt.Sprintf("%s[%q]", where, pattern)
			switch tok := p.token().(type) {
			case string:
				if a, ok := p.action(at, where, tok); ok {
					p.add(keyAt, name, pattern, a)
				}
			case json.Delim:
				p.fail(at, where+` must be "allow", "ask" or "deny"; patterns don't nest`)
				p.skip()
			default:
				p.wrong(at, where, tok, `"allow", "ask" or "deny"`)
			}
		})
	default:
		p.wrong(at, where, tok, `"allow", "ask", "deny" or {"pattern": "action"}`)
	}
}

// wrong reports a value that is not an action. JSON's true and false are common mistakes and get a hint.
func (p *parser) wrong(at int, where string, tok any, want string) {
	if p.broken {
		return
	}
	hint := ""
	switch tok {
	case true:
		hint = `; did you mean "allow"?`
	case false:
		hint = `; did you mean "deny"?`
	case nil:
		tok = "null"
	}
	p.fail(at, fmt.Sprintf("%s is %v, want %s%s", where, tok, want, hint))
}

// action reads an action's name; ok is false, and the mistake recorded, when there is no such action.
func (p *parser) action(at int, where, word string) (Action, bool) {
	switch a := Action(word); a {
	case Allow, Ask, Deny:
		return a, true
	}
	p.fail(at, fmt.Sprintf("%s is %q, want \"allow\", \"ask\" or \"deny\"%s", where, word, meant(word)))
	return "", false
}

// meant is a hint for a word that is not an action: the action that it misspells or means, empty when there is none.
func meant(word string) string {
	best, distance := "", 3
	for _, a := range [...]string{"allow", "ask", "deny"} {
		if d := fuzzy.Slips(strings.ToLower(strings.TrimSpace(word)), a); d < distance {
			best, distance = a, d
		}
	}
	switch strings.ToLower(word) {
	case "always", "yes", "true", "allowed", "accept", "approve", "permit":
		best = "allow"
	case "never", "no", "false", "reject", "block", "forbid", "refuse":
		best = "deny"
	case "prompt", "confirm":
		best = "ask"
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// add appends a rule whose origin is the byte offset at.
func (p *parser) add(at int, permission, pattern string, a Action) {
	r := Rule{Permission: permission, Pattern: pattern, Action: a}
	if p.origin != nil {
		r.Origin = p.origin(at)
	}
	p.rules = append(p.rules, r)
}

// fail records a mistake at the byte offset at; the parser continues, to find the others.
func (p *parser) fail(at int, message string) {
	e := &ParseError{Offset: at, Message: message}
	if p.origin != nil {
		e.Origin = p.origin(at)
	}
	p.errs = append(p.errs, e)
}

// start is where the next token begins: the decoder's offset is where the last one ended.
func (p *parser) start() int {
	at := int(p.dec.InputOffset())
	for at < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

// token reads the next token; nil, and broken set, when the JSON itself is wrong, which is said once. encoding/json counts the offset of a syntax
// error from 1, ParseError from 0.
func (p *parser) token() json.Token {
	if p.broken {
		return nil
	}
	at := p.start()
	tok, err := p.dec.Token()
	if err == nil {
		return tok
	}
	p.broken = true
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		p.fail(max(0, int(syntax.Offset)-1), "permission: "+syntax.Error())
	default:
		p.fail(at, "permission ends in the middle; a brace or a quote is missing")
	}
	return nil
}

// skip reads to the end of the list or object whose opening was just read.
func (p *parser) skip() {
	for depth := 1; depth > 0 && !p.broken; {
		switch p.token() {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
