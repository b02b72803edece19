package symbol

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Lines makes a symbol from a language server's range, for languages without a grammar. It takes whole lines and adds what servers
// leave out: modifiers before the range, a semicolon after it, and comments, attributes and templates above. start and end are the
// server's range and at is the place of the name, all in bytes. If this would be a guess, the symbol is Fixed, with the reason. In
// doubt it is Fixed: an edit by quoted text is still possible, but a cut at the wrong line destroys code.
func Lines(path, text string, names []string, kind string, start, end, at int) Symbol {
	s := Symbol{Path: names, Kind: kind, At: at}
	from := strings.LastIndexByte(text[:start], '\n') + 1
	s.Bare = from + len(text[from:start]) - len(strings.TrimLeft(text[from:start], " \t"))
	s.Start, s.Deco, s.End = s.Bare, s.Bare, end
	for s.End > start && (text[s.End-1] == '\n' || text[s.End-1] == '\r') {
		s.End--
	}
	fix := func(why string) Symbol { s.Fixed = why; return s }
	// Only modifiers (public static) may be between the line's start and the server's range.
	if strings.ContainsAny(text[s.Bare:start], ";{}()=,") {
		return fix("it shares its first line with other code")
	}
	rest := text[s.End:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	rest = strings.TrimSuffix(rest, "\r")
	tail := strings.TrimLeft(rest, " \t")
	switch {
	case tail == "":
	case tail[0] == ';':
		s.End += len(rest) - len(tail) + 1
		if more := strings.TrimSpace(tail[1:]); more != "" && !comment(path, more) {
			return fix("it shares its last line with other code")
		}
	case !comment(path, tail):
		return fix("the server's range ends in the middle of a line")
	}
	// If a range ends inside the body, an opening bracket is not closed.
	if !balanced(text[s.Bare:s.End]) {
		return fix("its brackets do not match, so its end is not certain")
	}
	s.above(path, text, from)
	return s
}

// cLike reports whether # begins a directive and not a comment, as in C and C#. Otherwise #include or #region would be taken for a
// comment and moved with a function.
func cLike(path string) bool {
	return slices.Contains([]string{".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".cu", ".m", ".mm", ".cs"}, strings.ToLower(filepath.Ext(path)))
}

// comment reports whether a line begins with a comment of the language.
func comment(path, line string) bool {
	switch {
	case strings.HasPrefix(line, "//"), strings.HasPrefix(line, "/*"):
		return true
	case strings.HasPrefix(line, "#"):
		return !cLike(path) && !strings.HasPrefix(line, "#!")
	case strings.HasPrefix(line, "--"):
		return slices.Contains([]string{".lua", ".hs", ".sql", ".elm"}, filepath.Ext(path))
	}
	return false
}

// template matches lines above a declaration that belong to it: templates and constraints of C++, its [[attributes]], and
// [Attributes] of C#, which begin with a capital letter.
var template = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(template\s*<.*>|requires\b.*|\[\[.*\]\]|\[[A-Z].*\])\s*$`)
})

// above returns the start of the lines above that belong to the declaration; from is where its first line starts. It goes up line
// by line and stops at the first line that is blank or code.
func (s *Symbol) above(path, text string, from int) {
	block := false // inside a /* */, read from its end
	for from > 0 {
		line := strings.LastIndexByte(text[:from-1], '\n') + 1
		said := strings.TrimSpace(text[line : from-1])
		indent := line + len(text[line:from-1]) - len(strings.TrimLeft(text[line:from-1], " \t"))
		switch {
		// Inside a block comment every line belongs to it until the line that opens it.
		case block:
			block = !strings.HasPrefix(said, "/*")
		case strings.HasSuffix(said, "*/"):
			if i := strings.LastIndex(said, "/*"); i > 0 {
				return // a comment after code
			}
			block = !strings.HasPrefix(said, "/*")
		case strings.HasPrefix(said, "@") && !cLike(path), template().MatchString(said):
			s.Deco = indent
		case said == "" || !comment(path, said):
			return
		}
		if !block {
			s.Start = indent
		}
		from = line
	}
}

// balanced counts brackets, also those in strings and comments. It can therefore refuse a declaration that is complete; an edit by
// quoted text is then needed.
func balanced(text string) bool {
	var open []byte
	for i := range len(text) {
		switch c := text[i]; c {
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != map[byte]byte{')': '(', ']': '[', '}': '{'}[c] {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}
