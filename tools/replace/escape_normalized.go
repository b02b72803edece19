package replace

import "strings"

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

// bounded is occurrences up to a number.
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

// unescapeLine decodes one line of a block; a backslash before the newline goes with it, but for the last line.
func unescapeLine(line string, last bool) string {
	if !strings.Contains(line, `\`) {
		return line
	}
	if last {
		return unescape(line)
	}
	return strings.TrimSuffix(unescape(line+"\n"), "\n")
}

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
