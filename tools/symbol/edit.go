package symbol

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pillion-dev/pillion/tools/replace"
)

// FixedError is returned by the edits for a symbol that cannot be cut out; its text says what to use instead.
type FixedError struct {
	Symbol Symbol
	Why    string
}

func (e *FixedError) Error() string {
	return fmt.Sprintf("%s cannot be edited as a whole: %s; use edit instead", e.Symbol, e.Why)
}

// checkEditable returns a *FixedError if the symbol is Fixed. Every edit calls it first: an edit of a Fixed symbol would remove or
// keep the wrong code.
func checkEditable(s Symbol) error {
	if s.Fixed != "" {
		return &FixedError{s, s.Fixed}
	}
	return nil
}

// Read returns the whole lines of the declaration and of everything that belongs to it, and the line (from 0) where they begin. A
// caller that shows line numbers adds 1. Replace accepts this text; it only adjusts the indentation.
func Read(text string, s Symbol) (decl string, line int) {
	from := strings.LastIndexByte(text[:s.Start], '\n') + 1
	return text[from:s.End], strings.Count(text[:from], "\n")
}

// Replace replaces a symbol by another declaration. Models leave out what they do not change: so the old comment stays if the new
// text has none, and the old decorators stay if the new text has neither comment nor decorators. The body gets the file's line
// endings and the indentation of the old declaration. Here and below s must come from this very text, because its offsets are used.
func Replace(text string, s Symbol, body string) (string, error) {
	if err := checkEditable(s); err != nil {
		return "", err
	}
	from := s.Start
	body = unfenced(body)
	// The beginning of the body decides which parts of the old declaration it replaces. "#[" is an attribute of Rust and "#define"
	// is a declaration, so neither counts as a comment.
	switch lead := strings.TrimSpace(body); {
	case strings.HasPrefix(lead, "//"), strings.HasPrefix(lead, "/*"), strings.HasPrefix(lead, "-- "), strings.HasPrefix(lead, "---"), strings.HasPrefix(lead, "#") && !strings.HasPrefix(lead, "#[") && !strings.HasPrefix(lead, "#define"):
	case strings.HasPrefix(lead, "@"), strings.HasPrefix(lead, "#["), strings.HasPrefix(lead, "template"), strings.HasPrefix(lead, "[["):
		from = s.Deco
	default:
		from = s.Bare
	}
	body = s.bare(body)
	if why := replace.Misgiven("body", text[from:s.End], body); why != "" {
		return "", &replace.Error{Kind: replace.Conflict, Message: why}
	}
	if twice(body) {
		return "", &replace.Error{Kind: replace.Conflict, Message: "body has the declaration twice; give it once"}
	}
	if next := s.goesOn(text, body); next != "" {
		return "", &replace.Error{Kind: replace.Conflict, Message: fmt.Sprintf("body goes on with what is behind the declaration (%q) and would write it twice; give the one declaration only", next)}
	}
	from -= len(indentAt(text, from))
	block, err := reindentBody(text, text[from:s.End], body, false)
	if err != nil {
		return "", err
	}
	return text[:from] + block + text[s.End:], nil
}

// unfenced is a body without the code fence of Markdown in which a model gave it. Some grammars read the fence as part of the program: to
// JavaScript it is two templates.
func unfenced(body string) string {
	lines := strings.Split(strings.Trim(body, "\r\n"), "\n")
	info, fenced := strings.CutPrefix(lines[0], "```")
	if !fenced || len(lines) < 3 || strings.TrimSpace(lines[len(lines)-1]) != "```" || strings.ContainsAny(strings.TrimSpace(info), "` ;") {
		return body
	}
	return strings.Join(lines[1:len(lines)-1], "\n")
}

// wordedLines are the lines of a text that are not blank.
func wordedLines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}

// twice reports whether a body is one text of several lines and the same text again. Two overloads of a name may be one declaration to the
// outline, so that Doubled does not see it.
func twice(body string) bool {
	lines := wordedLines(body)
	n := len(lines) / 2
	return n > 1 && len(lines) == 2*n && slices.EqualFunc(lines[:n], lines[n:], func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) })
}

// goesOn is the line behind a declaration with which a body goes on; "" for none. A signature of one line may be there twice, and two overloads
// are one declaration to the outline, so that Doubled does not see it.
func (s Symbol) goesOn(text, body string) string {
	lines := wordedLines(body)
	_, behind, _ := strings.Cut(text[s.End:], "\n")
	next := ""
	for line := range strings.SplitSeq(behind, "\n") {
		if next = line; strings.TrimSpace(line) != "" {
			break
		}
	}
	if len(lines) < 2 || !strings.ContainsFunc(next, unicode.IsLetter) {
		return ""
	}
	last := lines[len(lines)-1]
	indent := func(line string) string { return indentAt(line, len(line)) }
	own := text[s.Start:s.End]
	own = own[strings.LastIndexByte(own, '\n')+1:]
	// A line further in belongs to the body, and one with which the old declaration ends too is the end of the new one.
	if words := strings.TrimSpace(next); strings.TrimSpace(last) != words || strings.TrimSpace(own) == words || indent(last) != indent(lines[0]) || indent(next) != indentAt(text, s.Start) {
		return ""
	}
	return strings.TrimSpace(next)
}

// Doubled is a declaration that a change from old to new writes a second time: a body that goes on with the declarations behind the one
// that it replaces, or has that one twice. was and is are the outlines of both.
func Doubled(old, new string, was, is []Symbol) (Symbol, bool) {
	words := func(text string, s Symbol) string { return strings.Join(strings.Fields(text[s.Bare:s.End]), " ") }
	count := map[string]int{} // by name path and words
	key := func(text string, s Symbol) string { return strings.Join(s.Path, "\x00") + "\x00\x00" + words(text, s) }
	for _, s := range was {
		count[key(old, s)]++
	}
	seen := map[string]int{}
	for _, s := range is {
		k := key(new, s)
		if seen[k]++; seen[k] > 1 && seen[k] > count[k] {
			return s, true
		}
	}
	// In another container it may not be read as the same declaration.
	before, after := strings.Join(strings.Fields(old), " "), strings.Join(strings.Fields(new), " ")
	for _, s := range was {
		// A signature of one line may be in several places; with its comment it is in one. Two of them are one declaration to some grammars.
		if !strings.Contains(old[s.Bare:s.End], "\n") {
			s.Bare = s.Start
		}
		if !s.Local && strings.Contains(old[s.Bare:s.End], "\n") {
			if w := words(old, s); strings.Count(after, w) > strings.Count(before, w) {
				return s, true
			}
		}
	}
	return Symbol{}, false
}

// Declares reports whether a text has a declaration where it had s before that was replaced: one of its name in the same container (another
// place may have one of that name too, as two callbacks do), or, as it may have been renamed, nothing but declarations, one of its kind
// among them. before and after are the outlines of the old and the new text, which differ between the start and the end of s only. Some
// grammars take the statements of a body for declarations of variables, and bodies have declarations of their own.
func (s Symbol) Declares(old, new string, before, after []Symbol) bool {
	from, to := s.Start-len(indentAt(old, s.Start)), len(new)-(len(old)-s.End)
	up := s.Path[:len(s.Path)-1]
	kind, named, n, rest := false, false, 0, []byte(new[:max(from, to)])
	for _, x := range after {
		// One that begins further up has only taken in the new lines, and one that begins behind them takes their comments.
		if len(x.Path) != len(s.Path) || !slices.Equal(x.Path[:len(up)], up) || x.Bare < from || x.Bare >= to {
			continue
		}
		// An assignment in a body may be to the name of its function, and a constructor has the name of its class.
		if x.Name() == s.Name() && x.Kind == s.Kind {
			return true
		}
		inside := func(b Symbol) bool {
			return b.Kind == x.Kind && b.Name() == x.Name() && slices.Equal(b.Path[:len(b.Path)-1], s.Path)
		}
		if slices.ContainsFunc(before, inside) {
			return false // what s held, without s: the inner one of two namespaces
		}
		n++
		kind, named = kind || x.Kind == s.Kind, named || x.Name() == s.Name()
		for i := x.Start; i < min(x.End, to); i++ {
			rest[i] = ' '
		}
	}
	worded := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return (kind || named && n == 1) && !bytes.ContainsFunc(rest[min(from, to):], worded) && s.alone(before, after)
}

// overlaps reports whether x is s, a part of it or around it.
func (s Symbol) overlaps(x Symbol) bool { return x.Start < s.End && x.End > s.Start }

// alone reports whether all other declarations beside s are still there: a body that is no declaration may take the next one into an
// expression, and what was inside that one then counts for s.
func (s Symbol) alone(before, after []Symbol) bool {
	left := map[string]int{}
	for _, x := range after {
		left[x.Kind+"\x00"+strings.Join(x.Path, "\x00")]++
	}
	for _, x := range before {
		if x.Local || s.overlaps(x) {
			continue
		}
		key := x.Kind + "\x00" + strings.Join(x.Path, "\x00")
		if left[key]--; left[key] < 0 {
			return false
		}
	}
	return true
}

// bare is a body without a separator at its end.
func (s Symbol) bare(body string) string {
	if s.Sep == "" {
		return body
	}
	return strings.TrimSuffix(strings.TrimRight(body, " \t\r\n"), s.Sep)
}

// behind is the byte offset after a symbol and its separator. The last symbol of a list has no separator; then separated is false
// and the caller must write one.
func (s Symbol) behind(text string) (at int, separated bool) {
	if s.Sep == "" {
		return s.End, false
	}
	rest := text[s.End:]
	bare := strings.TrimLeft(rest, " \t")
	if strings.HasPrefix(bare, s.Sep) {
		return s.End + len(rest) - len(bare) + len(s.Sep), true
	}
	return s.End, false
}

// Before and After insert a declaration next to a symbol, at its indentation. They insert a blank line between the two unless both
// have one line and the list has no blank lines. A separator at the end of the body is removed, and the list's own is written.
func Before(text string, s Symbol, body string) (string, error) {
	if err := checkEditable(s); err != nil {
		return "", err
	}
	from := strings.LastIndexByte(text[:s.Start], '\n') + 1
	nl := newline(text)
	block, err := reindentBody(text, text[from:s.End], s.bare(body), true)
	if err != nil {
		return "", err
	}
	block += s.Sep + nl
	if wantsBlankLine(text, s, body) {
		block += nl
	}
	return text[:from] + block + text[from:], nil
}

// After is Before for the place after the symbol.
func After(text string, s Symbol, body string) (string, error) {
	if err := checkEditable(s); err != nil {
		return "", err
	}
	nl := newline(text)
	block, err := reindentBody(text, text[s.Start-len(indentAt(text, s.Start)):s.End], s.bare(body), true)
	if err != nil {
		return "", err
	}
	block = nl + block
	if wantsBlankLine(text, s, body) {
		block = nl + block
	}
	if s.Sep == "" {
		return text[:s.End] + block + text[s.End:], nil
	}
	at, separated := s.behind(text)
	if !separated { // it was the last element; now the new one is
		return text[:s.End] + s.Sep + block + text[s.End:], nil
	}
	line := len(text) // after a comment on the same line
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		line = at + len(strings.TrimSuffix(text[at:at+i], "\r"))
	}
	return text[:line] + strings.TrimSuffix(block, s.Sep) + s.Sep + text[line:], nil
}

// Delete removes a symbol and one of the blank lines around it, so that the distance of its neighbours stays the same. The file
// keeps its final line end.
func Delete(text string, s Symbol) (string, error) {
	if err := checkEditable(s); err != nil {
		return "", err
	}
	from := strings.LastIndexByte(text[:s.Start], '\n') + 1
	to := len(text)
	if i := strings.IndexByte(text[s.End:], '\n'); i >= 0 {
		to = s.End + i + 1
	}
	head, tail := text[:from], text[to:]
	if _, separated := s.behind(text); s.Sep != "" && !separated { // the last of a list: now the one before it is the last
		if bare := strings.TrimRight(head, " \t\r\n"); strings.HasSuffix(bare, s.Sep) && s.strict() {
			head = strings.TrimSuffix(bare, s.Sep) + head[len(bare):]
		}
	}
	first, _, _ := strings.Cut(tail, "\n")
	above := strings.TrimRight(head, " \t\r\n")
	blankAbove := strings.Count(head[len(above):], "\n") > 1 || above == ""
	switch {
	case strings.TrimSpace(tail) == "": // the last one: no blank lines at the file's end
		head, tail = above, ""
		if above != "" {
			head += newline(text)
		}
	case strings.TrimSpace(first) == "" && blankAbove:
		tail = strings.TrimPrefix(tail[len(first):], "\n")
	case blankAbove && strings.IndexAny(strings.TrimSpace(first), ")]}") == 0:
		head = above + newline(text)
	}
	return head + tail, nil
}

// strict reports whether a list allows no separator after its last element, as in JSON. JavaScript and Rust allow it there, and
// formatters write it.
func (s Symbol) strict() bool { return s.Kind == "key" }

// newline is CRLF for a text that contains any CRLF.
func newline(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// indentAt is the white space before an offset on its line. Tabs stay tabs, because the bytes are copied to the beginning of other
// lines.
func indentAt(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// wantsBlankLine reports whether a blank line belongs between a symbol and its new neighbour: if one of them has several lines, or
// if there are blank lines around the symbol already. JSON never gets blank lines.
func wantsBlankLine(text string, s Symbol, body string) bool {
	if s.Sep != "" && s.Kind == "key" {
		return false
	}
	if strings.Contains(strings.TrimSpace(body), "\n") || strings.Contains(text[s.Bare:s.End], "\n") {
		return true
	}
	gap := func(t string) bool { return strings.Count(t[:len(t)-len(strings.TrimLeft(t, " \t\r\n"))], "\n") > 1 }
	head := strings.TrimRight(text[:s.Start], " \t\r\n")
	return gap(text[s.End:]) || strings.Count(text[len(head):s.Start], "\n") > 1
}

// reindentBody gives a body the file's line endings and the indentation of the declaration that it replaces or is inserted beside.
// The edit engine finds the indentation, as it does for quoted lines. It fails with ErrDepth if the body mixes indentations so that
// a line could belong to two depths: in Python a wrong depth changes the meaning without an error.
func reindentBody(text, there, body string, beside bool) (string, error) {
	lf := func(s string) []string {
		return strings.Split(strings.ReplaceAll(strings.Trim(s, "\r\n"), "\r\n", "\n"), "\n")
	}
	lines := lf(body)
	lines[len(lines)-1] = strings.TrimRight(lines[len(lines)-1], " \t")
	out, ok := replace.Reindent(lf(text), lf(there), lines, beside)
	if !ok {
		return "", ErrDepth
	}
	return strings.Join(out, newline(text)), nil
}

// ErrDepth means that a line of the new text could belong to two depths.
var ErrDepth = errors.New("the indentation of body does not show how deep each line belongs; indent every line as it must be in the file")
