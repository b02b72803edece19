package symbol

import "strings"

// TokenKind says what a token is, as far as an editor colours it.
type TokenKind string

// The kinds that every grammar distinguishes. Everything else has no token.
const (
	Keyword  TokenKind = "keyword"
	String   TokenKind = "string"
	Number   TokenKind = "number" // also the constants that a language writes as words: true, nil
	Comment  TokenKind = "comment"
	Type     TokenKind = "type"
	Function TokenKind = "function" // the name in a call or a declaration
)

// Token is a piece of a text with its kind; offsets are bytes from 0.
type Token struct {
	Start, End int
	Kind       TokenKind
}

// Tokens returns the parts of a text that an editor would colour, in order and without overlaps. The path only gives the language.
// The result is empty if the language has no grammar or the text takes too long to parse. Texts that are incomplete or wrong have
// tokens too, because a syntax tree marks what it cannot read and continues. The terminal colours code blocks of answers with it;
// without tokens a block is shown plain, so there is no error.
func Tokens(path, text string) []Token {
	g := grammarOf(path)
	if g == nil || !hasParser {
		return nil
	}
	lang := g.name
	if g.keys != nil {
		if lang != "json" {
			return nil
		}
		// No grammar of JSON is linked, to keep the binary small.
		lang = "javascript" // JSON is part of its syntax
	}
	root, _, err := parse(lang, text)
	if err != nil {
		return nil
	}
	var out []Token
	root.tokens(text, &out)
	return out
}

// tokens adds the tokens of a node and its descendants. If a node has a kind, its descendants are skipped, so tokens never overlap.
func (n *node) tokens(text string, out *[]Token) {
	if kind := n.tokenKind(text); kind != "" {
		if n.end > n.start {
			*out = append(*out, Token{n.start, n.end, kind})
		}
		return
	}
	for _, k := range n.kids {
		k.tokens(text, out)
	}
}

// tokenKind uses the names that grammars share: the node of a keyword has the keyword as its name. A table for each grammar would
// be exact but would have to follow each of its releases; a wrong guess here costs only a colour.
func (n *node) tokenKind(text string) TokenKind {
	switch {
	case n.parent == nil:
		return ""
	case strings.Contains(n.kind, "comment"):
		return Comment
	case strings.Contains(n.kind, "string") && n.kind != "string_start" || n.kind == "char_literal" || n.kind == "rune_literal":
		return String
	// From here on only leaves are coloured. Comments and strings, above, are coloured as a whole, although some grammars give them
	// children.
	case len(n.kids) > 0:
		return ""
	}
	switch n.kind {
	case "true", "false", "nil", "null", "none", "None", "True", "False", "undefined", "iota", "boolean":
		return Number
	case "type_identifier", "primitive_type", "predefined_type":
		return Type
	case "identifier", "field_identifier", "property_identifier":
		if n.called() {
			return Function
		}
		return ""
	}
	word := text[n.start:n.end]
	if n.kind == word {
		switch {
		case n.parent.kind == "predefined_type": // TypeScript has types that are keywords
			return Type
		case strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "":
			return Keyword
		}
		return ""
	}
	for _, number := range []string{"number", "integer", "int_literal", "float", "imaginary_literal"} {
		if strings.Contains(n.kind, number) {
			return Number
		}
	}
	return ""
}

// called reports whether a name is the name of a function, in its declaration or in a call.
func (n *node) called() bool {
	p := n.parent
	if n.field == "name" && (strings.Contains(p.kind, "function") || strings.Contains(p.kind, "method")) {
		return true
	}
	if n.field == "field" || n.field == "property" || n.field == "attribute" { // the last part of a.b.c()
		n, p = p, p.parent
	}
	return p != nil && n.field == "function" && strings.Contains(p.kind, "call")
}
