package replace

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// simple proposes the exact quotation. Overlapping occurrences count: "aa" is in "aaa" twice. Two places are enough to know that it is
// ambiguous, so it only looks for the first and the last.
func simple(q *query) []place {
	i := strings.Index(q.src.text, q.old)
	if i < 0 {
		return nil
	}
	out := []place{{start: i, end: i + len(q.old)}}
	if j := strings.LastIndex(q.src.text, q.old); j != i {
		out = append(out, place{start: j, end: j + len(q.old)})
	}
	return out
}

// lineTrimmed proposes runs of lines equal to the quoted ones after trimming each: models lose indentation and add
// blanks at line ends.
func lineTrimmed(q *query) []place {
	q.number()
	var out []place
	for _, i := range runs(q.ids, q.quotes) {
		p := q.block(i, len(q.lines))
		if q.blank() && isEmpty(q.src.text[p.start:p.end]) {
			continue
		}
		if out = append(out, p); len(out) == mostPlaces {
			break
		}
	}
	return out
}

// isEmpty reports lines with nothing on them, not even white space: a quotation of blanks must not match them, or the new text
// would be inserted at any empty line.
func isEmpty(s string) bool {
	for i := range len(s) {
		if s[i] != '\n' {
			return false
		}
	}
	return true
}

// runs are the starts of want in ids, overlapping ones too, in linear time (Knuth, Morris and Pratt): a file of equal lines
// would make the plain search quadratic. Lines are numbers here, see number.
func runs(ids, want []int32) []int {
	if len(want) == 0 || len(want) > len(ids) {
		return nil
	}
	// border[i] is the length of the longest proper beginning of want[:i] that it also ends with.
	border := make([]int, len(want)+1)
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i] != want[k] {
			k = border[k]
		}
		if want[i] == want[k] {
			k++
		}
		border[i+1] = k
	}
	var out []int
	for i, k := 0, 0; i < len(ids); i++ {
		for k > 0 && ids[i] != want[k] {
			k = border[k]
		}
		if ids[i] == want[k] {
			k++
		}
		if k == len(want) {
			out = append(out, i+1-k)
			k = border[k]
		}
	}
	return out
}

// whitespaceNormalized proposes what equals the quotation when every run of white space is one blank and the ends are trimmed: whole lines
// and parts of a line, and if there are none, blocks of as many lines as quoted. It examines only lines with the quotation's longest
// word, so a large file costs one search for that word.
func whitespaceNormalized(q *query) []place {
	want := collapse(q.old)
	if want == "" {
		return nil
	}
	rarest, ok := q.words()
	if !ok {
		return nil
	}
	var whole, parts []place
	var norm, sought = []byte(nil), []byte(want)
	bare, compared := trim(q.old), false
	at := make([]int, 0, 256) // for each byte of norm its offset in the line
	q.src.split()
	for next := 0; len(whole)+len(parts) < mostPlaces; { // only lines with that word can match
		j := strings.Index(q.src.text[next:], rarest)
		if j < 0 {
			break
		}
		i := q.src.lineAt(next + j)
		next = min(q.src.lineEnd(i)+1, len(q.src.text))
		line := q.src.line(i)
		norm, _ = collapseInto(norm[:0], nil, line)
		from := bytes.Index(norm, sought)
		if from < 0 {
			continue
		}
		if len(norm) == len(want) {
			whole = append(whole, q.block(i, 1))
			continue
		}
		norm, at = collapseInto(norm[:0], at[:0], line)
		for base := q.src.starts[i]; len(parts) < mostPlaces; {
			end := from + len(want)
			if !q.spend(len(want)/16 + 1) {
				return nil
			}
			// A quotation that begins within a literal does not show that its blanks are text; in the place of the match it does.
			start, stop := at[from], at[end-1]+1
			same := bare == want || !strings.ContainsAny(line[:stop], quotes)
			if !same {
				if compared && !q.spend(4*len(line)) {
					return nil
				}
				compared = true // the first is free: a unique passage in a very long line is found
				same = collapse(line[:start]+bare+line[stop:]) == string(norm)
			}
			if same {
				parts = append(parts, place{start: base + start, end: base + stop})
			}
			next := bytes.Index(norm[from+1:], sought)
			if next < 0 {
				break
			}
			from += 1 + next
		}
	}
	// In the order of the text, as in OpenCode: a whole line and a part of a line are equally good matches.
	out := q.apartFirst(merge(whole, parts))
	if len(q.lines) > 1 && len(out) == 0 {
		out = q.reflowed(want)
	}
	return out
}

// words gives the longest word of old. ok is false when one of its first 32 different words is not in the text: then no passage differs
// from old in white space only. Each word costs a search through the text, hence the limit.
func (q *query) words() (longest string, ok bool) {
	words := strings.FieldsFunc(q.old, isSpace)
	seen := map[string]bool{}
	for _, w := range words {
		if len(w) > len(longest) {
			longest = w
		}
		if seen[w] || len(seen) == 32 {
			continue
		}
		seen[w] = true
		if !strings.Contains(q.src.text, w) {
			return "", false
		}
	}
	return longest, longest != ""
}

// reflowed are the blocks of as many lines as quoted with the same words, wherever the lines break: a formatter may have moved words from
// one line to the next since the file was read.
func (q *query) reflowed(want string) []place {
	n := len(q.lines)
	var all strings.Builder // the lines' words, one blank between lines, none for blank lines
	from := make([]int, q.src.count()+1)
	ends := make([]int, q.src.count()+1) // ends[i]: length of all after i lines
	for i := range q.src.count() {
		norm := collapse(q.src.line(i))
		if norm != "" && all.Len() > 0 {
			all.WriteByte(' ')
		}
		from[i] = all.Len()
		all.WriteString(norm)
		ends[i+1] = all.Len()
	}
	text := all.String()
	var out []place
	for i := 0; i+n <= q.src.count() && len(out) < mostPlaces; i++ {
		start, end := from[i], ends[i+n]
		if trim(q.src.line(i)) == "" {
			start = min(start+1, len(text)) // the blank before the next words; none at the very start
			if from[i] == 0 {
				start = 0
			}
		}
		if end-start != len(want) {
			continue
		}
		if !q.spend(len(want)/64 + 1) {
			return nil
		}
		if text[start:end] == want {
			out = append(out, q.block(i, n))
		}
	}
	return q.tight(out)
}

// tight removes blank lines at the ends of blocks where none are quoted. Blocks that differ only by such a line are then equal and count as
// one place.
func (q *query) tight(blocks []place) []place {
	blank := func(s string) bool { return trim(s) == "" }
	var out []place
	for _, b := range blocks {
		i, n := b.line, b.n
		for ; n > 1 && blank(q.src.line(i)) && !blank(q.lines[0]); i++ {
			n--
		}
		for n > 1 && blank(q.src.line(i+n-1)) && !blank(q.lines[len(q.lines)-1]) {
			n--
		}
		if b = q.block(i, n); len(out) == 0 || out[len(out)-1] != b {
			out = append(out, b)
		}
	}
	return out
}

// merge puts two lists that are each in the text's order into one, as finders promise their places in that order.
func merge(a, b []place) []place {
	out := make([]place, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].start <= b[0].start {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// apart reports whether a match inside a line respects the white space around old, which the match itself does not include: it must not cut
// a word where old has white space, nor a line where old has a line break. " if " must not match in "xifx".
func (q *query) apart(p place) bool {
	text := q.src.text
	if strings.Contains(q.old[:len(q.old)-len(trimLeft(q.old))], "\n") { // quoted from a line's beginning
		if trim(text[strings.LastIndexByte(text[:p.start], '\n')+1:p.start]) != "" {
			return false
		}
	}
	if strings.Contains(q.old[len(trimRight(q.old)):], "\n") {
		if rest, _, _ := strings.Cut(text[p.end:], "\n"); trim(rest) != "" {
			return false
		}
	}
	// More than one blank before several lines is the first one's indentation.
	if in := indent(q.old); (len(in) > 1 || in == "\t") && strings.Contains(trim(q.old), "\n") && trim(text[strings.LastIndexByte(text[:p.start], '\n')+1:p.start]) != "" {
		return false
	}
	if trimLeft(q.old) != q.old {
		before, _ := utf8.DecodeLastRuneInString(text[:p.start])
		first, _ := utf8.DecodeRuneInString(text[p.start:])
		if isWord(before) && isWord(first) {
			return false
		}
	}
	if trimRight(q.old) != q.old {
		last, _ := utf8.DecodeLastRuneInString(text[:p.end])
		after, _ := utf8.DecodeRuneInString(text[p.end:])
		if isWord(last) && isWord(after) {
			return false
		}
	}
	return true
}

// apartFirst puts matches that are not apart last; if there are only such matches, there is none. As long as there are others they make the
// quotation ambiguous, because one of them may be meant.
func (q *query) apartFirst(places []place) []place {
	var good, cut []place
	for _, p := range places {
		if p.n > 0 || q.apart(p) {
			good = append(good, p)
		} else {
			cut = append(cut, p)
		}
	}
	if good == nil {
		return nil
	}
	return append(good, cut...)
}

// collapse trims s and makes each run of white space one blank, but for what is in a literal; see literalEnd.
func collapse(s string) string {
	if s = trim(s); isCollapsed(s) {
		return s
	}
	b, _ := collapseInto(nil, nil, s)
	return string(b)
}

// isCollapsed reports, of a trimmed text, that its white space is single blanks and collapse changes nothing. It is false for some texts of
// which that is true; most lines of code need no copy.
func isCollapsed(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == ' ' && s[i+1] == ' ' {
			return false
		}
	}
	return true
}

// collapseInto appends s with its ends trimmed and runs of white space outside of literals as one blank; at gets the offset in s of
// each byte appended, unless nil.
func collapseInto(b []byte, at []int, s string) ([]byte, []int) {
	gap, begin := false, len(b)
	var open literals
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if isSpace(r) {
			if r == '\n' {
				open = literals{}
			}
			gap = true
			i += n
			continue
		}
		if gap && len(b) > begin {
			b = append(b, ' ')
			if at != nil {
				at = append(at, i-1)
			}
		}
		gap = false
		if end := open.end(s, i); end > 0 {
			n = end - i
		}
		for range n {
			b = append(b, s[i])
			if at != nil {
				at = append(at, i)
			}
			i++
		}
	}
	return b, at
}

// literals finds the literals of one line: strings, characters, regular expressions. White space in them is text, so two lines that differ
// in it are two lines. What only looks like a literal, as in prose, is compared to the byte too, which costs no more than a refusal.
type literals struct {
	unclosed [4]bool // the line has no more ends of literals that begin with this character of quotes
}

const quotes = "\"'`/"

// end is the offset behind the literal that begins at s[i] and ends on the same line, 0 where none does.
func (l *literals) end(s string, i int) int {
	kind := -1
	switch s[i] { // nearly every byte comes by here
	case '"', '\'', '`', '/':
		kind = strings.IndexByte(quotes, s[i])
	}
	if kind < 0 || l.unclosed[kind] || i+1 == len(s) {
		return 0
	}
	switch last, _ := utf8.DecodeLastRuneInString(s[:i]); {
	case s[i] == '\'' && isWord(last):
		// An apostrophe, unless what is in front of it is the prefix of a string: f'' or b''.
		next, _ := utf8.DecodeRuneInString(s[i+1:])
		if other, _ := utf8.DecodeLastRuneInString(s[:i-1]); isWord(next) && (last >= utf8.RuneSelf || isWord(other)) {
			return 0
		}
	case s[i] == '/':
		// Only what is before it tells a regular expression from a division. The blanks are few, the line may be long.
		before := trimRight(s[:i])
		begins := before == "" || strings.Contains(s[len(before):i], "\n")
		if s[i+1] == '/' || s[i+1] == '*' || !begins && !strings.HasSuffix(before, "return") && !strings.ContainsRune("(=,:[!&|?{};", rune(before[len(before)-1])) {
			return 0
		}
	}
	for j := i + 1; j < len(s) && s[j] != '\n'; j++ {
		switch s[j] {
		case '\\':
			j++
		case s[i]:
			return j + 1
		}
	}
	l.unclosed[kind] = true
	return 0
}

// indentationFlexible proposes runs of lines that are equal without the common indentation of each side, apart from trailing white space, or
// with an indentation in another unit.
// lineTrimmed finds all of them too; this stage chooses among those, so it proposes only the closest: those with exactly the quoted
// indentation, if there are any.
func indentationFlexible(q *query) []place {
	q.number()
	quoted := common0(q.lines)
	var same, shifted []place
	for _, i := range runs(q.ids, q.quotes) {
		p := q.block(i, len(q.lines))
		if q.blank() && isEmpty(q.src.text[p.start:p.end]) {
			continue
		}
		if !q.spend(len(q.lines)) {
			return nil
		}
		lines := make([]string, p.n)
		for k := range lines {
			lines[k] = q.src.line(i + k)
		}
		cut := common0(lines)
		relative, absolute, scaled := true, true, true
		x, y := 0, 0 // so many characters of the quotation are so many in the file, if it is in another unit
		for k, line := range lines {
			have, want := indent(line), indent(q.lines[k])
			if len(have) == len(line) {
				continue // a blank line's indentation says nothing
			}
			absolute = absolute && have == want
			relative = relative && have[min(cut, len(have)):] == want[min(quoted, len(want)):]
			if x == 0 {
				x, y = len(want), len(have)
			}
			scaled = scaled && x > 0 && y > 0 && len(have)*x == len(want)*y
		}
		if absolute {
			same = append(same, p)
		} else if relative || scaled {
			shifted = append(shifted, p)
		}
		if len(same)+len(shifted) > mostPlaces {
			break
		}
	}
	if same != nil {
		return same
	}
	return shifted
}

// common0 is the length in bytes of the least indentation of the lines that are not blank; 0 when all are blank. A tab counts as one byte,
// because only lines of the same block are compared.
func common0(lines []string) int {
	least := -1
	for _, line := range lines {
		if in := len(indent(line)); in < len(line) && (least < 0 || in < least) {
			least = in
		}
	}
	return max(least, 0)
}

// escapeNormalized proposes the quotation with its escapes (\n \t \r \' \" \` \\ \$) decoded, and runs of
// lines that read the same when theirs are decoded too.
func escapeNormalized(q *query) []place {
	want := unescape(q.old)
	if trim(want) == "" {
		return nil
	}
	if want != q.old {
		if out := bounded(q.src.text, want); len(out) > 0 {
			return out
		}
	}
	if !strings.Contains(q.src.text, `\`) {
		return nil
	}
	// Lines are numbered as in query.number, decoded on both sides.
	lines := strings.Split(want, "\n")
	n := len(lines) - 1 // but for the last, whose newline is not quoted
	known := make(map[string]int32, n)
	sought := make([]int32, n)
	for k, line := range lines[:n] {
		id, ok := known[line]
		if !ok {
			id = int32(len(known))
			known[line] = id
		}
		sought[k] = id
	}
	ids := make([]int32, q.src.count())
	var starts []int
	for i := range ids {
		if n == 0 {
			starts = append(starts, i)
			continue
		}
		ids[i] = -1
		if id, ok := known[unescapeLine(q.src.line(i), false)]; ok {
			ids[i] = id
		}
	}
	if n > 0 {
		starts = runs(ids, sought)
	}
	var out []place
	for _, i := range starts {
		if i+n < len(ids) && unescapeLine(q.src.line(i+n), true) == lines[n] {
			if out = append(out, q.block(i, n+1)); len(out) == mostPlaces {
				break
			}
		}
	}
	return out
}

// bounded is occurrences up to mostPlaces.
func bounded(text, want string) []place {
	var out []place
	for i := 0; len(out) < mostPlaces; {
		j := strings.Index(text[i:], want)
		if j < 0 {
			break
		}
		out = append(out, place{start: i + j, end: i + j + len(want)})
		i += j + len(want)
	}
	return out
}

// unescapeLine decodes one line of a block; a backslash before the newline goes with it, but for the last line, whose
// newline is not part of the block.
func unescapeLine(line string, last bool) string {
	if !strings.Contains(line, `\`) {
		return line
	}
	if last {
		return unescape(line)
	}
	return strings.TrimSuffix(unescape(line+"\n"), "\n")
}

// unescapeAs decodes in s only the kinds of escapes that old has. What was escaped once too often in old was in s as well; an escape that old
// does not have may be meant, such as \n in a string literal.
func unescapeAs(old, s string) string {
	var kinds []byte
	for i := 0; i+1 < len(old); i++ {
		if old[i] == '\\' {
			kinds = append(kinds, old[i+1])
			i++
		}
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && bytes.IndexByte(kinds, s[i+1]) >= 0 {
			b.WriteString(unescape(s[i : i+2]))
			i++
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescape decodes the backslash escapes that models write when they escape text for JSON twice: n, t, r, quotes, backquote, backslash, a
// line continuation and the dollar sign of a template. Others stay: \d belongs to a regular expression.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			if k := strings.IndexByte("ntr'\"`\\\n$", s[i+1]); k >= 0 {
				c = "\n\t\r'\"`\\\n$"[k]
				i++
			}
		}
		b.WriteByte(c)
	}
	return toLF(b.String())
}

// trimmedBoundary proposes the quotation without the white space around it. Where that is in several places, the blank lines quoted around
// it may identify one of them.
func trimmedBoundary(q *query) []place {
	want := trim(q.old)
	if want == q.old || want == "" {
		return nil
	}
	// A single place needs no help of the blank lines.
	alone := q.apartFirst(bounded(q.src.text, want))
	if len(alone) < 2 {
		return alone
	}
	var blocks []place
	n := strings.Count(q.old, "\n") + 1
	for _, p := range alone {
		first, lines := q.src.lineAt(p.start), strings.Count(want, "\n")+1
		if trim(q.src.text[q.src.starts[first]:q.src.lineEnd(first+lines-1)]) != want {
			continue
		}
		// The block with as many blank lines around it as were quoted.
		before := strings.Count(q.old[:len(q.old)-len(trimLeft(q.old))], "\n")
		from := first - before
		if from < 0 || from+n > q.src.count() {
			continue
		}
		if b := q.block(from, n); trim(q.src.text[b.start:b.end]) == want {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 1 {
		return blocks
	}
	return alone
}

// isWord reports what words consist of in most programming languages. Bytes that are not UTF-8 decode to U+FFFD and are
// none.
func isWord(r rune) bool {
	return r == '_' || r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// occurrences are the places with exactly this text for which fits (unless nil) is true, not overlapping, from the start, as
// strings.ReplaceAll finds them. After a place that does not fit the search continues one byte further, since a fitting one may overlap it.
func occurrences(text, want string, fits func(place) bool) []place {
	var out []place
	for i := 0; want != ""; {
		j := strings.Index(text[i:], want)
		if j < 0 {
			break
		}
		p := place{start: i + j, end: i + j + len(want)}
		if fits != nil && !fits(p) {
			i = p.start + 1
			continue
		}
		out = append(out, p)
		i = p.end
	}
	return out
}

// typography proposes lines, then parts of lines, that are the quotation when typographic quotes, dashes and blanks
// are plain ones: models and editors exchange them. Where both texts are ASCII there is nothing to fold in parts of lines.
func typography(q *query) []place {
	n := len(q.lines)
	quoted, have := keys(q.lines), q.src.keys()
	if q.blank() {
		return nil
	}
	ids := make(map[string]int32, n)
	want, is := make([]int32, n), make([]int32, len(have))
	for k, line := range quoted {
		id, ok := ids[line]
		if !ok {
			id = int32(len(ids))
			ids[line] = id
		}
		want[k] = id
	}
	for i, line := range have {
		id, ok := ids[line]
		if !ok {
			id = -1
		}
		is[i] = id
	}
	var out []place
	for _, i := range runs(is, want) {
		if out = append(out, q.block(i, n)); len(out) == mostPlaces {
			break
		}
	}
	// Whole lines are the better match, and folding the whole text is the costly part.
	if len(out) > 0 || isASCII(q.src.text) && isASCII(q.old) {
		return out
	}
	part := Fold(trim(q.old))
	if part == "" {
		return nil
	}
	text, at := foldMapped(q.src.text)
	for i := 0; len(out) < mostPlaces; {
		j := strings.Index(text[i:], part)
		if j < 0 {
			break
		}
		if start, end := at[i+j], at[i+j+len(part)]; end > start && q.apart(place{start: start, end: end}) {
			out = append(out, place{start: start, end: end})
		}
		i += j + 1
	}
	return out
}

// keys are the keys of lines, see key.
func keys(lines []string) []string { return each(lines, key) }

// keys are those of the text's lines, made once. The caller does not change them.
func (s *source) keys() []string {
	if s.keysOnce == nil {
		s.keysOnce = make([]string, s.count())
		for i := range s.keysOnce {
			s.keysOnce[i] = key(s.line(i))
		}
	}
	return s.keysOnce
}

// similarBlock proposes the one block that has most of the quoted lines in order, though not all of them, and perhaps others between: the
// model quoted an older state of the file, or from memory. Lines or pairs of lines that the file has only once (anchors) identify the
// block. There is no match without them, nor when a quoted line that the block lacks is elsewhere, which may be the place that was meant.
// Merge then decides what the change may touch. Quotations of over 2,000 lines are not tried, as they would use up the budget.
func similarBlock(q *query) []place {
	n := len(q.lines)
	if n < 2 || n > 2000 {
		return nil
	}
	quoted, have := keys(q.lines), q.src.keys()
	where := make(map[string][]int, n) // the file's lines that were quoted, those of each key
	for _, k := range quoted {
		where[k] = nil
	}
	for i, k := range have {
		if list, ok := where[k]; ok && k != "" {
			where[k] = append(list, i)
		}
	}
	anchors := q.anchors(quoted, have, where)
	if len(anchors) == 0 {
		return nil
	}
	// slack is how many lines may have been added or removed before the first and behind the last anchor.
	slack := max(3, n/2)
	first, last := anchors[0], anchors[len(anchors)-1]
	lo := max(0, first.file-first.quote-slack)
	hi := min(len(have), last.file+(n-1-last.quote)+slack+1)
	if hi-lo > 3*n+2*slack || !q.spend(n*(hi-lo)*4) {
		return nil
	}
	// Only the lines around the anchors are compared loosely.
	window := make([]string, hi-lo)
	for i := range window {
		window[i] = q.src.line(lo + i)
	}
	pair, same := pairLines(q.lines, window)
	top, bottom, found, all := -1, -1, 0, 0
	for k, o := range pair {
		weight := min(len(quoted[k]), 40)
		all += weight
		if o < 0 {
			continue
		}
		if top < 0 {
			top = o
		}
		if bottom = o; same[k] {
			found += weight
		}
	}
	// At least half of the quotation, by weight, must be there as quoted.
	if top < 0 || 2*found < all {
		return nil
	}
	// A quoted line that is not in the block as quoted, but elsewhere in the file: the passage may be meant that is there.
	for k := range pair {
		if same[k] || !worded(quoted[k]) {
			continue
		}
		for _, i := range where[quoted[k]] {
			// A short line is in many places; beside the block it is the quoted one, in another order.
			near := i >= lo+top-2 && i <= lo+bottom+2
			if (near || len(quoted[k]) >= telling) && (i < lo+top || i > lo+bottom) {
				return nil
			}
		}
	}
	// A quoted line that is not beside a line that was quoted beside it may as well be the one of the same words further on.
	beside := func(k, step int) bool {
		return k+step >= 0 && k+step < n && same[k+step] && quoted[k+step] != "" && pair[k+step] == pair[k]+step
	}
	for k := range pair {
		if same[k] && len(quoted[k]) >= telling && len(where[quoted[k]]) > 1 && !beside(k, -1) && !beside(k, 1) && slices.Index(quoted, quoted[k]) == k {
			for _, i := range where[quoted[k]] {
				if i != lo+pair[k] && i >= lo && i < hi && slices.Index(quoted[k+1:], quoted[k]) < 0 {
					return nil
				}
			}
		}
	}
	if q.ends(top+lo, bottom+lo, pair, window) {
		return nil
	}
	if !q.distinct(quoted, have, pair, lo, lo+top, lo+bottom) {
		return nil
	}
	return []place{q.block(lo+top, bottom-top+1)}
}

// distinct reports whether lines from to to can have become the quotation by clearly fewer changes than any other block of the file: less
// than half as many. Otherwise the file has two blocks of which either may be the one that was quoted in an older state. pair gives the
// lines that the quoted ones are, counted from line lo.
func (q *query) distinct(quoted, have []string, pair []int, lo, from, to int) bool {
	if !q.spend(len(quoted) * len(have) / 2) {
		return false
	}
	here := q.changes(quoted, have, from, to+1, -1, -1)
	other := min(q.changes(quoted, have, 0, from, -1, -1), q.changes(quoted, have, to+1, len(have), -1, -1))
	// The block may reach over two blocks, with its first line in one and its last line in the other: each of the two lines is then in both.
	first, last := slices.IndexFunc(quoted, worded), len(quoted)-1
	for last > first && !worded(quoted[last]) {
		last--
	}
	between := false // lines that were not quoted
	for i := from; i <= to; i++ {
		between = between || worded(have[i]) && !slices.Contains(pair, i-lo)
	}
	for _, k := range [...]int{first, last} {
		if k < 0 || pair[k] < 0 {
			continue
		}
		most := here + 1
		if at := lo + pair[k]; between && (slices.Contains(have[from:at], quoted[k]) || slices.Contains(have[at+1:to+1], quoted[k])) {
			most = 2*here + 1.5
		}
		if q.changes(quoted, have, from, to+1, k, lo+pair[k]) <= most {
			return false
		}
	}
	nothing := 0.0 // the changes to a block that has no line with words of the quotation: it is no rival
	for _, line := range quoted {
		if worded(line) {
			nothing += missingLine(line)
		}
	}
	// A place that has a good part of the quotation may be the one that was meant, edited more than the one that is nearer.
	if other < 0.7*nothing && other <= 3.5*here+1.2 {
		return false
	}
	return other > here+1 && (other > 2*here+1.5 || other >= nothing)
}

// missingLine is what a quoted line that a block lacks counts as: one change, and more the longer it is.
func missingLine(line string) float64 { return 1 + float64(min(len(line), 40))/40 }

// changes is the least number of changes by which the quotation became lines of the file among those from lo to hi (half-open), wherever
// it begins and ends there: a line reworded is one, a run of lines put in is one, a line left out is one and more the longer it is, since
// by chance the file would have it in the other place. It is an alignment by dynamic programming with affine gaps. With sure not -1,
// quoted line sure must be found, and in another line than but.
func (q *query) changes(quoted, have []string, lo, hi, sure, but int) float64 {
	const never = 1e6
	const perLine = 0.05 // of lines put in: twenty are as unlikely as one more change
	// For each number of quoted lines that are dealt with, at the current line of the file: the cost when the last quoted line was found
	// there or before (found), and when lines of the file have been put in behind it (put).
	n := len(quoted)
	found, put := make([]float64, n+1), make([]float64, n+1)
	missing := make([]float64, n+1) // cost of leaving out the first k lines
	for k, line := range quoted {
		missing[k+1] = missing[k]
		if line != "" {
			missing[k+1] += missingLine(line)
		}
		if k == sure {
			missing[k+1] += never
		}
		found[k+1], put[k+1] = missing[k+1], never
	}
	best := missing[n]
	for i := lo; i < hi; i++ {
		line, deep := have[i], indent(q.src.line(i))
		put[0] = 0 // it may begin at any line
		for k := n - 1; k >= 0; k-- {
			cost := never
			switch near := nearness(line, quoted[k]); {
			case k == sure && i == but:
			case near == 1 && (line == "" || deep == indent(q.lines[k])):
				cost = 0
			case near == 1:
				cost = 0.1
			case near >= alike:
				cost = 1
			}
			is := min(found[k], put[k]) + cost // this line of the file is quoted line k
			put[k+1] = min(put[k+1]+perLine, found[k+1]+1, missing[k+1])
			found[k+1] = is
		}
		for k := range n { // quoted line k is left out
			found[k+1] = min(found[k+1], found[k]+missing[k+1]-missing[k])
		}
		best = min(best, found[n])
	}
	return best
}

// nearness of two lines is a quick lower bound of their likeness: the share of the common beginning and end. It is high when one word was
// changed, added or left out, and cheap enough to compare a whole file.
func nearness(a, b string) float64 {
	if a == b {
		return 1
	}
	long, short := max(len(a), len(b)), min(len(a), len(b))
	if float64(short) < alike*float64(long) {
		return 0
	}
	n := 0
	for n < short && a[n] == b[n] {
		n++
	}
	m := 0
	for m < short-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return float64(n+m) / float64(long)
}

// ends reports whether a block could as well end one line further (or begin one before): the next line is equal to its last one, as with
// closing brackets, and the last one is not indented as quoted. A block that is one bracket too short would leave the other in the file.
func (q *query) ends(top, bottom int, pair []int, window []string) bool {
	first, last := 0, len(pair)-1
	for last > 0 && pair[last] < 0 {
		last--
	}
	for first < last && pair[first] < 0 {
		first++
	}
	again := func(at, step, k int) bool {
		if q.lines[k] == window[pair[k]] {
			return false
		}
		for at += step; at >= 0 && at < q.src.count(); at += step {
			if line := q.src.line(at); trim(line) != "" {
				return key(line) == key(q.lines[k])
			}
		}
		return false
	}
	return again(bottom, 1, last) || again(top, -1, first)
}

// anchor is a quoted line and the only line of the file that it can be, both 0-based.
type anchor struct{ quote, file int }

// anchors finds the quoted lines that say where the block is: lines that the quotation and the file have only once, or two adjacent lines
// that they have together only once. It returns none when their order differs or they are too far apart: the quotation is then put
// together from several places. where gives the file's lines of each key.
func (q *query) anchors(quoted, have []string, where map[string][]int) []anchor {
	times := make(map[string]int, len(quoted))
	for _, k := range quoted {
		times[k]++
	}
	pairs := map[[2]string]int{} // how often two lines are together: quoted
	for k := range len(quoted) - 1 {
		pairs[[2]string{quoted[k], quoted[k+1]}]++
	}
	var out []anchor
	add := func(a anchor) {
		if len(out) == 0 || out[len(out)-1] != a {
			out = append(out, a)
		}
	}
	for k, line := range quoted {
		if list := where[line]; len(list) == 1 && times[line] == 1 && len(line) >= telling {
			add(anchor{k, list[0]})
			continue
		}
		if k+1 == len(quoted) || pairs[[2]string{line, quoted[k+1]}] > 1 || len(line)+len(quoted[k+1]) < telling+4 || line == "" || quoted[k+1] == "" {
			continue
		}
		at, n := -1, 0
		for _, i := range where[line] {
			if i+1 < len(have) && have[i+1] == quoted[k+1] {
				at = i
				n++
			}
		}
		if n == 1 {
			add(anchor{k, at})
		}
	}
	// The gap between two anchors in the file may be at most twice that in the quotation, and some lines.
	for i := 1; i < len(out); i++ {
		a, b := out[i-1], out[i]
		if gap := b.file - a.file; gap <= 0 || gap > 2*(b.quote-a.quote)+max(3, len(quoted)/2) {
			return nil
		}
	}
	return out
}
