// Package symbol finds declarations in a text and cuts them out whole: with their doc comment, decorators, export and
// template, which is what a person means by "the function" and what a language server's ranges leave out. Text in, spans
// out; it knows no disk and no server. Syntax trees come from tree-sitter (with cgo); where there is no grammar, Lines
// widens a server's range by whole lines, and refuses when that would be a guess.
//
//	list, err := symbol.Outline("a.go", text)
//	found := symbol.Find(list, "Server.Start")
//	text, err = symbol.Replace(text, found[0], "func (s *Server) Start() error { return nil }")
package symbol

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// Symbol is a declaration. Offsets are bytes from 0.
type Symbol struct {
	Path  []string // the names of the declarations around it, outermost first, and its own; never empty
	Kind  string   // LSP's words: function, method, class …
	At    int      // where its name begins
	Start int      // of all that belongs to it: doc comment, decorators, export
	Deco  int      // of the first decorator or attribute; Bare when there is none
	Bare  int      // of the declaration itself
	End   int      // behind it, a comment on its last line included; before the line's end
	Local bool     // inside a function, where other code cannot name it
	// Sep is between it and its neighbours, where lists have one: the comma of JSON's and of object literals. It is
	// not part of the declaration; edits put it where it is needed.
	Sep string
	// Fixed is the reason why the declaration cannot be cut out as whole lines; "" if it can. Edits refuse it then.
	Fixed string
}

// Name is the last part of the path.
func (s Symbol) Name() string { return s.Path[len(s.Path)-1] }

// String is the name path, with dots whatever the language writes.
func (s Symbol) String() string { return strings.Join(s.Path, ".") }

// Errors of Outline. A caller with a language server can then use its ranges with Lines.
var (
	ErrNoGrammar = errors.New("no grammar for this kind of file") // or Pillion was built without cgo
	ErrTooBig    = errors.New("the file is too big to be parsed")
	ErrSlow      = errors.New("parsing took too long")
	ErrNotText   = errors.New("the file is not clean UTF-8 text")
)

// maxText is the longest text that is parsed, in bytes. A syntax tree takes about twenty times the memory of its text,
// and it is copied out of C memory once, so this bounds one outline at some tens of megabytes.
const maxText = 1 << 20

// Outline lists all declarations of a text of at most 1 MiB, in its order; path is not opened, its name tells the language.
// A declaration that holds a mistake of syntax is Fixed.
func Outline(path, text string) ([]Symbol, error) {
	g := grammarOf(path)
	if g == nil {
		return nil, ErrNoGrammar
	}
	// The readers of keys hold no C code and follow no tree, so they need no check for clean text.
	if g.keys != nil {
		if len(text) > maxText {
			return nil, ErrTooBig
		}
		return g.keys(text)
	}
	if len(text) > maxText {
		return nil, ErrTooBig
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 { // scanners of tree-sitter have hung on less
		return nil, ErrNotText
	}
	root, broken, err := parse(g.name, text)
	if err != nil {
		return nil, err
	}
	if g.trim {
		root.trim(text)
	}
	o := outliner{g: g, text: text, broken: broken}
	o.walk(root, nil, false)
	return o.result(), nil
}

// Broken reports whether tree-sitter finds mistakes in a text; ok is false when it cannot say.
func Broken(path, text string) (broken, ok bool) {
	g := grammarOf(path)
	if g == nil || g.keys != nil || len(text) > maxText || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return false, false
	}
	_, bad, err := parse(g.name, text)
	return len(bad) > 0, err == nil
}

// Breaks says that a text could be parsed and its successor cannot be: line is where, from 1. It says nothing where
// there is no grammar, and nothing of texts that had mistakes before. It parses up to three times. Callers warn about a
// change with it, or refuse an edit whose quotation was only similar: a false alarm would block good edits, so every
// doubt (a text that is too big, a parser that gave up) counts as unbroken.
func Breaks(path, old, new string) (line int, broken bool) {
	if was, ok := Broken(path, old); !ok || was {
		return 0, false
	}
	g := grammarOf(path)
	if is, ok := Broken(path, new); !ok || !is {
		return 0, false
	}
	_, bad, err := parse(g.name, new)
	if err != nil || len(bad) == 0 {
		return 0, false
	}
	return 1 + strings.Count(new[:min(bad[0].start, len(new))], "\n"), true
}

// Split takes a name path apart: Type.method, ns::Type::method, Type/method. A leading separator means the whole path.
// Callers get names from models, which write them as the language, as a path or as documentation does. All of these mean
// the same declaration, so they become the same parts.
func Split(path string) (parts []string, whole bool) {
	path = strings.NewReplacer("::", ".", "/", ".", "#", ".").Replace(path)
	whole = strings.HasPrefix(path, ".")
	for p := range strings.SplitSeq(path, ".") {
		if p = clean(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts, whole
}

// clean takes Go's receiver marks, parameters and type parameters off a name, so that (*Server) and Map[K] are found. C++'s
// operators keep theirs, which are their names.
func clean(p string) string {
	// Without this case operator() and operator< would lose their own name to the cut at the first bracket below. A
	// letter behind "operator" makes it an ordinary identifier, such as operatorName or operator_name.
	if op, ok := strings.CutPrefix(strings.TrimSpace(p), "operator"); ok && op != "" && !strings.ContainsAny(op[:1], "_") && (op[0] < 'A' || op[0] == '[') {
		return "operator" + strings.Join(strings.Fields(op), "")
	}
	p = strings.Trim(strings.TrimSpace(p), "()*& ")
	if i := strings.IndexAny(p, "([<{"); i > 0 {
		p = p[:i]
	}
	return strings.TrimSpace(p)
}

// Find returns the symbols whose path ends in the name path, those not inside functions first. A name that holds
// separators itself, such as a selector of CSS, may be given as it is. Several results are for the caller to resolve: an
// overload or a name in two classes must not be edited by guess. The order is that of the text, apart from locals, which
// come last.
func Find(list []Symbol, path string) []Symbol {
	parts, whole := Split(path)
	verbatim := slices.ContainsFunc(list, func(s Symbol) bool { return s.Is(path) })
	if len(parts) == 0 && !verbatim {
		return nil
	}
	var out []Symbol
	for _, s := range list {
		if verbatim && s.Is(path) || !verbatim && Matches(s.Path, parts, whole) {
			out = append(out, s)
		}
	}
	// A class's name means the class, not the constructors that are called like it. A caller that wants the constructors
	// writes the name twice (Server.Server).
	if twice := len(parts) > 1 && parts[len(parts)-1] == parts[len(parts)-2]; !twice && len(out) > 1 {
		all := slices.Clone(out)
		out = slices.DeleteFunc(out, func(s Symbol) bool {
			n := len(s.Path)
			return n > 1 && s.Path[n-1] == s.Path[n-2] && slices.ContainsFunc(all, func(o Symbol) bool { return slices.Equal(o.Path, s.Path[:n-1]) })
		})
	}
	// Local declarations are offered last, because a caller that takes the first means the one that other code can name.
	slices.SortStableFunc(out, func(a, b Symbol) int {
		switch {
		case a.Local == b.Local:
			return 0
		case a.Local:
			return 1
		}
		return -1
	})
	return out
}

// Is reports that path is exactly the symbol's name or whole path, where one of its names holds separators or brackets,
// such as a CSS selector. A plain name is left to Matches, which also finds it inside other declarations.
func (s Symbol) Is(path string) bool {
	if !slices.ContainsFunc(s.Path, func(p string) bool { return strings.ContainsAny(p, ".:/# ([<") }) {
		return false
	}
	return s.Name() == path || s.String() == path
}

// Own reports that the file consists of keys or rules, of which a language server knows no more than this package. Callers ask no server
// about such files, neither for ranges nor for uses.
func Own(path string) bool {
	g := grammarOf(path)
	return g != nil && (g.keys != nil || g.name == "css")
}

// Matches reports whether a symbol's path ends in parts, or is parts. Names are compared case-sensitively and whole: a
// prefix would make a short name ambiguous in most files.
func Matches(path, parts []string, whole bool) bool {
	if len(parts) > len(path) || whole && len(parts) != len(path) {
		return false
	}
	return slices.Equal(path[len(path)-len(parts):], parts)
}

// Enclosing is the innermost symbol around an offset. Of two with the same span the later one counts, which is the inner
// one because outlines list the outer first.
func Enclosing(list []Symbol, at int) (Symbol, bool) {
	best, ok := Symbol{}, false
	for _, s := range list {
		if s.Start <= at && at < s.End && (!ok || s.End-s.Start <= best.End-best.Start) {
			best, ok = s, true
		}
	}
	return best, ok
}

// maxAngles is how many < may be open in one statement. Each may be a comparison or a type's, so the parser follows
// both ways: fifty thousand cost gigabytes before its time is up.
const maxAngles = 200

// angles counts the largest number of < that are open at once, without knowing strings or comments: a text
// with many of them there is refused too, which is the safe side. A semicolon or a brace ends a statement, and with it
// the parser's doubt, so the count starts again there.
func angles(text string) (most int) {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '<':
			open++
			most = max(most, open)
		case '>':
			open = max(0, open-1)
		case ';', '{', '}':
			open = 0
		}
	}
	return most
}
