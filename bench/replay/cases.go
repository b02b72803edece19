// Package replay makes edits out of real histories and scores who writes the right text. A hunk between two versions
// of a public file becomes an edit with a quotation; the quotation or the file is then damaged the way models and
// people damage them, so that the one right answer stays known:
//
//	for _, c := range replay.Cases(rand.New(rand.NewPCG(1, 2)), "a.go", before, after) {
//		verdict := replay.Ours.Judge(c) // right, refused or wrong
//	}
package replay

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/diff"
)

// Case is one edit and its one right answer.
type Case struct {
	Kind     string                // how the quotation, or the file since it was read, is damaged; see Kinds
	File     string                // the file's name, for its language
	Text     string                // the file
	Old, New string                // the edit
	Want     string                // the file afterwards
	Also     []string              // other right answers, where there are several
	Fits     func(got string) bool `json:"-"` // whether a text is right too; nil for none but Want and Also
	All      bool                  // replaceAll
	Symbol   int                   // of Symbols: the declaration that New replaces, by its number in the outline
	Whole    string                // all damages of a story
	Steps    []Step                // of Chains: several edits instead of Old and New
}

// Kinds in the order of the report.
var Kinds = []string{"exact", "trailing blanks", "dedented", "spaces for tabs", "tabs for spaces", "new at the file's depth", "first line unindented",
	"line added since", "line changed since", "line removed since", "context misquoted", "changed line misquoted", "changed line changed since", "middle elided", "typographic file",
	"typographic quotation", "escaped", "blank line lost", "newline at the end"}

// hunk is one change with the lines around it; all without line endings.
type hunk struct {
	before, after []string // context
	gone, come    []string
	at            int // line of the first context line, from 0
}

func (h hunk) old() []string { return slices.Concat(h.before, h.gone, h.after) }
func (h hunk) new() []string { return slices.Concat(h.before, h.come, h.after) }

// Cases are the damaged edits of every hunk that leads from one version to the next.
func Cases(r *rand.Rand, name, before, after string) []Case {
	if strings.Contains(before, "\r") || strings.Contains(after, "\r") || !strings.HasSuffix(before, "\n") {
		return nil
	}
	a, b := lines(before), lines(after)
	var out []Case
	for _, e := range diff.Strings(a, b) {
		if e.A1-e.A0 > 12 || e.B1-e.B0 > 12 {
			continue
		}
		n := 1 + r.IntN(4)
		from, to := max(0, e.A0-n), min(len(a), e.A1+n)
		h := hunk{before: a[from:e.A0], gone: a[e.A0:e.A1], come: b[e.B0:e.B1], after: a[e.A1:to], at: from}
		if strings.Count("\n"+before, "\n"+strings.Join(h.old(), "\n")+"\n") != 1 || blank(strings.Join(h.old(), "")) || strings.Count(before, strings.Join(h.old(), "\n")) != 1 {
			continue
		}
		for _, kind := range Kinds {
			if c, ok := damage(r, kind, a, h); ok && c.Old != c.New && c.Want != c.Text && !c.elsewhere() {
				c.Kind, c.File = kind, name
				out = append(out, c)
			}
		}
	}
	return out
}

// mostBytes is the largest file that edits are made of: larger ones are generated, and would crowd out the others.
const mostBytes = 60 << 10

// Between are the cases of the text files that two folders have in common, two versions of a project.
func Between(r *rand.Rand, before, after string) (cases []Case, err error) {
	err = filepath.WalkDir(before, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(d.Name(), ".min.") {
			return err
		}
		rel, err := filepath.Rel(before, path)
		if err != nil {
			return err
		}
		new, err := os.ReadFile(filepath.Join(after, rel))
		if err != nil {
			return nil // the later version does not have this file
		}
		old, err := os.ReadFile(path)
		if err == nil && len(old) < mostBytes && utf8.Valid(old) && bytes.IndexByte(old, 0) < 0 {
			cases = append(cases, Cases(r, filepath.ToSlash(rel), string(old), string(new))...)
		}
		return err
	})
	return cases, err
}

// elsewhere says that the damaged quotation, or its lines apart from white space around them, occur exactly once in another place: then that
// is the right one.
func (c Case) elsewhere() bool {
	have, want, old := trimmed(c.Text), trimmed(c.Want), trimmed(strings.TrimSuffix(c.Old, "\n"))
	if strings.Count("\n"+have+"\n", "\n"+old+"\n") == 1 && !strings.Contains("\n"+want+"\n", "\n"+trimmed(strings.TrimSuffix(c.New, "\n"))+"\n") {
		return true
	}
	// A quotation that ends in an empty line, in a patch, is that line.
	if lines := "\n" + trimmed(c.Old) + "\n"; strings.HasSuffix(c.Old, "\n") && strings.Count("\n"+have+"\n", lines) == 1 && !strings.HasSuffix(c.New, "\n") {
		wanted := strings.Replace("\n"+have+"\n", lines, "\n"+trimmed(c.New)+"\n", 1)
		if wanted != "\n"+want+"\n" {
			return true
		}
	}
	text, want := strings.ReplaceAll(c.Text, "\r\n", "\n"), strings.ReplaceAll(c.Want, "\r\n", "\n")
	return strings.Count(text, c.Old) == 1 && strings.Replace(text, c.Old, c.New, 1) != want
}

// trimmed is a text without the white space around its lines.
func trimmed(s string) string {
	return strings.Join(each(strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), strings.TrimSpace), "\n")
}

// plain is the edit without damage.
func plain(a []string, h hunk) Case {
	n := len(h.old())
	return Case{Text: join(a), Old: strings.Join(h.old(), "\n"), New: strings.Join(h.new(), "\n"),
		Want: join(slices.Concat(a[:h.at], h.new(), a[h.at+n:]))}
}

func damage(r *rand.Rand, kind string, a []string, h hunk) (Case, bool) {
	c := plain(a, h)
	old, new := h.old(), h.new()
	same := func(f func(string) string) (Case, bool) {
		c.Old, c.New = strings.Join(each(old, f), "\n"), strings.Join(each(new, f), "\n")
		return c, c.Old != strings.Join(old, "\n")
	}
	// file replaces the file's lines of the quotation, keeping the hunk's place in them.
	file := func(before, gone, after, come []string) {
		end := h.at + len(old)
		c.Text = join(slices.Concat(a[:h.at], before, gone, after, a[end:]))
		c.Want = join(slices.Concat(a[:h.at], before, come, after, a[end:]))
	}
	switch kind {
	case "exact":
		return c, true
	case "newline at the end":
		c.Old += "\n"
		c.New += "\n"
		if len(h.after) < 2 {
			return c, true
		}
		file(h.before, h.gone, slices.Concat(h.after[:1], []string{foreign(r, a, h)}, h.after[1:]), h.come)
		return c, h.after[0] != "" || h.after[1] != ""
	case "trailing blanks":
		// A new line that ends in blanks of its own is the same text as one with blanks put behind it: there is no one right answer.
		if slices.ContainsFunc(h.come, func(s string) bool { return s != strings.TrimRight(s, " \t") }) {
			return c, false
		}
		return same(func(s string) string {
			if r.IntN(3) == 0 {
				return s + "  "
			}
			return s
		})
	case "dedented", "new at the file's depth", "first line unindented":
		cut := margin(old)
		if m := margin(new); len(m) < len(cut) {
			cut = m
		}
		if kind == "first line unindented" {
			c.Old = strings.TrimLeft(c.Old, " \t")
			c.New = strings.TrimLeft(c.New, " \t")
			ok := len(h.before) > 0 && indentOf(old[0]) != "" && old[0] != "" && strings.Count(c.Text, c.Old) != 1
			return c, ok
		}
		if cut == "" {
			return c, false
		}
		// A history that changes how the file is indented has new lines in another unit, and the quotation may be in that unit, not dedented.
		if unit := unitOf(a); slices.ContainsFunc(h.come, func(s string) bool { return unit > 0 && !blank(s) && len(indentOf(s))%unit != 0 }) {
			return c, false
		}
		dedent := func(s string) string { return strings.TrimPrefix(s, cut) }
		c.Old = strings.Join(each(old, dedent), "\n")
		if kind == "dedented" {
			c.New = strings.Join(each(new, dedent), "\n")
			if margin(each(new, dedent)) == margin(old) { // as if the new text were written at the file's depth; see there
				c.Also = []string{join(slices.Concat(a[:h.at], each(new, dedent), a[h.at+len(old):]))}
			}
		} else if margin(new) == margin(each(old, dedent)) || first(new) == first(each(old, dedent)) || slices.ContainsFunc(each(old, dedent), func(s string) bool { return strings.ContainsFunc(s, unicode.IsLetter) && slices.Contains(new, s) }) {
			// The new lines are as deep as the quotation too, or begin so: they may be meant to move with it.
			c.Also = []string{join(slices.Concat(a[:h.at], each(new, func(s string) string { return cut + s }), a[h.at+len(old):]))}
		}
		return c, strings.Count(c.Text, c.Old) != 1
	case "spaces for tabs":
		if !strings.Contains(indents(old)+indents(new), "\t") || strings.Contains(indents(old)+indents(new), " ") {
			return c, false
		}
		return same(func(s string) string {
			in := indentOf(s)
			return strings.Repeat("    ", len(in)) + s[len(in):]
		})
	case "tabs for spaces":
		all := indents(old) + indents(new)
		unit := unitOf(a)
		if unit == 0 || strings.Contains(all, "\t") || all == "" {
			return c, false
		}
		for _, l := range append(slices.Clone(old), new...) {
			if len(indentOf(l))%unit != 0 {
				return c, false
			}
		}
		return same(func(s string) string {
			in := indentOf(s)
			return strings.Repeat("\t", len(in)/unit) + s[len(in):]
		})
	case "line added since":
		before, after := slices.Clone(h.before), slices.Clone(h.after)
		switch {
		case len(before) > 1:
			before = slices.Insert(before, 1+r.IntN(len(before)-1), foreign(r, a, h))
		case len(after) > 1:
			after = slices.Insert(after, 1+r.IntN(len(after)-1), foreign(r, a, h))
		default:
			return c, false
		}
		file(before, h.gone, after, h.come)
		return c, true
	case "line changed since", "line removed since":
		before, after := slices.Clone(h.before), slices.Clone(h.after)
		side := &after
		if len(before) > 0 && (len(after) == 0 || r.IntN(2) == 0) {
			side = &before
		}
		if len(*side) == 0 {
			return c, false
		}
		k := r.IntN(len(*side))
		if blank((*side)[k]) {
			return c, false
		}
		if kind == "line removed since" {
			*side = slices.Delete(*side, k, k+1)
		} else {
			(*side)[k] = reword(r, (*side)[k])
		}
		file(before, h.gone, after, h.come)
		return c, c.Text != join(a)
	case "context misquoted":
		if len(h.before)+len(h.after) == 0 {
			return c, false
		}
		k := r.IntN(len(h.before) + len(h.after))
		if k < len(h.before) {
			before := slices.Clone(h.before)
			before[k] = reword(r, before[k])
			h.before = before
		} else {
			after := slices.Clone(h.after)
			after[k-len(h.before)] = reword(r, after[k-len(h.before)])
			h.after = after
		}
		c.Old, c.New = strings.Join(h.old(), "\n"), strings.Join(h.new(), "\n")
		return c, strings.Join(old, "\n") != c.Old
	case "changed line misquoted":
		if len(h.gone) == 0 || len(h.come) == 0 {
			return c, false
		}
		gone := slices.Clone(h.gone)
		k := r.IntN(len(gone))
		gone[k] = reword(r, gone[k])
		h.gone = gone
		c.Old = strings.Join(h.old(), "\n")
		return c, strings.Join(old, "\n") != c.Old
	case "changed line changed since":
		if len(h.gone) != 1 || len(h.come) != 1 {
			return c, false
		}
		// Something behind the change is added to the line, and must be there afterwards.
		if !strings.HasSuffix(h.gone[0], ")") || !strings.HasSuffix(h.come[0], ")") {
			return c, false
		}
		file(h.before, []string{h.gone[0] + " // kept"}, h.after, []string{h.come[0] + " // kept"})
		return c, true
	case "middle elided":
		side := h.before
		if len(h.after) > len(side) {
			side = h.after
		}
		if len(side) < 3 || blank(side[1]) {
			return c, false
		}
		short := slices.Clone(side)
		short[1] = indentOf(side[1]) + "// ..."
		if len(h.after) > len(h.before) {
			h.after = short
		} else {
			h.before = short
		}
		c.Old, c.New = strings.Join(h.old(), "\n"), strings.Join(h.new(), "\n")
		return c, true
	case "typographic file", "typographic quotation":
		if strings.ContainsAny(strings.Join(h.gone, "")+strings.Join(h.come, ""), "\"'-") || !strings.ContainsAny(c.Old, "\"'-") {
			return c, false
		}
		curl := strings.NewReplacer(`"`, "”", "'", "’", "-", "–")
		if kind == "typographic quotation" {
			c.Old, c.New = curl.Replace(c.Old), curl.Replace(c.New)
		} else {
			file(each(h.before, curl.Replace), h.gone, each(h.after, curl.Replace), h.come)
		}
		return c, true
	case "escaped":
		if !strings.Contains(c.Old, `"`) || strings.ContainsAny(c.Old+c.New, "\\") {
			return c, false
		}
		esc := strings.NewReplacer(`"`, `\"`)
		c.Old, c.New = esc.Replace(c.Old), esc.Replace(c.New)
		return c, true
	case "blank line lost":
		lose := func(list []string) []string {
			for i := 1; i < len(list)-1; i++ {
				if blank(list[i]) {
					return slices.Delete(slices.Clone(list), i, i+1)
				}
			}
			return list
		}
		h.before, h.after = lose(h.before), lose(h.after)
		c.Old, c.New = strings.Join(h.old(), "\n"), strings.Join(h.new(), "\n")
		return c, c.Old != strings.Join(old, "\n")
	}
	panic("unknown kind " + kind)
}

// foreign is a line of the file that the quotation does not have, as deep as its second line.
func foreign(r *rand.Rand, a []string, h hunk) string {
	in := indentOf(h.old()[min(1, len(h.old())-1)])
	for range 100 {
		l := strings.TrimSpace(a[r.IntN(len(a))])
		if len(l) > 8 && strings.HasSuffix(l, ")") && !slices.ContainsFunc(slices.Concat(h.old(), h.new()), func(s string) bool { return strings.TrimSpace(s) == l }) {
			return in + l
		}
	}
	return in + fmt.Sprintf("audit(%d)", r.IntN(1000))
}

// reword changes one word of a line: another name, a word left out, a word put in.
func reword(r *rand.Rand, line string) string {
	in := indentOf(line)
	words := strings.FieldsFunc(line, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' })
	if len(words) == 0 {
		return line
	}
	w := words[r.IntN(len(words))]
	if len(w) < 3 {
		return line
	}
	_, size := utf8.DecodeLastRuneInString(w)
	with := []string{w + "2", w[:len(w)-size], "the_" + w, w + ".Get", "ctx, " + w}[r.IntN(5)]
	return in + strings.Replace(line[len(in):], w, with, 1)
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

func join(l []string) string { return strings.Join(l, "\n") + "\n" }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func indentOf(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }

func each(l []string, f func(string) string) []string {
	out := make([]string, len(l))
	for i, s := range l {
		if out[i] = s; !blank(s) {
			out[i] = f(s)
		}
	}
	return out
}

// indents is the indentation of all lines that are not blank.
func indents(l []string) string {
	var b strings.Builder
	for _, s := range l {
		if !blank(s) {
			b.WriteString(indentOf(s))
		}
	}
	return b.String()
}

// first is the indentation of the first line that is not blank.
func first(l []string) string {
	if i := slices.IndexFunc(l, func(s string) bool { return !blank(s) }); i >= 0 {
		return indentOf(l[i])
	}
	return ""
}

// margin is the indentation that all lines which are not blank have in common.
func margin(l []string) string {
	m, first := "", true
	for _, s := range l {
		if blank(s) {
			continue
		}
		in := indentOf(s)
		if first {
			m, first = in, false
		}
		for !strings.HasPrefix(in, m) {
			m = m[:len(m)-1]
		}
	}
	return m
}

// unitOf is how many spaces a file indents by, 0 when it uses tabs or nothing says.
func unitOf(a []string) int {
	unit := 0
	for _, s := range a {
		in := indentOf(s)
		if strings.Contains(in, "\t") {
			return 0
		}
		if n := len(in); n > 0 && (unit == 0 || n < unit) && !blank(s) && !strings.HasPrefix(s[n:], "*") {
			unit = n
		}
	}
	if unit != 2 && unit != 4 {
		return 0
	}
	return unit
}
