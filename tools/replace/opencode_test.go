package replace

import (
	"errors"

	"github.com/pillion-dev/pillion/tools/replace/opencode"
)

func openCode(text, old, new string, all bool) (changed, refused string) {
	return opencode.Apply(text, old, new, all)
}

// slowDistance is the Levenshtein distance by the book.
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

// outcome is the new text, or the kind of the refusal in angle brackets.
func outcome(text, kind string) string {
	if kind != "" {
		return "<" + kind + ">"
	}
	return text
}

func ours(text, old, new string, all bool) (Result, string) {
	r, err := Apply(text, old, new, all)
	var e *Error
	if errors.As(err, &e) {
		return r, outcome("", e.Kind)
	}
	return r, r.Text
}
