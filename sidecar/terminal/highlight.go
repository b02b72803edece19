package terminal

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/symbol"
)

// fenceFiles gives a file name for the words that follow a code fence, so that the grammar of that file is used.
// symbol.Tokens chooses the grammar by the extension; the file need not exist.
var fenceFiles = map[string]string{
	"go": "a.go", "golang": "a.go", "ts": "a.ts", "typescript": "a.ts", "tsx": "a.tsx", "js": "a.js", "javascript": "a.js", "jsx": "a.js",
	"py": "a.py", "python": "a.py", "rs": "a.rs", "rust": "a.rs", "c": "a.c", "cpp": "a.cpp", "c++": "a.cpp", "h": "a.h", "css": "a.css",
	"json": "a.json", "jsonc": "a.json", "java": "a.java", "php": "a.php", "rb": "a.rb", "ruby": "a.rb", "lua": "a.lua",
	"sh": "a.sh", "bash": "a.sh", "shell": "a.sh", "zsh": "a.sh", "console": "a.sh",
}

// tokenStyles are the colours of a theme's sixteen; a kind that is missing stays plain.
var tokenStyles = map[symbol.TokenKind]string{
	symbol.Keyword: magenta, symbol.String: green, symbol.Number: yellow, symbol.Comment: dim, symbol.Type: cyan, symbol.Function: blue,
}

// highlight colours code by the language that a fence names. The grammars are those that symbol tools use, so no second table of
// languages is kept; code in another language stays plain.
func highlight(language, code string) string {
	language = strings.ToLower(language)
	if language == "diff" || language == "patch" {
		return highlightDiff(code)
	}
	file, ok := fenceFiles[language]
	if !ok {
		return code
	}
	var b strings.Builder
	// Tokens are in the order of the text and count bytes; what is between them stays as it is.
	at := 0
	for _, t := range symbol.Tokens(file, code) {
		b.WriteString(code[at:t.Start])
		b.WriteString(paint(true, tokenStyles[t.Kind], code[t.Start:t.End]))
		at = t.End
	}
	b.WriteString(code[at:])
	return b.String()
}

// highlightDiff colours lines as diffs of our own are.
func highlightDiff(code string) string {
	lines := strings.Split(code, "\n")
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "@@"):
			lines[i] = paint(true, cyan, l)
		case strings.HasPrefix(l, "+"):
			lines[i] = paint(true, green, l)
		case strings.HasPrefix(l, "-"):
			lines[i] = paint(true, red, l)
		}
	}
	return strings.Join(lines, "\n")
}
