package replace

import "slices"

const alike = 0.65 // least similarity of the middle lines, on average; OpenCode's figure

// blockAnchor proposes the block that begins and ends like the quoted one (three lines or more), is about as
// long, and is most similar between. From each first line the nearest last line counts, at least two lines on.
// Blocks that are equally similar are all proposed.
func blockAnchor(q *query) []place {
	n := len(q.lines)
	if n < 3 {
		return nil
	}
	q.number()
	slack := max(1, n/4)
	first, last := q.quotes[0], q.quotes[n-1]
	var blocks []place
	next := -1 // the nearest line ≥ i+2 like the last; recomputed when i passes it
	for i := range q.ids {
		if q.ids[i] != first {
			continue
		}
		if next < i+2 {
			for next = i + 2; next < len(q.ids) && q.ids[next] != last; next++ {
			}
		}
		if next >= len(q.ids) {
			break
		}
		if size := next - i + 1; size >= n-slack && size <= n+slack {
			if b := q.block(i, size); !q.elsewhere(b) {
				blocks = append(blocks, b)
			}
		}
	}
	best := alike
	var out []place
	for _, b := range blocks {
		score, ok := q.similarity(b, best, len(blocks) == 1)
		switch {
		case !ok:
			return nil
		case score < best-1e-9:
		case score > best+1e-9:
			best, out = score, append(out[:0], b)
		default:
			out = append(out, b)
		}
		if len(out) > mostPlaces && best >= 1-1e-9 {
			break
		}
	}
	return out
}

const telling = 16 // bytes from which a line says which block it belongs to

// elsewhere says that a telling middle line of the quotation does not stand in the block but, exactly so, in
// another place: then that is the place that was meant, and the block only looks like it.
func (q *query) elsewhere(b place) bool {
	if q.counts == nil {
		q.counts = make([]int32, len(q.quotes)) // by number, so longer than needed
		for _, id := range q.ids {
			if id >= 0 {
				q.counts[id]++
			}
		}
	}
	for k := 1; k < len(q.quotes)-1; k++ {
		id := q.quotes[k]
		if q.counts[id] == 0 || k < b.n && q.ids[b.line+k] == id || len(trim(q.lines[k])) < telling {
			continue
		}
		if !q.spend(b.n/8 + 1) {
			return false // the stage finds nothing any more
		}
		if !slices.Contains(q.ids[b.line:b.line+b.n], id) {
			return true
		}
	}
	return false
}

// similarity is the average over the middle lines, line by line from the top, stopping early when it cannot
// reach need. Two blank lines count nothing, as in OpenCode. ok is false when the budget is spent.
func (q *query) similarity(b place, need float64, single bool) (score float64, ok bool) {
	lines := min(len(q.lines), b.n) - 2
	if !q.spend(lines) {
		return 0, false
	}
	sum := 0.0
	for k := 1; k <= lines; k++ {
		if (sum+float64(lines-k+1))/float64(lines) < need-1e-9 {
			return 0, true
		}
		have, want := q.src.line(b.line+k), q.lines[k]
		if q.ids[b.line+k] == q.quotes[k] {
			if trim(want) != "" {
				sum++
			}
		} else {
			have, want = trim(have), trim(want)
			longest := max(runeLen(have), runeLen(want))
			cost := steps(have, want)
			if !q.spend(cost) {
				return 0, false
			}
			sum += 1 - float64(distance(have, want))/float64(longest)
		}
		if single && sum/float64(lines) >= alike {
			break // nobody to compare with
		}
	}
	return sum / float64(lines), true
}
