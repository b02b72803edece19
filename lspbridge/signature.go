package lspbridge

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// signature returns the last line of a function's signature, and whether its body is visible from outside too (leaks). Where the result
// type is declared, an edit of the body cannot break a caller; where the compiler infers it, a changed return statement can. text is the
// file's text, s one of its functions; lines are 0-based.
func signature(path, text string, s Symbol) (end int, leaks bool) {
	from := PositionOffset(text, s.Selection.End)
	to := max(from, PositionOffset(text, s.Range.End))
	rest := text[from:to]
	line := func(offset int) int { return s.Selection.End.Line + strings.Count(rest[:offset], "\n") }
	open := strings.IndexByte(rest, '(')
	if open < 0 {
		return s.Selection.End.Line, inferenceFamily(path) != ""
	}
	quotes := "\"'`"
	if strings.EqualFold(filepath.Ext(path), ".rs") {
		quotes = "\"" // in Rust the other quotes begin lifetimes
	}
	// after is the byte offset behind the parameter list, where a declared result type would begin.
	after := closingBracket(rest, open, quotes)
	tail := strings.TrimLeft(rest[after:], " \t\r\n")
	switch inferenceFamily(path) {
	case "ts":
		annotated := strings.HasPrefix(tail, ":") || strings.HasPrefix(strings.TrimLeft(rest[:open], " \t?!"), ":")
		leaks = !annotated && (s.Kind != kindConstructor || strings.Contains(filepath.Ext(path), "js")) // a JavaScript constructor declares the members that it assigns
	case "py":
		// A method that assigns to self declares a member by that.
		leaks = !strings.HasPrefix(tail, "->") || s.Kind != kindFunction
	case "cpp":
		start := PositionOffset(text, Position{Line: max(0, s.Range.Start.Line-1)}) // clangd's range does not include template <…>
		leaks = inferredCpp().MatchString(text[min(start, from):from])
	}
	// The signature ends where the body begins. TypeScript's result type can have braces and lines of its own.
	if inferenceFamily(path) == "ts" {
		after = afterTypeLiterals(rest, after, strings.Contains(rest[:open], "="))
	}
	if body := strings.IndexByte(rest[after:], '{'); body >= 0 {
		return line(after + body), leaks
	}
	if i := strings.IndexByte(rest[after:], '\n'); i >= 0 {
		return line(after + i), leaks
	}
	return line(len(rest)), leaks
}

// afterTypeLiterals returns the offset behind the last object type of a result type that begins at from; from where there is none. A brace
// opens a type where a type is still missing: behind an operator or one of its keywords. Behind the arrow of an arrow function it opens the body.
func afterTypeLiterals(text string, from int, arrow bool) int {
	end := from
	for i := from; i < len(text) && text[i] != ';'; i++ {
		if strings.IndexByte("([{", text[i]) < 0 {
			continue
		}
		before := strings.TrimRight(text[from:i], " \t\r\n")
		if text[i] == '{' && (!typeMissing().MatchString(before) || arrow && strings.HasSuffix(before, "=>")) {
			break // the body
		}
		i = closingBracket(text, i, "\"'`") - 1
		if text[i] == '}' {
			end = i + 1
		}
	}
	return end
}

// typeMissing matches the end of an unfinished TypeScript type.
var typeMissing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([:|&,<?(]|=>|\b(extends|is|keyof|readonly|new|infer|typeof))$`)
})

// inferredCpp matches C++ keywords with which other files compile the body too.
var inferredCpp = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(auto|constexpr|consteval|template|decltype)\b`) })

// inferenceFamily returns the language family of a file whose functions' results can be inferred from their bodies; "" for all others.
func inferenceFamily(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs":
		return "ts"
	case ".py", ".pyi":
		return "py"
	case ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++", ".cu", ".mm":
		return "cpp"
	}
	return ""
}

// closingBracket returns the byte offset after the bracket that closes the one at open; the length of the text if there is none. Brackets
// in string literals do not count.
func closingBracket(text string, open int, quotes string) int {
	depth := 0
	for i := open; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			if depth--; depth == 0 {
				return i + 1
			}
		case strings.IndexByte(quotes, c) >= 0:
			end := i + 1
			for end < len(text) && text[end] != c && text[end] != '\n' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if end < len(text) && text[end] == c { // else it is an apostrophe
				i = end
			}
		}
	}
	return len(text)
}
