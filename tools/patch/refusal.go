package patch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/replace"
)

// where names the hunk in the patch text; "" where its line is not known.
func where(h *Hunk) string {
	if h.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (hunk at line %d of the patch)", h.Line)
}

// contextNotFound names the line that is most like the one sought, so that the model need not read the file again.
func (u *updater) contextNotFound(h *Hunk, context string) *Error {
	e := &Error{Kind: ContextNotFound, Path: u.path, Line: h.Line}
	e.Message = fmt.Sprintf("%s has no line %s%s", u.path, show(context), where(h))
	if i, ok := u.nearest([]string{context}); ok {
		e.Lines = []int{i + 1}
		e.Message += fmt.Sprintf("; closest is line %d: %s", i+1, show(u.text.lines[i]))
	} else if u.pos > 0 {
		if i := u.text.seekContext(context, 0); len(i) > 0 {
			e.Lines = numbers(i)
			e.Message += fmt.Sprintf(" after the hunk before; it is in %s", list(e.Lines))
		}
	}
	e.Message += "; after @@ goes one whole line of the file as it is now"
	return e
}

// linesNotFound shows the nearest place and the first line that differs there: most refusals are one wrong line.
func (u *updater) linesNotFound(h *Hunk, old []string) *Error {
	e := &Error{Kind: LinesNotFound, Path: u.path, Line: h.Line}
	e.Message = fmt.Sprintf("the lines to change are not in %s%s:\n%s", u.path, where(h), cut(old))
	first, ok := u.nearest(old)
	if !ok {
		e.Message += "\nnor anything close to them; read the file again and copy the lines exactly"
		return e
	}
	e.Lines = []int{first + 1}
	e.Message += "\nclosest match at " + replace.LineRange(first+1, min(first+len(old), len(u.text.lines)))
	// Lines are compared by the loosest pass: a difference that an earlier pass ignores is not why the hunk failed.
	final := len(passes) - 1
	differs := false
	for k, want := range old {
		if first+k >= len(u.text.lines) {
			e.Message += fmt.Sprintf(", where the file ends before %s", show(want))
			differs = true
			break
		}
		if have := u.text.lines[first+k]; passes[final](have) != passes[final](want) {
			e.Message += fmt.Sprintf(", differs in line %d: the file has %s, the patch has %s", first+k+1, show(strings.TrimSuffix(have, "\r")), show(want))
			differs = true
			break
		}
	}
	if !differs {
		e.Message += ", before or inside what an earlier hunk changes or its @@ names; put the hunks in the file's order"
		return e
	}
	e.Message += "; copy the lines as they are now"
	return e
}

// conflict shows the block as it is in the file, so that the next hunk can be exact without another read.
func (u *updater) conflict(h *Hunk, start, n int) *Error {
	return &Error{Kind: Conflict, Path: u.path, Line: h.Line, Lines: []int{start + 1}, Message: fmt.Sprintf(
		"the hunk%s changes lines of %s that are not as it quotes them, or its indentation does not say how deep its new lines belong. The file has at %s:\n%s\nmake the hunk on top of these lines exactly as they are",
		where(h), u.path, replace.LineRange(start+1, start+n), cut(u.text.lines[start:start+n]))}
}

// made is the error for a hunk whose new lines the file has already, from a 0-based line on.
func (u *updater) made(h *Hunk, line int) *Error {
	return &Error{Kind: Conflict, Path: u.path, Line: h.Line, Lines: []int{line + 1}, Message: fmt.Sprintf(
		"%s has the new lines of the hunk%s already, from line %d on, so nothing was changed: they would be there twice. If the same lines are to come once more, quote the lines around them too", u.path, where(h), line+1)}
}

// abbreviated is the error for a hunk in which a new line stands for lines that go.
func (u *updater) abbreviated(h *Hunk, line string) *Error {
	return &Error{Kind: Conflict, Path: u.path, Line: h.Line, Message: fmt.Sprintf(
		"the hunk%s of %s has %s in place of lines that it removes, and it would be written as it is; nothing was changed. Remove only the lines that go", where(h), u.path, show(line))}
}

// numbered is the error for a hunk whose new lines begin with line numbers.
func (u *updater) numbered(h *Hunk, line string) *Error {
	return &Error{Kind: Conflict, Path: u.path, Line: h.Line, Message: fmt.Sprintf(
		"the new lines of the hunk%s of %s begin with line numbers (%s), which are not part of the file; nothing was changed. Leave them out", where(h), u.path, show(line))}
}

// ambiguous is the error for a hunk that fits several places; Lines has them, counted from 1.
func (u *updater) ambiguous(h *Hunk, places []int) *Error {
	e := &Error{Kind: LinesNotFound, Path: u.path, Line: h.Line, Lines: numbers(places)}
	e.Message = fmt.Sprintf("%s has %d places that fit the hunk%s: %s; add lines around it, or an @@ line that names the function it is in", u.path, len(places), where(h), list(e.Lines))
	return e
}

// numbers turns 0-based lines into the 1-based ones that models and people see.
func numbers(places []int) []int {
	out := make([]int, len(places))
	for i, p := range places {
		out[i] = p + 1
	}
	return out
}

// list names lines, twenty at most: more do not help to choose.
func list(lines []int) string {
	const shown = 20
	var names []string
	for _, n := range lines[:min(len(lines), shown)] {
		names = append(names, strconv.Itoa(n))
	}
	text := strings.Join(names, ", ")
	if len(lines) > shown {
		text += ", …"
	}
	if len(lines) == 1 {
		return "line " + text
	}
	return "lines " + text
}

// cut shows the first 12 lines of a hunk, at most 200 bytes of each, and the number of the others: an error must not fill the model's
// context.
func cut(lines []string) string {
	const shown = 12
	var b strings.Builder
	for i, line := range lines {
		if i == shown {
			fmt.Fprintf(&b, "… (%d more)", len(lines)-shown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(line) > 200 {
			line = strings.ToValidUTF8(line[:200], "") + "…"
		}
		b.WriteString(line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// nearest returns the 0-based line at which most of the wanted lines are found in their order; longer lines count more. When no line is
// the same, the line with the longest common beginning with one of the first eight decides. The number of votes is bounded, because a
// patch of braces against a file of braces would have as many as the product of both.
func (u *updater) nearest(want []string) (first int, ok bool) {
	final := len(passes) - 1
	u.text.number(final)
	sought := map[int32][]int{}
	for k, line := range want {
		if id, ok := u.text.known[final][passes[final](line)]; ok && len(sought[id]) < 16 {
			sought[id] = append(sought[id], k)
		}
	}
	// Each line votes for the line at which the whole block would begin.
	votes := map[int]int{}
	best, most := 0, 0
	for i, id := range u.text.ids[final] {
		for _, k := range sought[id] {
			if i < k || len(votes) > 1<<16 {
				continue
			}
			votes[i-k] += min(len(strings.TrimSpace(u.text.lines[i])), 40)
			if v := votes[i-k]; v > most {
				best, most = i-k, v
			}
		}
	}
	if most > 4 {
		return best, true
	}
	for k, line := range want { // none of the lines: the longest common beginning with one of the first few
		w := strings.TrimSpace(line)
		if k == 8 {
			break
		}
		for i, have := range u.text.lines {
			if i < k {
				continue
			}
			n := shared(strings.TrimSpace(have), w)
			if n > most && n >= 8 && n*2 >= len(w) {
				best, most = i-k, n
			}
		}
	}
	return best, most > 4
}

// shared is how many bytes both begin with; it only ranks lines, so a character may be cut.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
