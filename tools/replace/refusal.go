package replace

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// multiple lists the lines of several places that match alike. places may be cut short; total counts all of them.
func (q *query) multiple(stage string, places []place, total int) *Error {
	e := &Error{Kind: Multiple}
	total = max(total, len(places)) // overlapping ones are not counted
	for _, p := range places {
		if line := q.src.lineAt(p.start) + 1; len(e.Lines) == 0 || e.Lines[len(e.Lines)-1] != line {
			e.Lines = append(e.Lines, line)
		}
	}
	// More numbers would not help to choose, and they fill the model's context.
	const shown = 20
	names := make([]string, 0, shown)
	for _, line := range e.Lines[:min(len(e.Lines), shown)] {
		names = append(names, strconv.Itoa(line))
	}
	list := strings.Join(names, ", ")
	if len(e.Lines) > shown {
		list += ", …"
	}
	word := "lines"
	if len(e.Lines) == 1 {
		word = "line"
	}
	if stage == Stages[0] {
		e.Message = fmt.Sprintf("oldString matches %d places (%s %s); provide more surrounding lines until it is unique, or set replaceAll", total, word, list)
	} else {
		e.Message = fmt.Sprintf("oldString is nowhere exactly as quoted, and %d places match it loosely (%s, %s %s); provide more surrounding lines, copied exactly with their indentation, until it is unique, or set replaceAll", total, stage, word, list)
	}
	return e
}

// oversize refuses a match that is much larger than the quotation.
func (q *query) oversize(p place) *Error {
	first, last := q.src.lineAt(p.start)+1, q.src.lineAt(p.end)+1
	return &Error{Kind: Oversize, Lines: []int{first}, Message: fmt.Sprintf(
		"the closest match (%s, %d bytes) is much larger than oldString (%d lines, %d bytes) and would replace text that was not quoted; read these lines and quote all of them exactly",
		LineRange(first, last), p.end-p.start, strings.Count(q.old, "\n")+1, len(q.old))}
}

// conflict shows the block as it is in the file, at most 60 lines and 8 KiB, so that the model can quote it exactly without another read.
func (q *query) conflict(p place) *Error {
	first, last := q.src.lineAt(p.start), q.src.lineAt(p.end)
	const most = 60 // lines shown
	shown := min(last, first+most-1)
	block := q.src.text[q.src.starts[first]:q.src.lineEnd(shown)]
	if len(block) > 8<<10 {
		block = strings.ToValidUTF8(block[:8<<10], "")
	}
	if shown < last {
		block += "\n…"
	}
	return &Error{Kind: Conflict, Lines: []int{first + 1}, Message: fmt.Sprintf(
		"oldString is not what the file has at %s, and newString changes lines where the two differ; nothing was changed. The file has there:\n%s\nQuote the lines to change exactly as they are here, and give newString on top of them", LineRange(first+1, last+1), block)}
}

// notFound names the most likely mistake: line numbers that were copied along, too much text, or the first line that differs from the
// closest place, with the code points where two letters look the same.
func (q *query) notFound() *Error {
	e := &Error{Kind: NotFound, Message: "oldString not found"}
	// Line numbers copied along from the read tool: the nearest line of the file would not explain that.
	if numbered(q.lines) {
		e.Message += ": it begins with line numbers, which are not part of the file; leave them out"
		return e
	}
	if q.spent > work {
		e.Message += " exactly, and it is too much text to compare loosely; copy the text exactly, or quote fewer lines"
		return e
	}
	first, n, ok := q.nearest()
	if !ok {
		e.Message += ", nor anything close to it; read the file again and copy the text exactly"
		return e
	}
	e.Lines = []int{first + 1}
	e.Message += ": closest match at " + LineRange(first+1, first+n)
	for k, want := range q.lines {
		if first+k >= q.src.count() {
			e.Message += fmt.Sprintf(", where the file ends before oldString does (%s)", show(want, 0))
			break
		}
		if have := q.src.line(first + k); trim(have) != trim(want) {
			at := differAt(trim(have), trim(want))
			e.Message += fmt.Sprintf(", differs in line %d: the file has %s, oldString has %s", first+k+1, show(trim(have), at), show(trim(want), at))
			// Cyrillic and Latin letters, or a composed and a decomposed accent, look alike: only numbers tell them apart.
			if a, b := letter(trim(have)[at:]), letter(trim(want)[at:]); !isASCII(a + b) { // they may look the same
				e.Message += fmt.Sprintf(" (where they differ %s and %s)", codes(a), codes(b))
			}
			break
		}
	}
	e.Message += "; copy the lines exactly as they are now"
	return e
}

// LineRange names 1-based lines, both included.
func LineRange(first, last int) string {
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d–%d", first, last)
}

// numbered reports whether every line begins as the read tool prints it: a number and a colon, bar or tab. Blank lines do not count, and
// a text of blank lines is not numbered.
func numbered(lines []string) bool {
	seen := false
	for _, line := range lines {
		t := trim(line)
		if t == "" {
			continue
		}
		digits := len(t) - len(strings.TrimLeft(t, "0123456789"))
		if digits == 0 || digits == len(t) || !strings.ContainsRune(":|\t", rune(t[digits])) {
			return false
		}
		seen = true
	}
	return seen
}

// differAt is the byte offset of the first difference, moved back to the start of its character, so that nothing is cut in
// half.
func differAt(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// show quotes a line, cut to what a reader needs around offset at, in bytes. Quoting makes tabs and blanks at its ends
// visible.
func show(s string, at int) string {
	const before, after = 60, 100 // bytes
	from, to := 0, len(s)
	if at > before+20 {
		from = at - before
	}
	if to-from > before+after {
		to = from + before + after
	}
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to--
	}
	out := strconv.Quote(s[from:to])
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}

// letter is the first character of s with the combining marks on it, as a reader sees one letter.
func letter(s string) string {
	for i, r := range s {
		if i > 0 && !unicode.Is(unicode.M, r) {
			return s[:i]
		}
	}
	return s
}

// isASCII reports a text in which Fold changes nothing.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// codes spells a letter out: U+0065 U+0301.
func codes(letter string) string {
	if letter == "" {
		return "nothing"
	}
	var out []string
	for _, r := range letter {
		out = append(out, fmt.Sprintf("%U", r))
	}
	return strings.Join(out, " ")
}

// nearest is the run of lines that is most like the quotation: by the lines in common, of which longer ones count more, else by the line
// most similar to the longest quoted one. It is bounded like the stages but has a budget of its own, because a refusal must say something
// useful even when the stages have used up theirs.
func (q *query) nearest() (first, n int, ok bool) {
	q.number()
	n = min(len(q.lines), q.src.count())
	where := make([][]int32, len(q.quotes)) // quoted lines by number, the first few of each
	weight := make([]int32, len(q.quotes))
	for k, id := range q.quotes {
		if len(where[id]) < 8 {
			where[id] = append(where[id], int32(k))
		}
		weight[id] = int32(min(len(trim(q.lines[k])), 40))
	}
	votes := make([]int32, q.src.count())
	best, most := 0, int32(0)
	for i, id := range q.ids {
		if id < 0 || weight[id] == 0 {
			continue
		}
		for _, k := range where[id] {
			start := i - int(k)
			if start < 0 || start+n > q.src.count()+n/2 {
				continue
			}
			votes[start] += weight[id]
			if v := votes[start]; v > most || v == most && start < best {
				best, most = start, v
			}
		}
	}
	// Fewer than 9 bytes in common are a few braces, which are everywhere.
	if most > 8 {
		return best, min(n, q.src.count()-best), true
	}
	longest := 0
	for k, line := range q.lines {
		if len(trim(line)) > len(trim(q.lines[longest])) {
			longest = k
		}
	}
	want := trim(q.lines[longest])
	purse, top := work/4, 0.6
	for i := range q.src.count() {
		have := trim(q.src.line(i))
		if long, short := max(len(have), len(want)), min(len(have), len(want)); long == 0 || float64(short) < top*float64(long) {
			continue
		}
		if purse -= steps(have, want) + 64; purse < 0 {
			break
		}
		score := 1 - float64(distance(have, want))/float64(max(runeLen(have), runeLen(want)))
		if score > top {
			first, top, ok = max(0, i-longest), score, true
		}
	}
	return first, min(n, q.src.count()-first), ok
}
