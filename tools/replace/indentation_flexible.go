package replace

// indentationFlexible proposes the runs of lines that are equal once the common indentation is taken off both,
// trailing white space aside. All of them are line_trimmed's too: its use is to tell those apart, so it proposes
// only the closest: with the very indentation quoted if there is such a place.
func indentationFlexible(q *query) []place {
	q.number()
	quoted := common0(q.lines)
	var same, shifted []place
	for _, i := range runs(q.ids, q.quotes) {
		p := q.block(i, len(q.lines))
		if q.blank() && isEmpty(q.src.text[p.start:p.end]) {
			continue
		}
		if !q.spend(len(q.lines)) {
			return nil
		}
		lines := make([]string, p.n)
		for k := range lines {
			lines[k] = q.src.line(i + k)
		}
		cut := common0(lines)
		relative, absolute := true, true
		for k, line := range lines {
			have, want := indent(line), indent(q.lines[k])
			if len(have) == len(line) {
				continue // a blank line's indentation says nothing
			}
			absolute = absolute && have == want
			relative = relative && have[min(cut, len(have)):] == want[min(quoted, len(want)):]
		}
		if absolute {
			same = append(same, p)
		} else if relative {
			shifted = append(shifted, p)
		}
		if len(same)+len(shifted) > mostPlaces {
			break
		}
	}
	if same != nil {
		return same
	}
	return shifted
}

// common0 is the length in bytes of the least indentation of the lines that are not blank.
func common0(lines []string) int {
	least := -1
	for _, line := range lines {
		if in := len(indent(line)); in < len(line) && (least < 0 || in < least) {
			least = in
		}
	}
	return max(least, 0)
}
