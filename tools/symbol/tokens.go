package symbol

import "strings"

// TokenKind says what a token is, as far as a reader is helped by a colour for it.
type TokenKind string

// The kinds that every grammar tells apart. Everything else has no token.
const (
	Keyword  TokenKind = "keyword"
	String   TokenKind = "string"
	Number   TokenKind = "number" // and the constants that a language spells as words: true, nil
	Comment  TokenKind = "comment"
	Type     TokenKind = "type"
	Function TokenKind = "function" // the name in a call or a declaration
)

// Token is a piece of a text with its kind; offsets are bytes from 0.
type Token struct {
	Start, End int
	Kind       TokenKind
}

// Tokens are what an editor would colour in a text, in order and without overlaps. The path only names the language; there
// are no tokens where it has no grammar, or where the text takes too long to parse. Texts that are cut off or wrong have
// tokens too, because a syntax tree marks what it does not understand and continues. The terminal colours code blocks of
// answers with it, so it never fails: without tokens a block is shown plain.
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
		// No grammar of JSON is linked, which saves its size in the binary.
		lang = "javascript" // of which JSON is a part
	}
	root, _, err := parse(lang, text)
	if err != nil {
		return nil
	}
	var out []Token
	root.tokens(text, &out)
	return out
}

// tokens adds those of a node and of what is below it. A node with a kind hides what is below it, so tokens never
// overlap.
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

// tokenKind goes by the names that grammars share: a node that stands for a word of the language is called like the word.
// A table for each grammar would be exact but has to follow each of its releases; a wrong guess here costs a colour.
func (n *node) tokenKind(text string) TokenKind {
	switch {
	case n.parent == nil:
		return ""
	case strings.Contains(n.kind, "comment"):
		return Comment
	case strings.Contains(n.kind, "string") && n.kind != "string_start" || n.kind == "char_literal" || n.kind == "rune_literal":
		return String
	// Only leaves are coloured from here on. Comments and strings above are coloured whole, although some grammars give
	// them children.
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
		case n.parent.kind == "predefined_type": // TypeScript spells types as words of the language
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

// called reports whether a name is that of a function: in its declaration, or where it is called.
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
