package symbol

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// LongLiterals are the literals of a text that reach over several lines, as half-open ranges of bytes in their order: strings, templates
// with the code in them, here documents. path is not opened, its name tells the language. ok is false where there may be others: the
// language has no grammar, or the text is broken, too big or too slow to parse.
func LongLiterals(path, text string) (literals [][2]int, ok bool) {
	g := grammarOf(path)
	switch {
	case isProse(path):
		return nil, true
	case g == nil || !hasParser || len(text) > maxText || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0:
		return nil, false
	case g.name == "json":
		return nil, true // a string ends on its line
	case g.keys != nil:
		return nil, false
	}
	literals, whole, err := longLiterals(g.name, text)
	return literals, whole && err == nil
}

// isProse reports a file of text for people, in which a backquote or three quotes begin nothing that ends many lines further on.
func isProse(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".md", ".markdown", ".rst", ".txt", ".adoc":
		return true
	}
	return false
}

// isLiteral uses the names that grammars share, like tokenKind. Several short strings in a row are not a long one, and between the words of
// a list blanks are no text.
func isLiteral(kind string) bool {
	switch kind {
	case "concatenated_string", "chained_string", "string_array", "symbol_array", "template_substitution":
		return false
	case "template_literal_type", "shell_command_expression", "subshell", "regex", "char_literal":
		return true
	}
	return strings.Contains(kind, "string") || strings.Contains(kind, "heredoc_body") || strings.Contains(kind, "nowdoc")
}
