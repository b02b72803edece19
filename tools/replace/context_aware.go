package replace

// contextAware proposes blocks of exactly the quoted number of lines (three or more) that begin and end like the
// quotation and have at least half of the middle lines (blank ones aside) in common, the best of them first and,
// when one is better than all others, alone.
func contextAware(q *query) []place {
	n := len(q.lines)
	if n < 3 {
		return nil
	}
	q.number()
	first, last := q.quotes[0], q.quotes[n-1]
	var out []place
	best, next := 0.5, -1
	for i := 0; i+n <= len(q.ids); i++ {
		if q.ids[i] != first {
			continue
		}
		if next < i+2 {
			for next = i + 2; next < len(q.ids) && q.ids[next] != last; next++ {
			}
		}
		if next != i+n-1 || !q.spend(n) || q.elsewhere(q.block(i, n)) {
			continue
		}
		equal, total := 0, 0
		for k := 1; k < n-1; k++ {
			same := q.ids[i+k] == q.quotes[k]
			if same && trim(q.lines[k]) == "" {
				continue
			}
			total++
			if same {
				equal++
			}
		}
		score := 1.0
		if total > 0 {
			score = float64(equal) / float64(total)
		}
		switch {
		case score > best:
			best, out = score, append(out[:0], q.block(i, n))
		case score == best && len(out) < mostPlaces:
			out = append(out, q.block(i, n))
		}
	}
	return out
}
