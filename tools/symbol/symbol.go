// Package symbol finds declarations in a text and cuts them out whole: with doc comment, decorators, export and template. A person
// means all of these by "the function", but a language server's range leaves them out. Its functions take a text and return
// positions or texts; they use no disk and no server. Syntax trees come from tree-sitter (with cgo). For languages without a
// grammar, Lines widens a server's range to whole lines, or refuses if that would be a guess.
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
	Deco  int      // start of the first decorator or attribute; Bare if there is none
	Bare  int      // start of the declaration itself
	End   int      // its end, including a comment on its last line, without the line's end
	Local bool     // inside a function, where other code cannot name it
	// Sep is the separator of the list that the declaration is in: the comma in JSON and in object literals. It is not part of the
	// declaration; edits insert it where it is needed.
	Sep string
	// Fixed is the reason why the declaration cannot be cut out as whole lines; "" if it can. Edits of a Fixed symbol are refused.
	Fixed string
}

// Name is the last part of the path.
func (s Symbol) Name() string { return s.Path[len(s.Path)-1] }

// String is the name path, with dots in every language.
func (s Symbol) String() string { return strings.Join(s.Path, ".") }

// Errors of Outline. A caller with a language server can then use its ranges with Lines.
var (
	ErrNoGrammar = errors.New("no grammar for this kind of file") // or Pillion was built without cgo
	ErrTooBig    = errors.New("the file is too big to be parsed")
	ErrSlow      = errors.New("parsing took too long")
	ErrNotText   = errors.New("the file is not valid UTF-8 text, or contains NUL")
)

// maxText is the longest text that is parsed, in bytes. A syntax tree takes about twenty times the memory of its text,
// and it is copied out of C memory once, so this bounds one outline at some tens of megabytes.
const maxText = 1 << 20

// Outline lists all declarations of a text of at most 1 MiB, in its order; path is not opened, its name tells the language.
// A declaration that contains a syntax error is Fixed.
func Outline(path, text string) ([]Symbol, error) {
	g := grammarOf(path)
	if g == nil {
		return nil, ErrNoGrammar
	}
	// The readers of JSON and YAML keys are written in Go and build no tree, so they need no check of the text.
	if g.keys != nil {
		if len(text) > maxText {
			return nil, ErrTooBig
		}
		return g.keys(text)
	}
	if len(text) > maxText {
		return nil, ErrTooBig
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 { // scanners of tree-sitter have hung on such texts
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

// Broken reports whether tree-sitter finds syntax errors in a text; ok is false if it cannot parse the text.
func Broken(path, text string) (broken, ok bool) {
	bad, ok := errorsIn(path, text)
	return len(bad) > 0, ok
}

// errorsIn are the places of syntax errors in a text; ok is false if it cannot be parsed.
func errorsIn(path, text string) (bad []span, ok bool) {
	g := grammarOf(path)
	if g == nil || g.keys != nil || len(text) > maxText || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, false
	}
	bad, err := mistakes(g.name, text)
	return bad, err == nil
}

// Breaks reports whether a change introduces a syntax error: the text before could be parsed and the text after cannot. line is
// where, from 1. It returns false if there is no grammar or the text had syntax errors before. Callers
// warn about a change, or refuse an edit whose quotation was only similar. A false alarm would block a good edit, so the result is
// also false in doubt (a text that is too big, a parser that ran out of time).
func Breaks(path, old, new string) (line int, broken bool) {
	line, broken, _ = breaks(path, old, new)
	return line, broken
}

// breaks is Breaks; clean says that all of the new text was parsed and has no error.
func breaks(path, old, new string) (line int, broken, clean bool) {
	if stillParses(path, old, new) {
		return 0, false, false
	}
	// The new text first: most edits break nothing, and the old one need not be parsed then.
	bad, ok := errorsIn(path, new)
	if !ok || len(bad) == 0 {
		return 0, false, ok
	}
	if was, ok := Broken(path, old); !ok || was {
		return 0, false, false
	}
	return 1 + strings.Count(new[:min(bad[0].start, len(new))], "\n"), true, false
}

// longText is where parsing begins to take more time than the rest of an edit, in bytes: 64 KiB take about 4 ms.
const longText = 64 << 10

// stillParses reports, without parsing all of a long text, that a change cannot have broken it: the top-level lines around each
// changed place can be parsed by themselves before and after. False says nothing.
func stillParses(path, old, new string) bool {
	g := grammarOf(path)
	if g == nil || !g.pieces || len(new) <= longText {
		return false
	}
	pieces := changedPieces(old, new)
	length := 0
	for _, p := range pieces {
		length += len(p.new)
	}
	if pieces == nil || length > len(new)/2 {
		return false
	}
	for _, p := range pieces {
		// The piece may lie in a string or a comment, so no character that ends one may have come or gone.
		if p.quotes() {
			return false
		}
		for _, text := range []string{p.old, p.new} {
			if bad, ok := errorsIn(path, text); !ok || len(bad) > 0 {
				return false
			}
		}
	}
	return true
}

// piece is a run of top-level lines of two texts.
type piece struct{ old, new string }

// changedPieces are the pieces in which two texts differ: each from a top-level line to the next that is not part of the change. It
// returns nil if no top-level line is before the change.
func changedPieces(old, new string) []piece {
	before, behind := common(old, new)
	start, end := topBefore(new[:before]), len(new)
	if start < 0 {
		return nil
	}
	if n := topAfter(new[len(new)-behind:]); n >= 0 {
		end = len(new) - behind + n
	}
	all := piece{old[start : end+len(old)-len(new)], new[start:end]}
	// Changes far apart: where both texts have as many pieces, those that are equal need no look. Pieces that do not belong together
	// are no danger, as each is judged by itself.
	olds, news := topPieces(all.old), topPieces(all.new)
	if len(olds) != len(news) {
		return []piece{all}
	}
	var out []piece
	for i := range olds {
		if olds[i] != news[i] {
			out = append(out, piece{olds[i], news[i]})
		}
	}
	return out
}

// common is how many bytes are the same at the beginning and at the end of two texts; the two do not overlap.
func common(old, new string) (before, behind int) {
	shorter := min(len(old), len(new))
	for before < shorter && old[before] == new[before] {
		before++
	}
	for behind < shorter-before && old[len(old)-1-behind] == new[len(new)-1-behind] {
		behind++
	}
	return before, behind
}

// quotes reports whether what differs has a character that can begin or end a string or a comment. A comment's mark may be half inside
// of it, so one byte more is looked at on both sides.
func (p piece) quotes() bool {
	before, behind := common(p.old, p.new)
	for _, text := range []string{p.old, p.new} {
		changed := text[max(0, before-1):min(len(text), len(text)-behind+1)]
		if strings.ContainsAny(changed, "\"'`\\") || strings.Contains(changed, "/*") || strings.Contains(changed, "*/") {
			return true
		}
	}
	return false
}

// topPieces splits a text before each line that begins with a letter at its very start.
func topPieces(text string) (out []string) {
	for {
		n := topAfter(text)
		if n < 0 {
			return append(out, text)
		}
		out, text = append(out, text[:n]), text[n:]
	}
}

// topBefore is the offset of the last top-level line, -1 if there is none. A last line that is not complete does not count: the rest of it
// may have changed.
func topBefore(text string) int {
	for end := strings.LastIndexByte(text, '\n'); end >= 0; end = strings.LastIndexByte(text[:end], '\n') {
		line := strings.LastIndexByte(text[:end], '\n') + 1
		if isTop(text[line:]) {
			return line
		}
	}
	return -1
}

// topAfter is the offset of the first top-level line behind the present one, -1 if there is none.
func topAfter(text string) int {
	for at := 0; ; {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 || at+n+1 == len(text) {
			return -1
		}
		if at += n + 1; isTop(text[at:]) {
			return at
		}
	}
}

// isTop reports whether a text begins with a top-level line: one that begins with a letter at its very start, and not with a word that
// goes on with the statement before it.
func isTop(text string) bool {
	if !isLetter(text[0]) {
		return false
	}
	n := 1
	for n < len(text) && isLetter(text[n]) {
		n++
	}
	switch text[:n] {
	case "else", "elif", "except", "finally", "catch", "case", "default":
		return false
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

// Split splits a name path: Type.method, ns::Type::method, Type/method. A leading separator means that the path is complete. Models
// write names as the language, a path or the documentation does; all these spellings give the same parts.
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

// clean removes Go's receiver marks, parameters and type parameters from a name, so that (*Server) and Map[K] are found. Operators
// of C++ keep these characters, because they are their names.
func clean(p string) string {
	// Without this case operator() and operator< would be cut at the first bracket below. If a letter follows "operator", it is an
	// ordinary identifier, such as operatorName or operator_name.
	if op, ok := strings.CutPrefix(strings.TrimSpace(p), "operator"); ok && op != "" && !strings.ContainsAny(op[:1], "_") && (op[0] < 'A' || op[0] == '[') {
		return "operator" + strings.Join(strings.Fields(op), "")
	}
	p = strings.Trim(strings.TrimSpace(p), "()*& ")
	if i := strings.IndexAny(p, "([<{"); i > 0 {
		p = p[:i]
	}
	return strings.TrimSpace(p)
}

// Find returns the symbols whose path ends in the name path, in the order of the text; those inside functions come last. A name
// that contains separators, such as a CSS selector, may be given as it is. If there are several results, the caller must resolve
// them: an overload, or a name in two classes, must not be edited by guess.
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
	// A class's name means the class and not its constructors, which have the same name. A caller that wants the constructors
	// writes the name twice (Server.Server).
	if twice := len(parts) > 1 && parts[len(parts)-1] == parts[len(parts)-2]; !twice && len(out) > 1 {
		all := slices.Clone(out)
		out = slices.DeleteFunc(out, func(s Symbol) bool {
			n := len(s.Path)
			return n > 1 && s.Path[n-1] == s.Path[n-2] && slices.ContainsFunc(all, func(o Symbol) bool { return slices.Equal(o.Path, s.Path[:n-1]) })
		})
	}
	// Local declarations come last: a caller that uses the first one means the one that other code can name.
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

// Is reports whether path is exactly the symbol's name or whole path, if one of its names contains separators or brackets, such as
// a CSS selector. Matches handles plain names and also finds them inside other declarations.
func (s Symbol) Is(path string) bool {
	if !slices.ContainsFunc(s.Path, func(p string) bool { return strings.ContainsAny(p, ".:/# ([<") }) {
		return false
	}
	return s.Name() == path || s.String() == path
}

// Own reports whether the file consists of keys or rules, about which a language server knows no more than this package. Callers
// ask no server about ranges and uses in such files.
func Own(path string) bool {
	g := grammarOf(path)
	return g != nil && (g.keys != nil || g.name == "css")
}

// Matches reports whether a symbol's path is parts or ends in parts. Names are compared case-sensitively and as a whole: with
// prefixes, a short name would be ambiguous in most files.
func Matches(path, parts []string, whole bool) bool {
	if len(parts) > len(path) || whole && len(parts) != len(path) {
		return false
	}
	return slices.Equal(path[len(path)-len(parts):], parts)
}

// Enclosing is the innermost symbol around an offset. If two have the same span, it is the later one: outlines list the outer one
// first.
func Enclosing(list []Symbol, at int) (Symbol, bool) {
	best, ok := Symbol{}, false
	for _, s := range list {
		if s.Start <= at && at < s.End && (!ok || s.End-s.Start <= best.End-best.Start) {
			best, ok = s, true
		}
	}
	return best, ok
}

// maxAngles is how many < may be open in one statement. Each may be a comparison or belong to a type, so the parser tries both:
// fifty thousand need gigabytes before the time limit is reached.
const maxAngles = 200

// angles counts the largest number of < that are open at once. It also counts those in strings and comments; a text with many of
// them is then refused, which does no harm. A semicolon or a brace ends a statement and with it the ambiguity, so the count starts
// again there.
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
