package scan

import (
	"os/user"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// Unknown parts of a value are marked by control characters. A command that contains one itself is opaque (visible.Deceptive),
// so no text of a model can pass for a mark.
const (
	Hole = "\x01" // something without a slash and not "." or "..": a number, a date
	Wild = "\x02" // anything
)

// maxValues is how many values a word may have before it counts as unknown. The values of a word are the product of those
// of its parts, so five loop variables in one word would be thousands.
const maxValues = 32

// Value is one text that a word may expand to. With Glob, Pattern is the same text as a pattern in which quoted characters
// are escaped; the shell replaces it by the names it finds, or leaves it as it is when it finds none.
type Value struct {
	Text, Pattern string
	Glob          bool
	// printed is what the shell's echo or printf most likely makes of it where Text is unknown, if hasPrinted: $(printf '\x72m').
	// Only rules that deny see it. To everything else the value may be anything, since another shell may print something else.
	printed    string
	hasPrinted bool
}

// Literal is the value of a text without wildcards.
func Literal(s string) Value { return Value{Text: s, Pattern: escapeGlob(s)} }

// Known reports that no part of the value may be anything. A Known value may still hold wildcards and holes.
func (v Value) Known() bool { return !strings.Contains(v.Text, Wild) }

// Exact reports that Text is exactly what the program is given.
func (v Value) Exact() bool { return !v.Glob && !strings.ContainsAny(v.Text, Hole+Wild) }

// escapeGlob is a pattern that matches s only.
func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[\`) {
		return s
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(s)
}

// Join puts one value after another.
func Join(a, b Value) Value {
	out := Value{Text: a.Text + b.Text, Pattern: a.Pattern + b.Pattern, Glob: a.Glob || b.Glob}
	if a.hasPrinted || b.hasPrinted {
		x, ok := a.spelled()
		y, too := b.spelled()
		out.printed, out.hasPrinted = x+y, ok && too
	}
	return out
}

// spelled is the value as far as it can be told: Text where that is known, else what the shell most likely prints for it.
func (v Value) spelled() (string, bool) {
	if v.hasPrinted {
		return v.printed, true
	}
	return v.Text, !strings.ContainsAny(v.Text, Hole+Wild)
}

// Word is one argument of a call: what it may be, and how it was written.
type Word struct {
	Values []Value
	Text   string // as rules see it
	Source string // as typed
	Static bool   // written out, no expansion in it
	many   bool   // may become several arguments or none; then the place of every later word is unsure
	Hidden bool   // added by xargs, so not part of any text that rules see
}

// One is the word's only value. ok is false when it has several, or one that is not exact.
func (a Word) One() (string, bool) {
	if len(a.Values) == 1 && a.Values[0].Exact() && !a.many {
		return a.Values[0].Text, true
	}
	return "", false
}

// Known reports that each value of the word is known. A word with several known values is known as well.
func (a Word) Known() bool {
	for _, v := range a.Values {
		if !v.Known() {
			return false
		}
	}
	return true
}

// Plain is a word as if s had been written out, without quotes or expansions.
func Plain(s string) Word {
	return Word{Values: []Value{Literal(s)}, Text: s, Source: s, Static: true}
}

// Unknown is an argument that may be any number of words, and is not part of the text that rules see.
func Unknown() Word { return Word{Values: anything, many: true, Hidden: true} }

// anything is the value of a word that nothing is known of. It is shared, so it must not be changed.
var anything = []Value{{Text: Wild, Pattern: Wild}}

// expander finds out what words may expand to. It holds what that depends on besides the state: the request and the text of the
// script.
// Nothing it does changes the state; only the walker moves the shell.
type expander struct {
	*accesses
	req      Request
	programs Programs
	text     scriptText
	funcs    map[string][]*function // all declarations so far, whether they run or not
	visiting map[string]bool        // variables whose values are being looked up: x=$y y=$x would not end
	steps    int                    // statements, words and variables looked at so far; see maxSteps
	inArith  bool                   // values are looked up for arithmetic, where an unset name counts as 0
}

// step counts a step. It reports false, and makes the command opaque, when the limits are reached; the caller then stops.
func (x *expander) step() bool {
	x.steps++
	if x.steps > maxSteps || x.paths.late() {
		x.opaque("it is too long to be looked at in full")
		return false
	}
	return true
}

// args expands a word into its arguments: one, or several where it has braces.
// Beyond 256 words, as {1..9}{1..9}{1..9} makes, the word is unknown.
func (x *expander) args(word *syntax.Word, st *state) []Word {
	if len(word.Parts) == 0 { // x=
		return []Word{{Values: []Value{{}}, Static: true}}
	}
	src := x.text.source(word)
	// Most words are plain: this saves them the way through parts.
	if lit := word.Lit(); lit != "" && !strings.ContainsAny(lit, "\\*?[{~") {
		return []Word{Plain(lit)}
	}
	if strings.Contains(src, "{") {
		if split, ok := braces(word); ok {
			var out []Word
			for _, part := range split {
				a := x.argOf(part, src, st)
				a.Static = false
				a.Text = src
				if s, ok := a.One(); ok {
					a.Text = s
				}
				out = append(out, a)
				if len(out) > 256 {
					return []Word{{Values: anything, Text: src, Source: src, many: true}}
				}
			}
			return out
		}
	}
	return []Word{x.argOf(word, src, st)}
}

// braces splits {a,b} and {1..9}; ok is false when the word has none.
func braces(word *syntax.Word) ([]*syntax.Word, bool) {
	copied := *word
	copied.Parts = append([]syntax.WordPart(nil), word.Parts...)
	if !syntax.SplitBraces(&copied) {
		return nil, false
	}
	// "?unknown" is not a name of a variable, so param answers anything for it.
	unknown := []*syntax.Word{{Parts: []syntax.WordPart{&syntax.ParamExp{Param: &syntax.Lit{Value: "?unknown"}}}}}
	if countBraces(&copied) > maxBraces {
		return unknown, true
	}
	var out []*syntax.Word
	for part, err := range expand.BracesSeq(nil, &copied) {
		if err != nil || len(out) > 256 {
			return unknown, true
		}
		out = append(out, part)
	}
	return out, true
}

// maxBraces is how many braces of one word are expanded. The expansion recurses into each and copies what is left of
// the word: thousands in a row take minutes for their first result.
const maxBraces = 64

// countBraces counts nested ones as well: {a,{b,{c,d}}} recurses like three in a row.
func countBraces(word *syntax.Word) int {
	n := 0
	for _, p := range word.Parts {
		if b, ok := p.(*syntax.BraceExp); ok {
			n++
			for _, e := range b.Elems {
				n += countBraces(e)
			}
		}
	}
	return n
}

// argOf is the argument that a word without braces becomes. many is set where unquoted expansion may split it into several
// words or drop it: then no word after it has a sure place among the arguments.
func (x *expander) argOf(word *syntax.Word, src string, st *state) Word {
	a := Word{Source: src, Static: true}
	a.Values = x.parts(word.Parts, false, st)
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if _, ok := q.(*syntax.Lit); !ok {
					a.Static = false
				}
				if pe, ok := q.(*syntax.ParamExp); ok && pe.Param != nil && (pe.Param.Value == "@" || isAll(pe)) {
					a.many = true
				}
			}
		default:
			a.Static = false
			if _, ok := p.(*syntax.ArithmExp); !ok {
				a.many = a.many || !oneField(a.Values)
			}
		}
	}
	if len(a.Values) > 1 || len(a.Values) == 1 && a.Values[0].Glob {
		a.many = a.many || a.Values[0].Glob
	}
	a.Text = src
	if s, ok := a.One(); ok && a.Static {
		a.Text = s
	} else {
		a.Text = unquoted(word, x)
	}
	if a.Text == "" {
		a.Text = "''"
	}
	return a
}

// isAll reports ${a[@]} and ${a[*]}, which stand for all elements.
func isAll(p *syntax.ParamExp) bool {
	index, ok := p.Index.(*syntax.Word)
	return ok && (index.Lit() == "@" || index.Lit() == "*")
}

// oneField reports whether every value stays one field when the shell splits it.
// An empty value leaves no field at all, so the words after it would move up by one.
func oneField(vals []Value) bool {
	for _, v := range vals {
		if v.Text == "" || strings.ContainsAny(v.Text, " \t\n"+Wild) {
			return false
		}
	}
	return true
}

// unquoted is the source of a word without the quotes around its parts, for rules to match.
// Without this 'rm' and r\m would pass a rule that denies rm.
func unquoted(word *syntax.Word, x *expander) string {
	var b strings.Builder
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, false).Text)
		case *syntax.SglQuoted:
			b.WriteString(x.single(p))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if lit, ok := q.(*syntax.Lit); ok {
					b.WriteString(unescape(lit.Value, true).Text)
					continue
				}
				b.WriteString(x.text.source(q))
			}
		default:
			b.WriteString(x.text.source(p))
		}
	}
	return b.String()
}

// parts is the product of the parts' values: "$a/$b" with two values each has four. Above maxValues it is anything, and above
// MaxCommand bytes too: a=$b$b b=$c$c … doubles the text with each variable.
func (x *expander) parts(parts []syntax.WordPart, quoted bool, st *state) []Value {
	out := []Value{{}}
	for i, p := range parts {
		vals := x.part(p, quoted, st)
		// Bash expands a tilde only at the start of a word and outside of quotes.
		if lit, ok := p.(*syntax.Lit); ok && i == 0 && !quoted && strings.HasPrefix(lit.Value, "~") {
			vals = x.tilde(lit.Value, len(parts) > 1, st)
		}
		// Checked before the product is made, which could be huge.
		if len(out)*len(vals) > maxValues {
			return anything
		}
		next := make([]Value, 0, len(out)*len(vals))
		for _, a := range out {
			for _, b := range vals {
				if len(a.Text)+len(b.Text) > MaxCommand {
					return anything
				}
				next = append(next, Join(a, b))
			}
		}
		out = next
	}
	return out
}

// part is what one part of a word may be. An unquoted value with a blank in it would become several words, which the
// caller has not looked at one by one, so it counts as anything.
func (x *expander) part(p syntax.WordPart, quoted bool, st *state) []Value {
	switch p := p.(type) {
	case *syntax.Lit:
		return []Value{unescape(p.Value, quoted)}
	case *syntax.SglQuoted:
		return []Value{Literal(x.single(p))}
	case *syntax.DblQuoted:
		return x.parts(p.Parts, true, st)
	case *syntax.ParamExp:
		vals := x.param(p, st)
		if !quoted && !oneField(vals) {
			for _, v := range vals {
				if strings.ContainsAny(v.Text, " \t\n") {
					return anything // bash splits it into words that have not been looked at
				}
			}
		}
		if !quoted {
			return globbed(vals)
		}
		return vals
	case *syntax.ArithmExp:
		return []Value{{Text: Hole, Pattern: Hole}}
	case *syntax.CmdSubst:
		return x.substituted(p, st)
	// <(cmd) is a pipe under this name; 63 is the descriptor that bash takes first. cmd itself is walked in insidePart.
	case *syntax.ProcSubst:
		return []Value{Literal("/dev/fd/63")}
	}
	return anything
}

// globbed are values that stand outside of quotes. Bash looks for wildcards in what an expansion gives, however that was quoted
// where it was assigned: x='*.key'; cat $x opens files.
func globbed(vals []Value) []Value {
	var out []Value
	for _, v := range vals {
		switch {
		case v.Glob || !strings.ContainsAny(v.Text, "*?["):
		case strings.ContainsAny(v.Text, `\`):
			return anything // versions of bash differ in what a backslash from an expansion quotes
		default:
			v.Glob, v.Pattern = true, v.Text
		}
		out = append(out, v)
	}
	return out
}

// single decodes a string in single quotes. $'…' has escapes such as \x72; one that cannot be decoded makes the command opaque.
func (x *expander) single(p *syntax.SglQuoted) string {
	if !p.Dollar {
		return p.Value
	}
	s, _, err := expand.Format(nil, p.Value, nil)
	// expand.Format is a printf: it reports an unknown verb by writing %! into the result.
	if err != nil || strings.Contains(p.Value, "%") && strings.Contains(s, "%!") {
		x.opaque("$'…' holds an escape that cannot be decoded")
		return Wild
	}
	if why := visible.Deceptive(s); why != "" {
		x.opaque("$'…' hides a character: " + why)
	}
	return s
}

// unescape takes the backslashes out of a literal and finds its wildcards.
// Text loses the backslashes; Pattern keeps one before each character that a wildcard could be mistaken for. In double
// quotes a backslash escapes only $, `, ", \ and a line end (bash(1), QUOTING).
func unescape(s string, quoted bool) Value {
	if !strings.ContainsAny(s, `\*?[`) {
		return Value{Text: s, Pattern: s}
	}
	var text, pat strings.Builder
	v := Value{}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			next := s[i+1]
			if next == '\n' {
				i++
				continue
			}
			if !quoted || strings.IndexByte("$`\"\\", next) >= 0 {
				text.WriteByte(next)
				pat.WriteString(escapeGlob(string(next)))
				i++
				continue
			}
		}
		text.WriteByte(c)
		if !quoted && (c == '*' || c == '?' || c == '[' && strings.IndexByte(s[i:], ']') > 0) {
			v.Glob = true
			pat.WriteByte(c)
			continue
		}
		pat.WriteString(escapeGlob(s[i : i+1]))
	}
	v.Text, v.Pattern = text.String(), pat.String()
	return v
}

// tilde expands ~, ~/x, ~+, ~- and ~user at the start of a word. more: other parts follow the literal.
// A name without a user stays as it is, as in bash.
func (x *expander) tilde(lit string, more bool, st *state) []Value {
	name, rest, slash := strings.Cut(lit[1:], "/")
	if slash {
		rest = "/" + rest
	} else if more {
		return anything // ~"x" and ~$x: not what it looks like
	}
	var homes []string
	switch name {
	case "":
		for _, v := range x.variable("HOME", st) {
			if v.Exact() {
				homes = append(homes, v.Text)
			}
		}
	case "+":
		homes = st.dirs
	case "-":
		homes = st.prev
	default:
		if strings.ContainsAny(name, `\*?[`) {
			return []Value{unescape(lit, false)}
		}
		u, err := user.Lookup(name)
		if err != nil {
			return []Value{unescape(lit, false)}
		}
		homes = []string{u.HomeDir}
	}
	if len(homes) == 0 || st.unknown && (name == "+" || name == "-") {
		return anything
	}
	var out []Value
	for _, h := range homes {
		out = append(out, Join(Literal(h), unescape(rest, false)))
	}
	return out
}

// Cut is the argument's value after a separator. Values without the separator are dropped, so the result may have none.
func (a Word) Cut(sep string) Word {
	out := a
	out.Values = nil
	for _, v := range a.Values {
		if _, s, ok := strings.Cut(v.Text, sep); ok {
			_, p, _ := strings.Cut(v.Pattern, sep)
			out.Values = append(out.Values, Value{Text: s, Pattern: p, Glob: v.Glob})
		}
	}
	_, out.Text, _ = strings.Cut(a.Text, sep)
	return out
}

// Before is the argument before a separator, or all of it where there is none.
func (a Word) Before(sep string) Word {
	out := a
	out.Values = nil
	for _, v := range a.Values {
		s, _, _ := strings.Cut(v.Text, sep)
		out.Values = append(out.Values, Literal(s))
	}
	out.Text, _, _ = strings.Cut(a.Text, sep)
	return out
}

// From is the argument without its first n bytes.
// It serves values that are glued to an option: -ofile, -o=file.
func (a Word) From(n int) Word {
	out := a
	out.Values = nil
	for _, v := range a.Values {
		if len(v.Text) >= n {
			out.Values = append(out.Values, Literal(strings.TrimPrefix(v.Text[n:], "=")))
		}
	}
	out.Text = a.Text[min(n, len(a.Text)):]
	return out
}
