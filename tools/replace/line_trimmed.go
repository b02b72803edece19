package replace

// lineTrimmed proposes runs of lines equal to the quoted ones after trimming each.
func lineTrimmed(q *query) []place {
	q.number()
	var out []place
	for _, i := range runs(q.ids, q.quotes) {
		p := q.block(i, len(q.lines))
		if q.blank() && isEmpty(q.src.text[p.start:p.end]) {
			continue
		}
		if out = append(out, p); len(out) == mostPlaces {
			break
		}
	}
	return out
}

// isEmpty says there is nothing on these lines, not even white space.
func isEmpty(s string) bool {
	for i := range len(s) {
		if s[i] != '\n' {
			return false
		}
	}
	return true
}

// runs are the starts of want in ids, overlapping ones too, in linear time (Knuth, Morris, Pratt).
func runs(ids, want []int32) []int {
	if len(want) == 0 || len(want) > len(ids) {
		return nil
	}
	border := make([]int, len(want)+1)
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i] != want[k] {
			k = border[k]
		}
		if want[i] == want[k] {
			k++
		}
		border[i+1] = k
	}
	var out []int
	for i, k := 0, 0; i < len(ids); i++ {
		for k > 0 && ids[i] != want[k] {
			k = border[k]
		}
		if ids[i] == want[k] {
			k++
		}
		if k == len(want) {
			out = append(out, i+1-k)
			k = border[k]
		}
	}
	return out
}
