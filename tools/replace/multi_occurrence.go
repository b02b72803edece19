package replace

import "strings"

// multiOccurrence proposes every exact occurrence. As simple has already decided those, it never decides;
// it keeps its place in the order because the order is what people know.
func multiOccurrence(q *query) []place { return occurrences(q.src.text, q.old) }

// occurrences are the places where exactly this text stands, not overlapping, from the start.
func occurrences(text, want string) []place {
	var out []place
	for i := 0; want != ""; {
		j := strings.Index(text[i:], want)
		if j < 0 {
			break
		}
		out = append(out, place{start: i + j, end: i + j + len(want)})
		i += j + len(want)
	}
	return out
}
