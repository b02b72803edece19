package scan

import (
	"os/user"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// Hole and Wild stand for unknown parts of a value. They are control characters, and a command that contains one of those
// itself is opaque (visible.Deceptive), so text from a model cannot imitate them.
const (
	Hole = "\x01" // text without a slash that is not "." or "..": a number, a date
	Wild = "\x02" // any text
)

// maxValues is how many values a word may have before it counts as unknown. The number is the product over the word's
// parts, so a few loop variables in one word would give thousands.
const maxValues = 32

// Value is one text that a word may expand to. If Glob is set, the text has wildcards: Pattern is the text with its literal
// characters escaped, and bash replaces it by the matching names, or leaves Text as it is when there are none.
type Value struct {
	Text, Pattern string
	Glob          bool
	// printed is, if hasPrinted is set, what bash's echo or printf prints for a value whose Text is unknown: $(printf '\x72m').
	// Only rules that deny use it. Text stays unknown because another shell may print something else.
	printed    string
	hasPrinted bool
}

// Literal is the value of a text without wildcards.
func Literal(s string) Value { return Value{Text: s, Pattern: escapeGlob(s)} }

// Known reports whether the value has no Wild part. It may still have wildcards and Holes.
func (v Value) Known() bool { return !strings.Contains(v.Text, Wild) }

// Exact reports whether Text is exactly what the program gets.
func (v Value) Exact() bool { return !v.Glob && !strings.ContainsAny(v.Text, Hole+Wild) }

// escapeGlob is a pattern that matches s only.
func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[\`) {
		return s
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(s)
}

// Join concatenates two values.
func Join(a, b Value) Value {
	out := Value{Text: a.Text + b.Text, Pattern: a.Pattern + b.Pattern, Glob: a.Glob || b.Glob}
	if a.hasPrinted || b.hasPrinted {
		x, ok := a.spelled()
		y, too := b.spelled()
		out.printed, out.hasPrinted = x+y, ok && too
	}
	return out
}

// spelled is the most likely text of the value: printed if there is one, else Text. It reports false when that is not known.
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
	Static bool   // without expansions
	many   bool   // may become several arguments or none, so the positions of all later arguments are uncertain
	Hidden bool   // added by xargs and the like: not part of any text that rules see
}

// One is the word's only value. ok is false when it has several, or one that is not exact.
func (a Word) One() (string, bool) {
	if len(a.Values) == 1 && a.Values[0].Exact() && !a.many {
		return a.Values[0].Text, true
	}
	return "", false
}

// Known reports whether every value of the word is known.
func (a Word) Known() bool {
	for _, v := range a.Values {
		if !v.Known() {
			return false
		}
	}
	return true
}

// Plain is the word for the text s, as if typed without quotes or expansions.
func Plain(s string) Word {
	return Word{Values: []Value{Literal(s)}, Text: s, Source: s, Static: true}
}

// Unknown is a word that stands for any number of unknown arguments. It is not part of the text that rules see.
func Unknown() Word { return Word{Values: anything, many: true, Hidden: true} }

// anything is the result for an unknown word. It is shared, so it must not be modified.
var anything = []Value{{Text: Wild, Pattern: Wild}}

// expander computes what words may expand to, from the request, the script and the state. It never changes the state; only the
// walker does.
type expander struct {
	*accesses
	req      Request
	programs Programs
	text     scriptText
	funcs    map[string][]*function // all declarations so far, whether they run or not
	visiting map[string]bool        // variables whose values are being looked up; stops x=$y y=$x from recursing forever
	steps    int                    // statements, words and variables looked at so far; see maxSteps
	inArith  bool                   // values are looked up for arithmetic, where an unset name counts as 0
}

// step counts one step of the analysis. When a limit is reached it makes the command opaque and reports false, and the caller
// must stop.
func (x *expander) step() bool {
	x.steps++
	if x.steps > maxSteps || x.paths.late() {
		x.opaque("it is too long to be looked at in full")
		return false
	}
	return true
}

// args expands a word into its arguments: one, or several if it has braces. A word with more than 256 expansions, such as
// {1..9}{1..9}{1..9}, is unknown.
func (x *expander) args(word *syntax.Word, st *state) []Word {
	if len(word.Parts) == 0 { // x=
		return []Word{{Values: []Value{{}}, Static: true}}
	}
	src := x.text.source(word)
	// A fast path for plain words, which are the most.
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

// braces expands {a,b} and {1..9}. It reports false when the word has no braces.
func braces(word *syntax.Word) ([]*syntax.Word, bool) {
	copied := *word
	copied.Parts = append([]syntax.WordPart(nil), word.Parts...)
	if !syntax.SplitBraces(&copied) {
		return nil, false
	}
	// "?unknown" is not a valid name of a variable, so param returns anything for it.
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

// maxBraces is how many brace expressions of one word are expanded. The expansion recurses for each of them and copies the rest
// of the word, so thousands in a row take minutes.
const maxBraces = 64

// countBraces counts the brace expressions of a word, nested ones included: {a,{b,{c,d}}} has three.
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

// argOf expands a word without braces. It sets Word.many when an unquoted expansion may split the word into several arguments
// or drop it. src is the word as typed.
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

// isAll reports whether p stands for all elements of an array: ${a[@]} or ${a[*]}.
func isAll(p *syntax.ParamExp) bool {
	index, ok := p.Index.(*syntax.Word)
	return ok && (index.Lit() == "@" || index.Lit() == "*")
}

// oneField reports whether word splitting leaves every value one field. An empty value becomes no field at all, and the
// arguments after it move up by one.
func oneField(vals []Value) bool {
	for _, v := range vals {
		if v.Text == "" || strings.ContainsAny(v.Text, " \t\n"+Wild) {
			return false
		}
	}
	return true
}

// unquoted is the source of a word without quotes and backslashes, for rules to match. Otherwise 'rm' and r\m would pass a
// rule that denies rm.
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

// parts lists the values of a word, every combination of the values of its parts: "$a/$b" with two values each has four. With
// more than maxValues combinations, or a text longer than MaxCommand bytes (a=$b$b b=$c$c … doubles it with each variable), the
// result is anything. quoted is true within double quotes.
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

// part lists the values of one part of a word. An unquoted value with a blank would become several words, which the caller
// does not handle, so the result is then anything.
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
					return anything // bash would split it into several words
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
	// Bash replaces <(cmd) by such a path; 63 is the descriptor that it uses first. insidePart walks cmd.
	case *syntax.ProcSubst:
		return []Value{Literal("/dev/fd/63")}
	}
	return anything
}

// globbed marks the wildcards in the values of an unquoted expansion. Quotes in the assignment do not matter to bash:
// x='*.key'; cat $x opens the matching files.
func globbed(vals []Value) []Value {
	var out []Value
	for _, v := range vals {
		switch {
		case v.Glob || !strings.ContainsAny(v.Text, "*?["):
		case strings.ContainsAny(v.Text, `\`):
			return anything // versions of bash differ in how they treat a backslash that comes from an expansion
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
	// expand.Format works like printf: for an unknown verb it writes %! into the result.
	if err != nil || strings.Contains(p.Value, "%") && strings.Contains(s, "%!") {
		x.opaque("$'…' holds an escape that cannot be decoded")
		return Wild
	}
	if why := visible.Deceptive(s); why != "" {
		x.opaque("$'…' hides a character: " + why)
	}
	return s
}

// unescape is the Value of a literal as typed: Text without the backslashes, Pattern with one before each character that would
// otherwise be a wildcard. In double quotes (quoted) a backslash escapes only $, `, ", \ and a newline (bash(1), QUOTING).
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

// tilde expands ~, ~/x, ~+, ~- and ~user at the start of a word. more is true when other parts follow the literal. As in bash,
// ~name stays as it is when there is no such user.
func (x *expander) tilde(lit string, more bool, st *state) []Value {
	name, rest, slash := strings.Cut(lit[1:], "/")
	if slash {
		rest = "/" + rest
	} else if more {
		return anything // ~"x" and ~$x, where bash does not expand the tilde
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

// Cut is the part of the word after the first sep. Values without sep are dropped, so the result may have no values.
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

// Before is the part of the word before the first sep, or all of it if there is none.
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

// From is the word without its first n bytes and a "=" after them. It is for a value that follows its option directly: -ofile,
// -o=file.
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
