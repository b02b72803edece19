// Package opencode is an oracle for tests and benchmarks of package replace, and nothing that the product runs.
package opencode

import (
	"math"
	"regexp"
	"strings"
	"unicode"
)

// Apply is the plainest rendering of what OpenCode 1.18 does with an edit, from the description of its
// behaviour: every stage proposes texts; the first that occurs, once or with all, is replaced. Its oddities are included:
// package replace is compared with it, and the table in that package's comment says where the two differ.
// refused is "" or the kind of the refusal.
func Apply(text, old, new string, all bool) (changed, refused string) {
	if old == new {
		return "", "identical"
	}
	if old == "" {
		return "", "empty_old"
	}
	if strings.Contains(text, "\r\n") {
		old = strings.ReplaceAll(toLF(old), "\n", "\r\n")
		new = strings.ReplaceAll(toLF(new), "\n", "\r\n")
	} else {
		old, new = toLF(old), toLF(new)
	}
	// The stages in OpenCode's order. ocSimple comes first and last.
	kind := "not_found"
	for _, candidates := range []func(string, string) []string{ocSimple, ocLines, ocAnchor, ocSpace, ocIndent, ocEscape, ocBoundary, ocContext, ocSimple} {
		for _, c := range candidates(text, old) {
			i := strings.Index(text, c)
			if i < 0 {
				continue
			}
			kind = "multiple"
			n, m := strings.Count(old, "\n")+1, strings.Count(c, "\n")+1
			lc, lo := len(trim(c)), len(trim(old))
			if m >= max(n+3, 2*n) || n > 1 && lc > max(lo+500, 4*lo) {
				return "", "oversize"
			}
			if all {
				return strings.ReplaceAll(text, c, new), ""
			}
			if strings.LastIndex(text, c) == i {
				return text[:i] + new + text[i+len(c):], ""
			}
		}
	}
	return "", kind
}

// ocSimple proposes the quotation itself.
func ocSimple(_, old string) []string { return []string{old} }

// popped is a text's lines without the empty one after a final newline.
func popped(s string) []string {
	l := strings.Split(s, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

// ocBlocks are the runs of n lines that ok accepts.
func ocBlocks(text string, n int, ok func([]string) bool) (out []string) {
	lines := strings.Split(text, "\n")
	for i := 0; i+n <= len(lines); i++ {
		if ok(lines[i : i+n]) {
			out = append(out, strings.Join(lines[i:i+n], "\n"))
		}
	}
	return out
}

// ocLines compares lines without the white space around them (OpenCode's
// LineTrimmedReplacer).
func ocLines(text, old string) []string {
	want := popped(old)
	return ocBlocks(text, len(want), func(have []string) bool {
		for k := range want {
			if trim(have[k]) != trim(want[k]) {
				return false
			}
		}
		return true
	})
}

// ocPairs finds blocks whose first and last line agree with the quotation's; each judges
// what is between.
func ocPairs(text, old string, each func(i, j int, lines, want []string) (keep bool)) (out []string) {
	// Three lines at least: two anchors and something between.
	if strings.Count(old, "\n") < 2 {
		return nil
	}
	lines, want := strings.Split(text, "\n"), popped(old)
	for i := range lines {
		if trim(lines[i]) != trim(want[0]) {
			continue
		}
		for j := i + 2; j < len(lines); j++ {
			if trim(lines[j]) == trim(want[len(want)-1]) {
				if each(i, j, lines, want) {
					out = append(out, strings.Join(lines[i:j+1], "\n"))
				}
				break
			}
		}
	}
	return out
}

// ocAnchor takes the block whose inner lines are most alike (BlockAnchorReplacer, with its
// threshold).
func ocAnchor(text, old string) []string {
	type block struct {
		text  string
		score float64
	}
	var blocks []block
	ocPairs(text, old, func(i, j int, lines, want []string) bool {
		size, n := j-i+1, len(want)
		if math.Abs(float64(size-n)) > math.Max(1, math.Floor(float64(n)/4)) {
			return false
		}
		score, check := 0.0, min(n, size)-2
		for k := 1; k <= check; k++ {
			a, b := []rune(trim(lines[i+k])), []rune(trim(want[k]))
			// Two empty lines add nothing.
			if m := max(len(a), len(b)); m > 0 {
				score += 1 - float64(slowDistance(a, b))/float64(m)
			}
		}
		if check > 0 {
			score /= float64(check)
		} else {
			score = 1
		}
		blocks = append(blocks, block{strings.Join(lines[i:j+1], "\n"), score})
		return false
	})
	// The first of equals wins.
	best := block{score: -1}
	for _, b := range blocks {
		if b.score > best.score {
			best = b
		}
	}
	if best.score >= 0.65 {
		return []string{best.text}
	}
	return nil
}

// ocSpace treats any run of white space as one blank (WhitespaceNormalizedReplacer).
func ocSpace(text, old string) (out []string) {
	squash := func(s string) string { return strings.Join(strings.FieldsFunc(s, isSpace), " ") }
	want := squash(old)
	words := strings.FieldsFunc(old, isSpace)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	re := regexp.MustCompile(strings.Join(words, `[\s\v\x{85}\x{feff}\p{Z}]+`))
	for _, line := range strings.Split(text, "\n") {
		if squash(line) == want {
			out = append(out, line)
		} else if strings.Contains(squash(line), want) {
			out = append(out, re.FindString(line))
		}
	}
	if n := strings.Count(old, "\n") + 1; n > 1 {
		out = append(out, ocBlocks(text, n, func(b []string) bool { return squash(strings.Join(b, "\n")) == want })...)
	}
	return out
}

// ocIndent ignores the indentation that all lines share (IndentationFlexibleReplacer).
func ocIndent(text, old string) []string {
	dedent := func(lines []string) string {
		cut := common0(lines)
		out := make([]string, len(lines))
		for i, l := range lines {
			if out[i] = l; trim(l) != "" {
				out[i] = l[cut:]
			}
		}
		return strings.Join(out, "\n")
	}
	want := strings.Split(old, "\n")
	return ocBlocks(text, len(want), func(b []string) bool { return dedent(b) == dedent(want) })
}

// ocEscape reads \n, \t and the like in the quotation as the characters they stand for
// (EscapeNormalizedReplacer).
func ocEscape(text, old string) (out []string) {
	want := unescape(old)
	if strings.Contains(text, want) {
		out = append(out, want)
	}
	n := strings.Count(want, "\n") + 1
	return append(out, ocBlocks(text, n, func(b []string) bool { return unescape(strings.Join(b, "\n")) == want })...)
}

// ocBoundary ignores white space around the quotation (TrimmedBoundaryReplacer).
func ocBoundary(text, old string) (out []string) {
	want := trim(old)
	if want == old {
		return nil
	}
	if strings.Contains(text, want) {
		out = append(out, want)
	}
	n := strings.Count(old, "\n") + 1
	return append(out, ocBlocks(text, n, func(b []string) bool { return trim(strings.Join(b, "\n")) == want })...)
}

// ocContext wants the anchors and half of the lines between to agree
// (ContextAwareReplacer).
func ocContext(text, old string) []string {
	return ocPairs(text, old, func(i, j int, lines, want []string) bool {
		if j-i+1 != len(want) {
			return false
		}
		same, total := 0, 0
		for k := 1; k < len(want)-1; k++ {
			a, b := trim(lines[i+k]), trim(want[k])
			if a != "" || b != "" {
				total++
				if a == b {
					same++
				}
			}
		}
		return total == 0 || float64(same)/float64(total) >= 0.5
	})
}

// slowDistance is the Levenshtein distance, written plainly: it is also the oracle for
// replace's bounded one.
func slowDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diag := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// toLF turns CRLF into LF.
func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// isSpace is that of package replace, so that the comparison is not about kinds of white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

// trim cuts isSpace off both ends.
func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// common0 is the length in bytes of the least indentation of the lines that are not blank.
func common0(lines []string) int {
	least := -1
	for _, line := range lines {
		if in := len(line) - len(strings.TrimLeftFunc(line, isSpace)); in < len(line) && (least < 0 || in < least) {
			least = in
		}
	}
	return max(least, 0)
}

// unescape decodes the escapes that EscapeNormalizedReplacer knows; others stay.
func unescape(s string) string {
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
