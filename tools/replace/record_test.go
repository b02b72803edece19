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

// testdata/record.txt is written anew by: go test ./tools/replace -run Recorded -update. Before it is committed, look at some of the cases that
// changed: the test prints the first one whole.
// program is a small text in the shape of code, whose lines repeat.
func program(r *rand.Rand) []string {
	unit := []string{"    ", "\t", "  "}[r.IntN(3)]
	name := func() string {
		return []string{"load", "store", "user", "items", "count", "cache", "err", "i", "total", "path"}[r.IntN(10)]
	}
	var out []string
	depth := 0
	put := func(s string) { out = append(out, strings.Repeat(unit, depth)+s) }
	for range 3 + r.IntN(25) {
		switch r.IntN(10) {
		case 0:
			out = append(out, "")
		case 1:
			put("// " + name() + " the " + name() + " of a " + name())
		case 2, 3:
			put(fmt.Sprintf("%s(%s, %d);", name(), name(), r.IntN(3)))
		case 4, 5:
			put(fmt.Sprintf("%s = %s.%s + \"%s\";", name(), name(), name(), name()))
		case 6:
			put(fmt.Sprintf("if (%s > %s) {", name(), name()))
			depth++
		case 7:
			put(fmt.Sprintf("function %s(%s) {", name(), name()))
			depth++
		default:
			if depth > 0 {
				depth--
				put("}")
			} else {
				put("return " + name() + ";")
			}
		}
	}
	for depth > 0 {
		depth--
		put("}")
	}
	return out
}

// reword changes one word of a line.
func reword(r *rand.Rand, line string) string {
	words := strings.Split(line, " ")
	words[r.IntN(len(words))] = []string{"other", "next(1)", "", "x"}[r.IntN(4)]
	return strings.Join(words, " ")
}

// misquoted is a quotation as models damage them, and the new text damaged alike.
func misquoted(r *rand.Rand, old, new []string) (string, string) {
	each := func(f func(string) string) {
		for _, l := range [][]string{old, new} {
			for i := range l {
				l[i] = f(l[i])
			}
		}
	}
	end := [2]string{}
	for range 1 + r.IntN(2) {
		switch r.IntN(16) {
		case 0: // exact
		case 1:
			each(strings.TrimSpace)
		case 2:
			each(func(s string) string { return strings.ReplaceAll(s, "\t", "    ") })
		case 3:
			each(func(s string) string { return strings.Replace(s, "    ", "\t", 1) })
		case 4:
			each(func(s string) string { return "  " + s })
		case 5:
			each(func(s string) string { return s + " " })
		case 6:
			each(func(s string) string { return strings.Join(strings.Fields(s), " ") })
		case 7:
			each(func(s string) string { return strings.NewReplacer(`"`, "“", "-", "–").Replace(s) })
		case 8:
			each(func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) })
		case 9: // a line is not as the file has it
			if i := r.IntN(len(old)); len(old) > 1 {
				was := old[i]
				old[i] = reword(r, was)
				if k := slices.Index(new, was); k >= 0 && r.IntN(3) > 0 {
					new[k] = old[i]
				}
			}
		case 10: // a line is left out
			if i := r.IntN(len(old)); len(old) > 2 {
				was := old[i]
				old = slices.Delete(old, i, i+1)
				if k := slices.Index(new, was); k >= 0 && r.IntN(3) > 0 {
					new = slices.Delete(new, k, k+1)
				}
			}
		case 11: // a line that the file does not have
			i := r.IntN(len(old) + 1)
			old = slices.Insert(old, i, []string{"stale();", "", "}"}[r.IntN(3)])
		case 12:
			end = [2]string{"\n", []string{"\n", ""}[r.IntN(2)]}
		case 13:
			each(func(s string) string { return strings.TrimPrefix(strings.TrimPrefix(s, "\t"), "    ") })
		case 14:
			old[0], new[0] = strings.TrimLeft(old[0], " \t"), strings.TrimLeft(new[0], " \t")
		case 15:
			n := 1
			each(func(s string) string { n++; return fmt.Sprintf("%d: %s", n, s) })
		}
	}
	return strings.Join(old, "\n") + end[0], strings.Join(new, "\n") + end[1]
}

// oneCase is the edit of one seed.
func oneCase(seed uint64) (text, old, new string, all bool) {
	r := rand.New(rand.NewPCG(seed, 77))
	lines := program(r)
	from := r.IntN(len(lines))
	to := min(len(lines), from+1+r.IntN(8))
	quoted := slices.Clone(lines[from:to])
	wanted := slices.Clone(quoted)
	for range 1 + r.IntN(3) {
		switch i := r.IntN(len(wanted)); r.IntN(6) {
		case 0, 1:
			wanted[i] = reword(r, wanted[i])
		case 2:
			wanted = slices.Insert(wanted, i, indent(wanted[i])+"added(1);")
		case 3:
			wanted = slices.Insert(wanted, i+1, indent(wanted[i])+"if (added) {", indent(wanted[i])+"    inside();", indent(wanted[i])+"}")
		case 4:
			if len(wanted) > 1 {
				wanted = slices.Delete(wanted, i, i+1)
			}
		case 5: // one level deeper
			for k := i; k < len(wanted); k++ {
				wanted[k] = "\t" + wanted[k]
			}
		}
	}
	old, new = misquoted(r, quoted, wanted)
	// The file has gone on since it was read.
	for range r.IntN(3) {
		if i := r.IntN(len(lines)); i < from || i >= to || r.IntN(3) == 0 {
			lines[i] = reword(r, lines[i])
		}
	}
	eol := "\n"
	if r.IntN(6) == 0 {
		eol = "\r\n"
	}
	text = strings.Join(lines, eol)
	if r.IntN(5) > 0 {
		text += eol
	}
	return text, old, new, r.IntN(8) == 0
}

// What the engine answers to thousands of damaged quotations is recorded, as a digest: a change of the engine that changes an answer is seen, and
// must be meant. The properties (nothing outside the quotation changes, what is not quoted stays) have tests of their own.
func TestAnswersAreAsRecorded(t *testing.T) {
	recorded.Check(t, "testdata/record.txt", 4000, *update, func(seed uint64) (kind, whole, about string) {
		text, old, new, all := oneCase(seed)
		res, err := Apply(text, old, new, all)
		kind, whole = res.Stage, fmt.Sprintf("%+v", res)
		var refused *Error
		if errors.As(err, &refused) {
			kind, whole = refused.Kind, fmt.Sprintf("%v %s", refused.Lines, refused.Message)
		}
		return kind, whole, fmt.Sprintf("file %q\nold  %q\nnew  %q\nall  %t", text, old, new, all)
	})
}
