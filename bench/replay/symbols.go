package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/symbol"
)

// SymbolKinds are declarations given as a whole, in the ways in which models give them.
var SymbolKinds = []string{"as read", "without its indentation", "in another unit of indentation", "with blanks behind its lines", "with line numbers", "in a code fence", "with CRLF",
	"abbreviated", "with the next declaration", "twice", "body only", "without its end", "its first line without indentation"}

// Symbols makes cases of one file for symbol_replace: a line of a declaration is reworded, and the declaration is given anew.
func Symbols(r *rand.Rand, name, text string, most int) (out []Case) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	list, err := symbol.Outline(name, text)
	if broken, ok := symbol.Broken(name, text); err != nil || len(list) == 0 || broken || !ok {
		return nil
	}
	for try := 0; len(out) < most && try < 6*most; try++ {
		i := r.IntN(len(list))
		if c, ok := declared(r, SymbolKinds[r.IntN(len(SymbolKinds))], name, text, list, i); ok {
			out = append(out, c)
		}
	}
	return out
}

func declared(r *rand.Rand, kind, name, text string, list []symbol.Symbol, at int) (Case, bool) {
	s := list[at]
	decl, _ := symbol.Read(text, s)
	was := strings.Split(decl, "\n")
	if s.Fixed != "" || s.Local || s.Sep != "" || len(was) < 3 || len(was) > 80 || text[s.Start-len(indentOf(was[0])):s.Start] != indentOf(was[0]) {
		return Case{}, false
	}
	k := 1 + r.IntN(len(was)-2)
	now := slices.Clone(was)
	if now[k] = reword(r, was[k]); now[k] == was[k] {
		return Case{}, false
	}
	from := s.End - len(decl)
	c := Case{Kind: kind, Whole: s.String(), File: name, Text: text, Symbol: at, Want: text[:from] + strings.Join(now, "\n") + text[s.End:]}
	body := strings.Join(now, "\n")
	cut := margin(now)
	switch kind {
	case "as read":
	case "without its indentation":
		if cut == "" {
			return c, false
		}
		body = strings.Join(each(now, func(l string) string { return strings.TrimPrefix(l, cut) }), "\n")
	case "in another unit of indentation":
		unit, tabs := unitOf(lines(text)), strings.Contains(indents(now), "\t")
		if unit == 0 && !tabs || tabs && strings.Contains(indents(now), " ") {
			return c, false
		}
		to := []string{"\t", "  ", "    ", "   "}[r.IntN(4)]
		for _, l := range now {
			if !tabs && len(indentOf(l))%unit != 0 && !blank(l) {
				return c, false
			}
		}
		body = strings.Join(each(now, func(l string) string {
			in := indentOf(l)
			n := len(in)
			if !tabs {
				n /= unit
			}
			return strings.Repeat(to, n) + l[len(in):]
		}), "\n")
	case "with blanks behind its lines":
		body = strings.Join(each(now, func(l string) string { return l + "  " }), "\n")
	case "with line numbers":
		form := []string{"%d: %s", "%d\t%s", "%6d\t%s", "%5d| %s", "%05d| %s", "%d→%s", "%d:%s"}[r.IntN(7)]
		all := slices.Clone(now)
		for i, l := range all {
			all[i] = fmt.Sprintf(form, 1+strings.Count(text[:from], "\n")+i, l)
		}
		body = strings.Join(all, "\n")
	case "in a code fence":
		body = "```\n" + body + "\n```"
	case "with CRLF":
		body = strings.ReplaceAll(body, "\n", "\r\n")
	case "abbreviated":
		if k < 3 && len(now)-k < 5 {
			return c, false
		}
		short := slices.Clone(now)
		lo, hi := 1, k
		if k < 3 {
			lo, hi = k+1, len(now)-1
		}
		if strings.Count(strings.Join(short[lo:hi], "\n"), "\n") < 1 || !strings.ContainsAny(strings.Join(short[lo:hi], ""), "abcdefghijklmnopqrstuvwxyz") {
			return c, false
		}
		body = strings.Join(slices.Concat(short[:lo], []string{indentOf(short[lo]) + abbreviations[r.IntN(len(abbreviations))]}, short[hi:]), "\n")
	case "with the next declaration":
		if at+1 >= len(list) || list[at+1].Start < s.End || list[at+1].Fixed != "" || len(list[at+1].Path) != len(s.Path) {
			return c, false
		}
		next, _ := symbol.Read(text, list[at+1])
		body += "\n\n" + next
	case "twice":
		body += "\n\n" + body
	case "body only":
		// A decorator or a comment has the whole declaration below it.
		if len(now) < 4 || s.Bare != s.Start {
			return c, false
		}
		body = strings.Join(now[1:len(now)-1], "\n")
	case "without its end":
		// Where no bracket or word ends a declaration (Python), one that is a line shorter is whole.
		if last := now[len(now)-1]; indentOf(last) != indentOf(now[0]) || !strings.ContainsAny(strings.TrimSpace(last)[:1], "})]e") || strings.HasPrefix(strings.TrimSpace(now[0]), "@") {
			return c, false
		}
		body = strings.Join(now[:len(now)-1], "\n")
		// The word that was changed may be the one that needs an end, such as def.
		if broken, _ := symbol.Broken(name, body); !broken {
			return c, false
		}
	case "its first line without indentation":
		if cut == "" {
			return c, false
		}
		body = strings.TrimLeft(body, " \t")
	}
	c.New = body
	// What cannot be parsed is no declaration, and the bodies of such a file are not looked at. Last, since it takes longest.
	if broken, _ := symbol.Broken(name, c.Want); broken {
		return c, false
	}
	// The blanks behind lines may stay as they are given.
	c.Fits = func(got string) bool { return unpadded(got) == unpadded(c.Want) }
	return c, true
}

// unpadded is a text without blanks behind its lines.
func unpadded(s string) string {
	all := strings.Split(s, "\n")
	for i, l := range all {
		all[i] = strings.TrimRight(l, " \t")
	}
	return strings.Join(all, "\n")
}

// OursSymbol is symbol_replace without a language server: the declaration is cut out, and the result must be whole.
var OursSymbol = Peer{"symbol_replace", func(c Case) (string, bool) {
	list, err := symbol.Outline(c.File, c.Text)
	if err != nil || c.Symbol >= len(list) {
		return "", false
	}
	text, err := symbol.Replace(c.Text, list[c.Symbol], c.New)
	if err != nil {
		return "", false
	}
	// As the tool does.
	is, err := symbol.Outline(c.File, text)
	if err != nil || !list[c.Symbol].Declares(c.Text, text, list, is) {
		return text, false
	}
	_, doubled := symbol.Doubled(c.Text, text, list, is)
	broken, _ := symbol.Broken(c.File, text)
	return text, !doubled && !broken
}}

// SymbolsBetween are cases for symbol_replace of the files of a folder; after is not used.
func SymbolsBetween(r *rand.Rand, before, after string, each int) ([]Case, error) {
	return between(before, after, each, func(name, old, _ string, n int) []Case { return Symbols(r, name, old, n) })
}
