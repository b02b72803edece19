package replace

import "strings"

// simple proposes the quotation as it is. Overlapping occurrences count: "aa" stands twice in "aaa".
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
