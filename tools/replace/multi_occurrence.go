package replace

import "strings"

// multiOccurrence proposes every exact occurrence. As simple has already decided those, it never decides;
// it keeps its place in the order because the order is what people know.
func multiOccurrence(q *query) []place { return bounded(q.src.text, q.old) }

// occurrences are the places where exactly this text stands (and fits, unless nil), not overlapping, from the start.
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
