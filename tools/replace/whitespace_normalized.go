package replace

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// whitespaceNormalized proposes what equals the quotation when every run of white space is one blank and the
// ends are trimmed: whole lines, parts of a line, then blocks of as many lines as quoted.
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
			parts = append(parts, place{start: base + at[from], end: base + at[end-1] + 1})
			if !q.spend(len(want)/16 + 1) {
				return nil
			}
			next := bytes.Index(norm[from+1:], sought)
			if next < 0 {
				break
			}
			from += 1 + next
		}
	}
	// OpenCode takes them in the file's order; a line that is the quotation is no worse a match than a part.
	out := q.apartFirst(merge(whole, parts))
	if len(q.lines) > 1 && len(out) == 0 {
		out = q.reflowed(want)
	}
	return out
}

// words gives old's longest word; ok is false when one of its (many) words stands nowhere in the text, and so
// nothing that differs in white space only can.
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

// reflowed are the blocks of as many lines as quoted whose words are the quoted ones, wherever the lines break.
func (q *query) reflowed(want string) []place {
	n := len(q.lines)
	var all strings.Builder // the lines' words, one blank between lines, none for blank lines
	from := make([]int, q.src.count()+1)
	ends := make([]int, q.src.count()+1) // ends[i]: length of all after i lines
	var norm []byte
	for i := range q.src.count() {
		norm, _ = collapseInto(norm[:0], nil, q.src.line(i))
		if len(norm) > 0 && all.Len() > 0 {
			all.WriteByte(' ')
		}
		from[i] = all.Len()
		all.Write(norm)
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

// tight takes the blank lines off the blocks' ends where none are quoted; then blocks that were one another
// shifted over a blank line are the same.
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

// merge puts two lists that are each in the text's order into one.
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

// apart says that a match inside a line does not cut a word where old has white space.
func (q *query) apart(p place) bool {
	text := q.src.text
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

// apartFirst puts the matches that cut a word last; when there are no others there is no match. They still make
// the quotation ambiguous.
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

func collapse(s string) string {
	b, _ := collapseInto(nil, nil, s)
	return string(b)
}

// collapseInto appends s with its ends trimmed and runs of white space as one blank; at gets the offset in s of
// each byte appended, unless nil.
func collapseInto(b []byte, at []int, s string) ([]byte, []int) {
	gap, begin := false, len(b)
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if isSpace(r) {
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
