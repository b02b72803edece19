package replace

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// work is how many word steps (a few nanoseconds each) the loose stages of one call may take together, about 30 ms. A stage that would
// need more finds nothing, because a decision on half of the evidence is worse than a refusal.
const work = 8 << 20

// mostPlaces bounds what one stage proposes: enough to know that it is ambiguous and to name some lines. A file of a
// million equal lines would otherwise fill memory with places.
const mostPlaces = 4096

// query is one call's text and quotation, with what several stages need worked out once. It is used by one goroutine.
type query struct {
	src       *source
	old       string   // LF
	lines     []string // old's lines; an empty last one (old ends in a newline) is not counted
	ended     bool     // old ends in a newline
	undecided string   // the stage that found several places
	spent     int      // word steps so far, see work
	quotes    []int32  // old's lines as numbers: equal after trimming ⇔ equal number; nil before number
	ids       []int32  // the text's lines likewise, -1 when old has no such line
	literals  Literals // of the text; nil where they are not known
}

// newQuery is cheap: what only some stages need is made on first use. old has LF endings.
func newQuery(text, old string) *query {
	q := &query{src: newSource(text), old: old, lines: strings.Split(old, "\n")}
	// A quotation that ends in a newline means whole lines; ended remembers it for fit.
	if n := len(q.lines); n > 1 && q.lines[n-1] == "" {
		q.lines, q.ended = q.lines[:n-1], true
	}
	return q
}

// spend takes n steps from the budget and reports whether it covers them. A stage asks before the work, so that the stages
// together stay bounded whatever the text is.
func (q *query) spend(n int) bool {
	q.spent += n
	return q.spent <= work
}

// blank says that old is white space only: it must not match empty text.
func (q *query) blank() bool { return trim(q.old) == "" }

// number gives equal numbers to lines that are equal after trimming, so that looking for many of them costs
// one comparison of integers a line.
func (q *query) number() {
	if q.quotes != nil {
		return
	}
	known := make(map[string]int32, len(q.lines))
	var lengths [64]bool // of quoted lines, modulo 64: most lines of the text are told apart without hashing
	for _, line := range q.lines {
		t := trim(line)
		id, ok := known[t]
		if !ok {
			id = int32(len(known))
			known[t] = id
			lengths[len(t)%64] = true
		}
		q.quotes = append(q.quotes, id)
	}
	q.ids = make([]int32, q.src.count())
	for i := range q.ids {
		q.ids[i] = -1
		t := trim(q.src.line(i))
		if !lengths[len(t)%64] {
			continue
		}
		if id, ok := known[t]; ok {
			q.ids[i] = id
		}
	}
}

// block is the place of n whole lines from line i.
func (q *query) block(i, n int) place {
	return place{start: q.src.starts[i], end: q.src.lineEnd(i + n - 1), line: i, n: n}
}

// source is a text seen with LF endings, because models see and quote no CR, with the way back to its own bytes. Offsets
// are bytes of text unless they are called raw.
type source struct {
	raw    string
	text   string // raw with every CRLF as LF
	crs    []int  // offsets in text of the newlines that are CRLF in raw, ascending
	starts []int  // offset in text of each line

	keysOnce []string // see keys
}

// newSource records where the carriage returns were that it removes, so that spans lead back to the bytes of the file.
func newSource(raw string) *source {
	s := &source{raw: raw, text: raw}
	// A text without CRLF is used as it is, without a copy.
	if n := strings.Count(raw, "\r\n"); n > 0 {
		s.crs = make([]int, 0, n)
		var b strings.Builder
		b.Grow(len(raw) - n)
		for rest := raw; ; {
			i := strings.Index(rest, "\r\n")
			if i < 0 {
				b.WriteString(rest)
				break
			}
			b.WriteString(rest[:i])
			s.crs = append(s.crs, b.Len())
			b.WriteByte('\n')
			rest = rest[i+2:]
		}
		s.text = b.String()
	}
	return s
}

// split finds the lines, once; a text without a final newline and one with it have the same lines but for an
// empty last one.
func (s *source) split() {
	if s.starts != nil {
		return
	}
	s.starts = make([]int, 1, strings.Count(s.text, "\n")+1)
	for i := 0; ; {
		j := strings.IndexByte(s.text[i:], '\n')
		if j < 0 {
			return
		}
		i += j + 1
		s.starts = append(s.starts, i)
	}
}

// count is how many lines there are; a text that ends in a newline has an empty last one.
func (s *source) count() int {
	s.split()
	return len(s.starts)
}

// lineEnd is the offset of line i's newline, or the end of the text. As for line, split or count was called before.
func (s *source) lineEnd(i int) int {
	if i+1 < len(s.starts) {
		return s.starts[i+1] - 1
	}
	return len(s.text)
}

// line is the 0-based line i without its newline.
func (s *source) line(i int) string { return s.text[s.starts[i]:s.lineEnd(i)] }

// lineAt is the 0-based line that holds the offset. A newline belongs to the line that it ends, and the offset behind the last
// character is on the last line.
func (s *source) lineAt(offset int) int {
	s.split()
	return sort.SearchInts(s.starts, offset+1) - 1
}

// rawOffset turns an offset of text into one of raw; a newline's offset becomes that of its CR.
func (s *source) rawOffset(offset int) int { return offset + sort.SearchInts(s.crs, offset) }

// span turns a place into offsets and lines of raw.
func (s *source) span(start, end int) Span {
	last := end
	if last > start && s.text[last-1] == '\n' {
		last-- // the line a newline ends, not the one after
	}
	return Span{Start: s.rawOffset(start), End: s.rawOffset(end), StartLine: s.lineAt(start) + 1, EndLine: s.lineAt(last) + 1}
}

// toLF turns CRLF into LF; a CR alone is a character like others.
func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// isSpace is Unicode's white space and the byte order mark, which ECMAScript trims too.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

// trim, trimLeft and trimRight cut isSpace off. They are strings.TrimFunc with a fast path for ASCII, because the stages trim
// every line of a file.
func trim(s string) string { return trimRight(trimLeft(s)) }

// trimLeft is strings.TrimLeftFunc for isSpace with a fast path for ASCII: every stage
// calls it for every line.
func trimLeft(s string) string {
	for len(s) > 0 {
		if c := s[0]; c < utf8.RuneSelf {
			if c != ' ' && (c < '\t' || c > '\r') {
				return s
			}
			s = s[1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		if !isSpace(r) {
			return s
		}
		s = s[n:]
	}
	return s
}

// trimRight is trimLeft for the end.
func trimRight(s string) string {
	for len(s) > 0 {
		if c := s[len(s)-1]; c < utf8.RuneSelf {
			if c != ' ' && (c < '\t' || c > '\r') {
				return s
			}
			s = s[:len(s)-1]
			continue
		}
		r, n := utf8.DecodeLastRuneInString(s)
		if !isSpace(r) {
			return s
		}
		s = s[:len(s)-n]
	}
	return s
}

// indent is the white space a line begins with.
func indent(line string) string { return line[:len(line)-len(trimLeft(line))] }

// runeLen is a length in code points.
func runeLen(s string) int { return utf8.RuneCountInString(s) }

// Fold replaces typographic quotes, dashes, ellipses and blanks by the ASCII ones that models and editors exchange them
// for. Two texts whose folds are equal are taken for the same. It is for comparing, never for writing.
func Fold(s string) string {
	if isASCII(s) {
		return s
	}
	out, _ := foldMapped(s)
	return out
}

// foldMapped is Fold with the offset in s of each byte of the result, and of its end: a match in the folded text leads back to
// the bytes of the file, which one character may have more of.
func foldMapped(s string) (folded string, at []int) {
	var b strings.Builder
	at = make([]int, 0, len(s)+1)
	for i, r := range s {
		n := b.Len()
		switch {
		case r >= '‘' && r <= '‛':
			b.WriteByte('\'')
		case r >= '“' && r <= '‟':
			b.WriteByte('"')
		case r >= '‐' && r <= '―' || r == '−':
			b.WriteByte('-')
		case r == '…':
			b.WriteString("...")
		case r >= utf8.RuneSelf && unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[i : i+size])
		}
		for ; n < b.Len(); n++ {
			at = append(at, i)
		}
	}
	return b.String(), append(at, len(s))
}
