package replace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/replace/recorded"
)

// A second record, of texts of several kinds and of damages that the first one does not have, through every function that others call. Write
// it anew with: go test ./tools/replace -run Recorded -update. The test prints the first case that changed.
// document is a text of one kind: C-like, Python, YAML, prose, HTML, or lines whose indentation is mixed. Words repeat, so that blocks look alike.
func document(r *rand.Rand) []string {
	word := func() string {
		return []string{"load", "store", "user", "items", "count", "cache", "error", "index", "total", "path", "it’s", "“quoted”", "a–b", "naïve", "end\\", "e.g…"}[r.IntN(16)]
	}
	var out []string
	unit := []string{"    ", "\t", "  "}[r.IntN(3)]
	put := func(depth int, s string) { out = append(out, strings.Repeat(unit, depth)+s) }
	depth := 0
	kind := r.IntN(6)
	for range 5 + r.IntN(24) {
		switch kind {
		case 0:
			switch k := r.IntN(6); {
			case k == 0:
				put(depth, fmt.Sprintf("func %s(%s int) error {", word(), word()))
				depth++
			case k == 1 && depth > 0:
				depth--
				put(depth, []string{"}", "})", "},", "} else {"}[r.IntN(4)])
			case k == 2:
				put(depth, fmt.Sprintf("log(\"%s: \\\"%s\\\"\\n\", `\\d+`, %s)", word(), word(), word()))
			default:
				put(depth, fmt.Sprintf("%s.%s(%s, %s) // %s the %s", word(), word(), word(), word(), word(), word()))
			}
		case 1:
			switch k := r.IntN(5); {
			case k == 0:
				put(depth, fmt.Sprintf("def %s(self, %s):", word(), word()))
				depth++
			case k == 1:
				put(depth, fmt.Sprintf("if %s > %s and %s:", word(), word(), word()))
				depth++
			case k == 2 && depth > 0:
				depth -= 1 + r.IntN(depth)
				out = append(out, "")
			default:
				put(depth, fmt.Sprintf("%s = %s['%s'] + %d", word(), word(), word(), r.IntN(9)))
			}
		case 2:
			if k := r.IntN(4); k == 0 {
				put(depth, word()+":")
				depth++
			} else {
				put(depth, fmt.Sprintf("%s%s: %s", []string{"- ", "", ""}[r.IntN(3)], word(), word()))
				depth = r.IntN(depth + 1)
			}
		case 3:
			line := fmt.Sprintf("The %s of the %s is %s, and the %s is %s.", word(), word(), word(), word(), word())
			out = append(out, []string{line, line + "  ", "", "- " + line, line + " "}[r.IntN(5)])
		case 4:
			switch k := r.IntN(4); {
			case k == 0:
				put(depth, "<div class=\""+word()+"\">")
				depth++
			case k == 1 && depth > 0:
				depth--
				put(depth, "</div>")
			default:
				put(depth, fmt.Sprintf("<p>%s &amp; %s &lt; %s</p>", word(), word(), word()))
			}
		default:
			in := []string{"", "\t", "  ", "\t  ", "    ", " \t", "\u00a0"}[r.IntN(7)]
			out = append(out, in+fmt.Sprintf("%s %s %s", word(), word(), word())+[]string{"", "", "\t", "\r"}[r.IntN(4)])
		}
	}
	return out
}

// damage makes quoted lines what a model may have written instead, and the wanted lines alike where models do so.
func damage(r *rand.Rand, old, new []string) ([]string, []string) {
	// Mostly both texts are written alike; some models copy one of them and write the other anew.
	sides := [][][]string{{old, new}, {old, new}, {old}, {new}}[r.IntN(4)]
	each := func(f func(string) string) {
		for _, l := range sides {
			for i := range l {
				l[i] = f(l[i])
			}
		}
	}
	at := r.IntN(len(old))
	switch r.IntN(23) {
	case 0, 1:
	case 2: // two lines on one
		if len(old) > 1 && at+1 < len(old) {
			old = slices.Replace(old, at, at+2, old[at]+" "+strings.TrimSpace(old[at+1]))
		}
	case 3: // one line on two
		if i := strings.LastIndex(old[at], " "); i > 0 {
			old = slices.Replace(old, at, at+1, old[at][:i], indent(old[at])+old[at][i+1:])
		}
	case 4: // another order
		if at+1 < len(old) {
			old[at], old[at+1] = old[at+1], old[at]
		}
	case 5:
		each(func(s string) string {
			return strings.NewReplacer("’", "'", "“", `"`, "”", `"`, "–", "-", "\u00a0", " ").Replace(s)
		})
	case 6:
		each(func(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) })
	case 7:
		each(func(s string) string {
			return strings.NewReplacer("&amp;", "&", "&lt;", "<", "<", "&lt;", ">", "&gt;").Replace(s)
		})
	case 8: // numbers in front, in one of their forms
		form := []string{"%d| %s", "%d: %s", "L%d: %s", "%d\t%s", "%5d→%s", "%05d|%s"}[r.IntN(6)]
		n := 7
		number := func(l []string) {
			for i := range l {
				n++
				l[i] = fmt.Sprintf(form, n, l[i])
			}
		}
		number(old)
		if n = 7; r.IntN(3) > 0 {
			number(new)
		}
	case 9: // another unit
		from, to := []string{"    ", "\t", "  "}[r.IntN(3)], []string{"\t", "  ", "    "}[r.IntN(3)]
		each(func(s string) string {
			in := indent(s)
			return strings.ReplaceAll(in, from, to) + s[len(in):]
		})
	case 10:
		each(func(s string) string { return strings.TrimRight(s, " \t") })
	case 11:
		pad := []string{" ", "  ", "\t"}[r.IntN(3)]
		old[at] += pad
		if k := r.IntN(len(new) + 1); k < len(new) {
			new[k] += pad
		}
	case 12:
		old = append([]string{""}, old...)
		if r.IntN(2) == 0 {
			new = append([]string{""}, new...)
		}
	case 13: // lines at an end that the model did not quote, or that are not there
		if len(old) > 2 {
			old = old[:len(old)-1]
		}
		old = append(old, []string{"}", "", "return nil", "total = 1"}[r.IntN(4)])
	case 14: // the words of some lines are others
		for range 1 + r.IntN(2) {
			i := r.IntN(len(old))
			old[i] = reword(r, old[i])
		}
	case 15:
		if len(old) > 3 {
			from := 1 + r.IntN(len(old)-2)
			old = slices.Delete(old, from, min(len(old)-1, from+1+r.IntN(2)))
		}
	case 16:
		in := []string{"  ", "\t", "    "}[r.IntN(3)]
		each(func(s string) string { return in + s })
	case 17:
		each(func(s string) string { return strings.Join(strings.Fields(s), " ") })
	case 18: // wrapped at another width
		wrap := func(lines []string, width int) (out []string) {
			line := ""
			for _, w := range strings.Fields(strings.Join(lines, " ")) {
				if line != "" && len(line)+len(w) > width {
					out, line = append(out, line), ""
				}
				line = strings.TrimPrefix(line+" "+w, " ")
			}
			return append(out, line)
		}
		width := 20 + r.IntN(60)
		if old = wrap(old, width); r.IntN(2) == 0 {
			new = wrap(new, width)
		}
	case 19: // more blanks inside
		with := []string{"  ", "\t", "\u00a0"}[r.IntN(3)]
		each(func(s string) string {
			in := indent(s)
			return in + strings.Replace(s[len(in):], " ", with, 1+r.IntN(3))
		})
	case 20, 21: // another depth
		less := r.IntN(2) == 0
		each(func(s string) string {
			switch {
			case less:
				return strings.TrimPrefix(strings.TrimPrefix(s, "\t"), "  ")
			case s == "":
				return s
			}
			return "    " + s
		})
	case 22: // escapes at the edges of lines
		each(func(s string) string {
			return strings.NewReplacer("(", "\\(", ".", ".\\", "\t", "\\t").Replace(s)
		})
	}
	return old, new
}

// change makes the wanted lines of a block.
func change(r *rand.Rand, lines []string) []string {
	out := slices.Clone(lines)
	for range 1 + r.IntN(2) {
		i := r.IntN(len(out))
		switch r.IntN(9) {
		case 0:
			out[i] = reword(r, out[i])
		case 1:
			out = slices.Insert(out, i, indent(out[i])+"fresh()")
		case 2:
			out = slices.Insert(out, i+1, indent(out[i])+"  fresh()")
		case 3:
			if len(out) > 1 {
				out = slices.Delete(out, i, i+1)
			}
		case 4: // into a block
			unit := []string{"\t", "  ", "    "}[r.IntN(3)]
			for k := i; k < min(len(out), i+3); k++ {
				out[k] = unit + out[k]
			}
			out = slices.Insert(out, i, "wrap {")
		case 5: // out of a block
			for k := i; k < len(out); k++ {
				out[k] = strings.TrimPrefix(strings.TrimPrefix(out[k], "\t"), "  ")
			}
		case 6:
			out[i] = strings.TrimRight(out[i], " ") + []string{"", "  "}[r.IntN(2)]
		case 7:
			k := r.IntN(len(out))
			out[i], out[k] = out[k], out[i]
		case 8:
			out[i] = strings.NewReplacer("'", "’", `"`, "“", "’", "'").Replace(out[i])
		}
	}
	return out
}

// kindOfCase is the answer to one seed, and the case in words.
func kindOfCase(seed uint64) (name, whole string) {
	r := rand.New(rand.NewPCG(seed, 1877))
	lines := document(r)
	from := r.IntN(len(lines))
	to := min(len(lines), from+1+r.IntN(9))
	block := slices.Clone(lines[from:to])
	old, new := damage(r, slices.Clone(block), change(r, block))
	if r.IntN(3) == 0 {
		old, new = damage(r, old, new)
	}
	// A copy of the block is elsewhere, as it is or edited; the file may have gone on, too.
	if r.IntN(3) == 0 {
		again := slices.Clone(block)
		if r.IntN(2) == 0 {
			i := r.IntN(len(again))
			again[i] = reword(r, again[i])
		}
		lines = slices.Insert(lines, []int{0, len(lines)}[r.IntN(2)], again...)
	}
	if r.IntN(3) == 0 {
		i := r.IntN(len(lines))
		lines[i] = reword(r, lines[i])
	}
	eol := []string{"\n", "\n", "\n", "\r\n"}[r.IntN(4)]
	text := strings.Join(lines, eol) + []string{"", eol}[r.IntN(2)]
	if r.IntN(12) == 0 {
		text = strings.Replace(text, "\n", "\r\n", 3)
	}
	quoted, wanted := strings.Join(old, "\n"), strings.Join(new, "\n")
	switch r.IntN(5) {
	case 0:
		quoted, wanted = quoted+"\n", wanted+"\n"
	case 1: // not whole lines
		if len(quoted) > 8 {
			a, b := r.IntN(4), r.IntN(4)
			quoted, wanted = quoted[a:len(quoted)-b], wanted[min(a, len(wanted)):]
		}
	}
	about := func(result any, args ...any) string { return fmt.Sprintf("%q gives %+v", args, result) }
	switch k := r.IntN(16); k {
	case 0:
		first, n, ok := SimilarBlock(text, old)
		return "SimilarBlock", about([]any{first, n, ok}, text, old)
	case 1:
		n := min(len(lines)-from, len(old))
		similar := r.IntN(2) == 0
		return "Rival", about(Rival(text, old, from, n, similar), text, old, from, n, similar)
	case 2:
		got, ok := MergeIn(lines, old, block, new)
		return "MergeIn", about([]any{got, ok}, lines, old, block, new)
	case 3:
		got, ok := Merge(old, block, new)
		return "Merge", about([]any{got, ok}, old, block, new)
	case 4, 5:
		beside := k == 4
		got, ok := Reindent(nil, block, new, beside)
		return "Reindent", about(fmt.Sprintf("%q %t", got, ok), block, new, beside)
	case 6:
		a, b, ok := Unnumber(old, new)
		return "Unnumber", about(fmt.Sprintf("%q %q %t %t %t", a, b, ok, Keeps(old, new), Keeps(new, old)), old, new)
	case 7:
		return "SameWords", about(fmt.Sprintf("%t %t %q", SameWords(old[0], block[0]), SameWords(quoted, strings.Join(block, "\n")), Fold(text)), quoted, block)
	}
	all := r.IntN(6) == 0
	res, err := Apply(text, quoted, wanted, all)
	name, whole = res.Stage, fmt.Sprintf("%q %v %v %q", res.Text, res.Spans, res.Inside, res.Replaced)
	var refused *Error
	if errors.As(err, &refused) {
		name, whole = refused.Kind, fmt.Sprintf("%v %s", refused.Lines, refused.Message)
	}
	return name, fmt.Sprintf("file %q\nold  %q\nnew  %q\nall  %t\ngives %s", text, quoted, wanted, all, whole)
}

func TestAnswersOfMoreKindsAreAsRecorded(t *testing.T) {
	recorded.Check(t, "testdata/record_kinds.txt", 10000, *update, func(seed uint64) (kind, whole, about string) {
		kind, whole = kindOfCase(seed)
		return kind, whole, "" // the case is in whole
	})
}

// Fold replaces the characters of its comment and no others: every code point of the block of punctuation, and some around it.
func TestFoldOfEveryCharacter(t *testing.T) {
	plain := map[rune]string{'…': "...", '−': "-", '\u00a0': " ", '\u0085': " ", '\u1680': " ", '\u3000': " ", '\u2028': " ", '\u2029': " ", '\u202f': " ", '\u205f': " "}
	for r := '\u2000'; r <= '\u200a'; r++ {
		plain[r] = " "
	}
	for chars, ascii := range map[string]string{"‘’‚‛": "'", "“”„‟": `"`, "‐‑‒–—―": "-"} {
		for _, r := range chars {
			plain[r] = ascii
		}
	}
	for r := rune(0x80); r < 0x3100; r++ {
		want, ok := plain[r]
		if !ok {
			want = string(r)
		}
		if got := Fold("a" + string(r) + "b"); got != "a"+want+"b" {
			t.Errorf("%U: %q, want %q", r, got, want)
		}
	}
}
