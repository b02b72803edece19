package replace

import (
	"strconv"
	"strings"
)

// Unnumber removes line numbers from a quotation that was copied together with them from the output of a tool that reads or searches
// ("00012| x", "12: x", "12<tab>x", "L12: x", "12→x", "12-x"), and from the wanted lines likewise. ok is false unless every quoted line that is not
// empty has one, in ascending order, and either all or none of the wanted lines. The caller must find the rest in the file exactly: a table
// of numbers looks the same.
func Unnumber(quoted, wanted []string) (old, new []string, ok bool) {
	old, form, ok := cutNumbers(quoted, "", true)
	if !ok {
		return nil, nil, false
	}
	if new, _, ok = cutNumbers(wanted, form, false); ok {
		return old, new, true
	}
	for _, line := range wanted {
		if _, _, f := number(line); f != "" {
			return nil, nil, false // some have numbers and some do not: which of them are meant?
		}
	}
	return old, wanted, true
}

// cutNumbers removes the numbers from lines if all that are not empty have one, in the given form ("" for any, which is returned) and, with
// ascending, each greater than the last. A form ends in the blank that belongs to it, if one does.
func cutNumbers(lines []string, form string, ascending bool) (rest []string, found string, ok bool) {
	mark, blank := strings.CutSuffix(form, " ")
	last, spaced := 0, form == "" || blank
	for _, line := range lines {
		if line == "" {
			rest = append(rest, "")
			continue
		}
		n, text, f := number(line)
		begins := text == "" || text[0] == ' '
		if f == "" || mark != "" && f != mark || ascending && n <= last || blank && !begins {
			return nil, "", false
		}
		mark, found, last = f, f, n
		spaced = spaced && begins
		rest = append(rest, text)
	}
	// Behind a bar or a colon one blank belongs to the form, if all quoted lines have it; then all wanted ones do.
	if spaced && found != "" && found != "\t" && found != "-" {
		for i := range rest {
			rest[i] = strings.TrimPrefix(rest[i], " ")
		}
		found += " "
	}
	return rest, found, found != ""
}

// number splits a line into its number, what is behind, and the separator between the two: "" for a line without a number.
func number(line string) (n int, rest, form string) {
	t := strings.TrimPrefix(strings.TrimPrefix(trimLeft(line), "Line "), "L")
	digits := len(t) - len(strings.TrimLeft(t, "0123456789"))
	n, err := strconv.Atoi(t[:digits])
	if err != nil || n == 0 {
		return 0, "", ""
	}
	for _, form := range []string{"|", ":", "\t", "→", "-"} {
		if rest, ok := strings.CutPrefix(t[digits:], form); ok {
			return n, rest, form
		}
	}
	return 0, "", ""
}

// applyUnnumbered is Apply for a quotation with line numbers whose lines are in the text exactly, as whole lines and only once. The error
// is that of a new text that the file has already, or whose escapes may be meant or not.
func applyUnnumbered(text, old, new string) (Result, bool, error) {
	q := newQuery(text, old)
	ended := q.ended && strings.HasSuffix(new, "\n")
	wanted := strings.Split(new, "\n")
	if ended {
		wanted = wanted[:len(wanted)-1]
	}
	quoted, wanted, ok := Unnumber(q.lines, wanted)
	if !ok || ended != q.ended {
		return Result{}, false, nil
	}
	old = strings.Join(quoted, "\n")
	at := "\n" + q.src.text + "\n"
	if strings.Count(at, "\n"+old+"\n") != 1 || trim(old) == "" {
		return Result{}, false, nil
	}
	bare := newQuery(text, old)
	first := bare.src.lineAt(strings.Index(at, "\n"+old+"\n"))
	p := bare.block(first, len(quoted))
	new = strings.Join(wanted, "\n")
	if at := bare.src.standing(p, new); at >= 0 {
		return Result{}, false, bare.made(at)
	}
	if Undecidable(old, new) {
		return Result{}, false, bare.conflict(p)
	}
	r, err := bare.result("line_numbers", []place{p}, new)
	if err != nil {
		return Result{}, false, nil
	}
	r.Replaced = bare.src.text[p.start:p.end]
	return r, true, nil
}
