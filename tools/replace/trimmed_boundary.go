package replace

import (
	"strings"
	"unicode"
)

// trimmedBoundary proposes the quotation without the white space around it, then runs of as many lines that
// are the quotation when trimmed as a whole.
func trimmedBoundary(q *query) []place {
	want := trim(q.old)
	if want == q.old || want == "" {
		return nil
	}
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
		// grow over the blank lines around, as many as were quoted before and after
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

func isWord(r rune) bool {
	return r == '_' || r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
