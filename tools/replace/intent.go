package replace

import (
	"fmt"
	"slices"
	"strings"
)

// What a new text says by its form: that it is not the text to be written, or is there already. An exact quotation proves the place, not this.

// Misgiven says why a new text, called name, cannot be meant as it is given, whatever the file has; "" when it can. old is the text that it
// replaces. Both may have any line endings.
func Misgiven(name, old, new string) string {
	quoted, wanted := strings.Split(toLF(old), "\n"), strings.Split(toLF(new), "\n")
	if line := Abbreviation(quoted, wanted); line != "" {
		return fmt.Sprintf("%s has %s in place of lines that it replaces, and it would be written as it is, so those lines would be lost; nothing was changed. Give them in full, or quote only the lines that change", name, show(line, 0))
	}
	if line := NumberedAnew(quoted, wanted); line != "" {
		return fmt.Sprintf("the lines of %s begin with line numbers (%s), which are not part of the file; nothing was changed. Leave them out", name, show(line, 0))
	}
	return ""
}

// Abbreviation is the wanted line that stands for quoted ones, such as "// ... existing code ...", in a change that removes some; "" for
// none. Models write it for what they do not want to repeat. A line of dots alone in a comment may be meant, as in an example: where it takes
// the place of one line, it counts only beside another change, since a change of nothing else is that very change.
func Abbreviation(quoted, wanted []string) string {
	if !slices.ContainsFunc(wanted, func(s string) bool { return abbreviates(s) != 0 }) {
		return ""
	}
	// unlike are the lines with words of one list that none of the other is like. Comparing long runs with each other takes too long.
	unlike := func(list, other []string) (n int) {
		for _, line := range list {
			if worded(line) && (len(list)*len(other) > 1<<12 || !slices.ContainsFunc(other, func(s string) bool { return likeness(s, line) >= alike })) {
				n++
			}
		}
		return n
	}
	count := func(list []string) (n int) {
		for _, line := range list {
			if worded(line) && abbreviates(line) == 0 {
				n++
			}
		}
		return n
	}
	hunks := changed(quoted, wanted)
	for _, h := range hunks {
		goes, comes := quoted[h[0]:h[1]], wanted[h[2]:h[3]]
		gone, come := unlike(goes, comes), unlike(comes, goes)
		fewer := count(goes) > count(comes) // lines that are alike may stand for each other, but not for more of them
		beside := len(hunks) > 1 || slices.ContainsFunc(comes, func(s string) bool { return worded(s) && abbreviates(s) == 0 })
		for _, line := range comes {
			kind := abbreviates(line)
			if kind == 'w' && (gone > 0 || fewer) || kind == '.' && gone > 2*come && (gone > 1 || beside) {
				return trim(line)
			}
		}
	}
	return ""
}

// changed are the places in which the wanted lines differ from the quoted ones: the quoted lines from h[0] to h[1] become the wanted ones from
// h[2] to h[3], half-open.
func changed(quoted, wanted []string) (hunks [][4]int) {
	from := align(quoted, wanted)
	for j, i := 0, 0; j < len(wanted) || i < len(quoted); {
		if j < len(wanted) && from[j] == i {
			i, j = i+1, j+1
			continue
		}
		i0, j0 := i, j
		for j < len(wanted) && from[j] < 0 {
			j++
		}
		i = len(quoted)
		if j < len(wanted) {
			i = from[j]
		}
		hunks = append(hunks, [4]int{i0, i, j0, j})
	}
	return hunks
}

// abbreviates says how a line stands for others: 'w' in words ("rest of the function unchanged"), '.' with dots alone in a comment, 0 not.
func abbreviates(line string) byte {
	t := trim(line)
	if len(t) > 100 || t == "" {
		return 0
	}
	body := t
	for _, mark := range [...]string{"{/*", "/**", "/*", "<!--", "//", "##", "#", "--", ";", "%", "\"\"\""} {
		if rest, ok := strings.CutPrefix(body, mark); ok {
			body = rest
			break
		}
	}
	comment := len(body) < len(t)
	for _, mark := range [...]string{"*/}", "*/", "-->", "\"\"\""} {
		body = strings.TrimSuffix(body, mark)
	}
	body = strings.ToLower(trim(strings.ReplaceAll(body, "…", "...")))
	bare := strings.Trim(body, "()[]{} ")
	if comment && strings.Trim(bare, ". ") == "" {
		if strings.Count(bare, ".") >= 3 {
			return '.'
		}
		return 0
	}
	inner := trim(strings.Trim(bare, ". "))
	dots := strings.HasPrefix(bare, "...") || strings.HasSuffix(bare, "...")
	bracketed := bare != body && strings.ContainsAny(body[:1], "([")
	if !comment && !(strings.HasPrefix(bare, "...") && (strings.HasSuffix(bare, "...") || strings.Contains(bare, "("))) {
		return 0
	}
	words := strings.FieldsFunc(inner, func(r rune) bool { return !isWord(r) && r != '\'' })
	if len(words) == 0 || len(words) > 12 {
		return 0
	}
	has := func(list ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	switch {
	case dots && has("existing", "rest", "remaining", "remainder", "unchanged", "same", "keep", "other", "others", "omitted", "previous", "before", "more", "etc", "code", "above", "original"):
		return 'w'
	case has("unchanged", "omitted", "same", "elided") && has("rest", "remaining", "remainder", "code", "other", "others", "everything", "lines", "existing", "as", "body", "implementation"):
		return 'w'
	case has("existing", "remaining", "previous", "original") && has("code", "implementation", "content", "contents", "logic", "lines") && (bracketed || len(words) <= 3 || has("here", "stays", "remains")):
		return 'w'
	case bracketed && (has("unchanged", "omitted") || has("same") && has("as")):
		return 'w'
	case words[0] == "rest" && has("of", "remains", "stays", "here"):
		return 'w'
	}
	return 0
}

// NumberedAnew is the first of the wanted lines when all of them begin with line numbers that were copied along from a tool's output, and the
// quoted lines do not; "" otherwise. It is known by quoted lines that come back behind a number, or by several numbers in a row.
func NumberedAnew(quoted, wanted []string) string {
	filled := 0
	for _, line := range wanted {
		if line != "" {
			filled++
		}
	}
	rest, _, ok := cutNumbers(wanted, "", true)
	if !ok || filled == 0 {
		return ""
	}
	if _, _, also := cutNumbers(quoted, "", true); also {
		return ""
	}
	first, last, from, to := 0, 0, 0, 0 // numbers, and the lines that have them
	was, blank := false, true
	for k, line := range wanted {
		n, _, _ := number(line)
		if n == 0 {
			continue
		}
		if first == 0 {
			first, from = n, k
		}
		last, to = n, k
		blank = blank && trim(rest[k]) == ""
		// A number that stands where the quoted line begins is the file's, as a key: a tool's stand before the indentation.
		was = was || trim(rest[k]) != "" && slices.ContainsFunc(quoted, func(s string) bool {
			return (indent(s) == "" || indent(s) != indent(line) || indent(s) == indent(rest[k])) &&
				(trim(s) == trim(rest[k]) || worded(rest[k]) && worded(s) && filled < 200 && likeness(s, rest[k]) >= alike)
		})
	}
	// Lists and tables begin at 0 or 1.
	if was || blank || filled > 2 && first > 9 && last-first == to-from {
		return firstOf(wanted)
	}
	return ""
}

// firstOf is the first line that is not blank.
func firstOf(lines []string) string {
	if i := firstLine(lines); i >= 0 {
		return lines[i]
	}
	return ""
}

// standing is the line, from 0, at which the file has already what is to replace a place: the place's own text with more around it, and that is
// there. The change was made before, and would be made twice. -1 when it is not there.
func (s *source) standing(p place, new string) int {
	matched := s.text[p.start:p.end]
	for at := 0; len(new) > len(matched); at++ {
		i := strings.Index(new[at:], matched)
		if i < 0 {
			break
		}
		at += i
		// One more blank line where there is one already is meant.
		if from := p.start - at; from >= 0 && strings.HasPrefix(s.text[from:], new) && trim(new[:at]+new[at+len(matched):]) != "" {
			return s.lineAt(from)
		}
	}
	return -1
}

// Doubles is the line of the file, from 0, at which it has what a merge adds: a run of new lines that replaces nothing, directly before or
// behind the same run in the file, or the replaced lines with all new ones around them. The change was made before, and the quotation ends
// too soon to show it. -1 for none. lines are what
// becomes of the n lines of the file from first on. With exact, the lines that stay were quoted to the byte, so the run must be that of the
// file to the byte too, and one more blank line is meant.
func Doubles(file []string, first, n int, lines []Line, exact bool) int {
	bare := trim
	if exact {
		bare = trimRight
	}
	equal := func(a, b string) bool { return bare(a) == bare(b) }
	for i := 0; i < len(lines); {
		if lines[i].From >= 0 {
			i++
			continue
		}
		k := i
		for k < len(lines) && lines[k].From < 0 {
			k++
		}
		before, after := -1, n // the lines around the run that stay
		if i > 0 {
			before = lines[i-1].From
		}
		if k < len(lines) {
			after = lines[k].From
		}
		run := texts(lines[i:k])
		if after == before+1 && !(exact && firstLine(run) < 0) {
			for _, at := range [...]int{first + after, first + after - len(run)} {
				quoted := at >= first && at+len(run) <= first+n // then who quotes it knows that it is there
				if !quoted && at >= 0 && at+len(run) <= len(file) && slices.EqualFunc(run, file[at:at+len(run)], equal) {
					return at
				}
			}
		}
		i = k
	}
	// The lines that can be the whole, those that are replaced among them.
	from, to := max(0, first+n-len(lines)), min(len(file), first+len(lines))
	if len(lines) > n {
		in, all := framed(file[from:to], bare), texts(lines)
		if i := strings.Index(in, framed(all, bare)); i >= 0 {
			at := from + strings.Count(in[:i], "\n")
			if above := first - at; firstLine(all[:above]) >= 0 || firstLine(all[above+n:]) >= 0 {
				return at
			}
		}
	}
	return -1
}

// framed is lines as one text to search in, each between line breaks and as bare has it.
func framed(lines []string, bare func(string) string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, line := range lines {
		b.WriteString(bare(line))
		b.WriteByte('\n')
	}
	return b.String()
}

// madeElsewhere is the line, from 0, of a place that has the whole new text but for indentation, where the place that was found has other lines
// than were quoted: the change was made there before, and what was found is only like the place that it was meant for. -1 for none.
func (q *query) madeElsewhere(p place, new string) int {
	file, lines := strings.Split(q.src.text, "\n"), strings.Split(strings.Trim(new, "\n"), "\n")
	as := func(a, b string) bool { return trim(a) == trim(b) }
	if p.n == 0 || len(lines) < 2 || slices.EqualFunc(q.lines, file[p.line:p.line+p.n], as) {
		return -1
	}
	in, wanted := framed(file, trim), framed(lines, trim)
	for at, line := 0, 0; ; {
		i := strings.Index(in[at:], wanted)
		if i < 0 {
			return -1
		}
		line += strings.Count(in[at:at+i], "\n")
		if line >= p.line+p.n || line+len(lines) <= p.line {
			return line
		}
		at, line = at+i+1, line+1 // behind the line break
	}
}

// made refuses a change that the file has already.
func (q *query) made(line int) *Error {
	return &Error{Kind: Conflict, Lines: []int{line + 1}, Message: fmt.Sprintf(
		"the file has newString already, from line %d on, so nothing was changed: it would be there twice. If the same lines are to come once more, quote the lines around them too", line+1)}
}
