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
	n := len(lines)
	var out []place
	for i := 0; i+n <= q.src.count() && len(out) < mostPlaces; i++ {
		for k := 0; ; k++ {
			line := q.src.line(i + k)
			if !q.spend(1 + len(line)/64) {
				return nil
			}
			if unescapeLine(line, k == n-1) != lines[k] {
				break
			}
			if k == n-1 {
				out = append(out, q.block(i, n))
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
