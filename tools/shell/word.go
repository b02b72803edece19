package shell

import (
	"os/user"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// Unknown parts of a value are marked by control characters, which a command itself may not contain.
const (
	hole = "\x01" // something without a slash and not "." or "..": a number, a date
	wild = "\x02" // anything
)

// maxValues is how many values a word may have before it counts as unknown.
const maxValues = 32

// value is one text a word may expand to. With glob, pat is the same text as a pattern whose quoted characters are
// escaped; the shell replaces it by the names it finds.
type value struct {
	s, pat string
	glob   bool
}

func literal(s string) value { return value{s: s, pat: escapeGlob(s)} }

func (v value) known() bool { return !strings.Contains(v.s, wild) }
func (v value) exact() bool { return !v.glob && !strings.ContainsAny(v.s, hole+wild) }

func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[\`) {
		return s
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(s)
}

func join(a, b value) value {
	return value{s: a.s + b.s, pat: a.pat + b.pat, glob: a.glob || b.glob}
}

// arg is one argument of a call: what it may be, and how it was written.
type arg struct {
	vals   []value
	text   string // as rules see it
	src    string // as typed
	static bool   // written out, no expansion in it
	many   bool   // may be several arguments or none
	hidden bool   // added by xargs, so not part of any text
}

// one is the argument's only value, if it has one and it is exact.
func (a arg) one() (string, bool) {
	if len(a.vals) == 1 && a.vals[0].exact() && !a.many {
		return a.vals[0].s, true
	}
	return "", false
}

func (a arg) known() bool {
	for _, v := range a.vals {
		if !v.known() {
			return false
		}
	}
	return true
}

func plainArg(s string) arg {
	return arg{vals: []value{literal(s)}, text: s, src: s, static: true}
}

var anything = []value{{s: wild, pat: wild}}

// args expands a word into its arguments: one, or several where it has braces.
func (w *walker) args(word *syntax.Word, st *state) []arg {
	if len(word.Parts) == 0 { // x=
		return []arg{{vals: []value{{}}, static: true}}
	}
	src := w.source(word)
	if lit := word.Lit(); lit != "" && !strings.ContainsAny(lit, "\\*?[{~") {
		return []arg{plainArg(lit)}
	}
	if strings.Contains(src, "{") {
		if split, ok := braces(word); ok {
			var out []arg
			for _, part := range split {
				a := w.argOf(part, src, st)
				a.static = false
				a.text = src
				if s, ok := a.one(); ok {
					a.text = s
				}
				out = append(out, a)
				if len(out) > 256 {
					return []arg{{vals: anything, text: src, src: src, many: true}}
				}
			}
			return out
		}
	}
	return []arg{w.argOf(word, src, st)}
}

// braces splits {a,b} and {1..9}; ok is false when the word has none.
func braces(word *syntax.Word) ([]*syntax.Word, bool) {
	copied := *word
	copied.Parts = append([]syntax.WordPart(nil), word.Parts...)
	if !syntax.SplitBraces(&copied) {
		return nil, false
	}
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

func (w *walker) argOf(word *syntax.Word, src string, st *state) arg {
	a := arg{src: src, static: true}
	a.vals = w.parts(word.Parts, false, st)
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if _, ok := q.(*syntax.Lit); !ok {
					a.static = false
				}
				if pe, ok := q.(*syntax.ParamExp); ok && pe.Param != nil && (pe.Param.Value == "@" || isAll(pe)) {
					a.many = true
				}
			}
		default:
			a.static = false
			if _, ok := p.(*syntax.ArithmExp); !ok {
				a.many = a.many || !oneField(a.vals)
			}
		}
	}
	if len(a.vals) > 1 || len(a.vals) == 1 && a.vals[0].glob {
		a.many = a.many || a.vals[0].glob
	}
	a.text = src
	if s, ok := a.one(); ok && a.static {
		a.text = s
	} else {
		a.text = unquoted(word, w)
	}
	if a.text == "" {
		a.text = "''"
	}
	return a
}

func isAll(p *syntax.ParamExp) bool {
	index, ok := p.Index.(*syntax.Word)
	return ok && (index.Lit() == "@" || index.Lit() == "*")
}

// oneField reports whether every value stays one field when the shell splits it.
func oneField(vals []value) bool {
	for _, v := range vals {
		if v.s == "" || strings.ContainsAny(v.s, " \t\n"+wild) {
			return false
		}
	}
	return true
}

// unquoted is the source of a word without the quotes around its parts, for rules to match.
func unquoted(word *syntax.Word, w *walker) string {
	var b strings.Builder
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, false).s)
		case *syntax.SglQuoted:
			b.WriteString(w.single(p))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if lit, ok := q.(*syntax.Lit); ok {
					b.WriteString(unescape(lit.Value, true).s)
					continue
				}
				b.WriteString(w.source(q))
			}
		default:
			b.WriteString(w.source(p))
		}
	}
	return b.String()
}

func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.src) || from > to {
		return ""
	}
	return w.src[from:to]
}

// parts is the product of the parts' values.
func (w *walker) parts(parts []syntax.WordPart, quoted bool, st *state) []value {
	out := []value{{}}
	for i, p := range parts {
		vals := w.part(p, quoted, st)
		if lit, ok := p.(*syntax.Lit); ok && i == 0 && !quoted && strings.HasPrefix(lit.Value, "~") {
			vals = w.tilde(lit.Value, len(parts) > 1, st)
		}
		if len(out)*len(vals) > maxValues {
			return anything
		}
		next := make([]value, 0, len(out)*len(vals))
		for _, a := range out {
			for _, b := range vals {
				next = append(next, join(a, b))
			}
		}
		out = next
	}
	return out
}

func (w *walker) part(p syntax.WordPart, quoted bool, st *state) []value {
	switch p := p.(type) {
	case *syntax.Lit:
		return []value{unescape(p.Value, quoted)}
	case *syntax.SglQuoted:
		return []value{literal(w.single(p))}
	case *syntax.DblQuoted:
		return w.parts(p.Parts, true, st)
	case *syntax.ParamExp:
		vals := w.param(p, st)
		if !quoted && !oneField(vals) {
			for _, v := range vals {
				if strings.ContainsAny(v.s, " \t\n") {
					return anything // split into words nobody looked at
				}
			}
		}
		return vals
	case *syntax.ArithmExp:
		return []value{{s: hole, pat: hole}}
	case *syntax.CmdSubst:
		return w.substituted(p, st)
	case *syntax.ProcSubst:
		return []value{literal("/dev/fd/63")}
	}
	return anything
}

// single decodes a quoted string; $'…' has escapes.
func (w *walker) single(p *syntax.SglQuoted) string {
	if !p.Dollar {
		return p.Value
	}
	s, _, err := expand.Format(nil, p.Value, nil)
	if err != nil || strings.Contains(p.Value, "%") && strings.Contains(s, "%!") {
		w.opaque("$'…' holds an escape that cannot be decoded")
		return wild
	}
	if why := visible.Deceptive(s); why != "" {
		w.opaque("$'…' hides a character: " + why)
	}
	return s
}

// unescape takes the backslashes out of a literal and finds its wildcards.
func unescape(s string, quoted bool) value {
	if !strings.ContainsAny(s, `\*?[`) {
		return value{s: s, pat: s}
	}
	var text, pat strings.Builder
	v := value{}
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
			v.glob = true
			pat.WriteByte(c)
			continue
		}
		pat.WriteString(escapeGlob(s[i : i+1]))
	}
	v.s, v.pat = text.String(), pat.String()
	return v
}

// tilde expands ~, ~/x, ~+, ~- and ~user at the start of a word. more: other parts follow the literal.
func (w *walker) tilde(lit string, more bool, st *state) []value {
	name, rest, slash := strings.Cut(lit[1:], "/")
	if slash {
		rest = "/" + rest
	} else if more {
		return anything // ~"x" and ~$x: not what it looks like
	}
	var homes []string
	switch name {
	case "":
		for _, v := range w.variable("HOME", st) {
			if v.exact() {
				homes = append(homes, v.s)
			}
		}
	case "+":
		homes = st.dirs
	case "-":
		homes = st.prev
	default:
		if strings.ContainsAny(name, `\*?[`) {
			return []value{unescape(lit, false)}
		}
		u, err := user.Lookup(name)
		if err != nil {
			return []value{unescape(lit, false)}
		}
		homes = []string{u.HomeDir}
	}
	if len(homes) == 0 || st.unknown && (name == "+" || name == "-") {
		return anything
	}
	var out []value
	for _, h := range homes {
		out = append(out, join(literal(h), unescape(rest, false)))
	}
	return out
}
