package replace

// byLines gives the new lines the indentation of the file's where no one rule leads from the quoted indentation to
// the file's, as when everything was quoted flat: a line that was quoted too stands where the file has it, one
// that replaces a quoted line where that stands, and others as quoted lines near by that are indented like them.
func byLines(old, have, lines []string) []string {
	partner := partners(old, have)
	from := align(old, lines)
	out := make([]string, len(lines))
	for j, line := range lines {
		out[j] = line
		in := indent(line)
		if len(in) == len(line) {
			continue
		}
		if i := from[j]; i >= 0 && partner[i] >= 0 {
			out[j] = indent(have[partner[i]]) + line[len(in):]
			continue
		}
		if i := reference(old, partner, from, j, in); i >= 0 {
			out[j] = indent(have[partner[i]]) + in[len(indent(old[i])):] + line[len(in):]
		}
	}
	return out
}

// partners says for each quoted line which of the file's it stands for, -1 when that is not clear.
func partners(old, have []string) []int {
	out := make([]int, len(old))
	same := func(i, k int) bool { return trim(old[i]) == trim(have[k]) || collapse(old[i]) == collapse(have[k]) }
	for i := range out {
		out[i] = -1
	}
	if len(old) == len(have) {
		for i := range old {
			if same(i, i) {
				out[i] = i
			}
		}
		return out
	}
	top := 0
	for top < min(len(old), len(have)) && same(top, top) {
		out[top] = top
		top++
	}
	for n := 1; n <= min(len(old), len(have))-top && same(len(old)-n, len(have)-n); n++ {
		out[len(old)-n] = len(have) - n
	}
	return out
}

// align says for each new line which quoted line it is, -1 for none: a longest common subsequence of trimmed lines.
func align(old, lines []string) []int {
	from := make([]int, len(lines))
	for j := range from {
		from[j] = -1
	}
	is, was := make([]string, len(lines)), make([]string, len(old))
	for j := range lines {
		is[j] = trim(lines[j])
	}
	for i := range old {
		was[i] = trim(old[i])
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] { // the last brace is the outermost
		from[len(is)-1] = len(was) - 1
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	n, m := len(was), len(is)
	if n*m > 1<<20 { // steps and integers; longer quotations get no more help
		return from
	}
	best := make([]int32, (n+1)*(m+1)) // best[i*(m+1)+j]: of old[i:] and lines[j:]
	at := func(i, j int) *int32 { return &best[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if was[i] == is[j] {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case was[i] == is[j]:
			from[j] = i
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return from
}

// reference is the quoted line whose place tells how new line j is indented, -1 without one: the one it replaces,
// else the nearest that is indented alike, those before it first.
func reference(old []string, partner, from []int, j int, in string) int {
	i0, j0 := -1, -1
	for k := j; k >= 0 && i0 < 0; k-- {
		i0, j0 = from[k], k
	}
	if i0 < 0 {
		j0 = -1
	}
	i1, j1 := -1, len(from)
	for k := j; k < len(from) && i1 < 0; k++ {
		i1, j1 = from[k], k
	}
	if i1 < 0 {
		i1, j1 = len(old), len(from)
	}
	fits := func(i int) bool {
		if i < 0 || i >= len(old) || partner[i] < 0 || trim(old[i]) == "" {
			return false
		}
		was := indent(old[i])
		return len(in) >= len(was) && in[:len(was)] == was
	}
	if i := i0 + j - j0; i1-i0 == j1-j0 && fits(i) {
		return i
	}
	alike := func(i int) bool { return fits(i) && indent(old[i]) == in }
	for _, test := range []func(int) bool{alike, fits} {
		for d := 0; d < len(old); d++ {
			if i := i0 + (i1-i0)/2 - d; test(i) {
				return i
			}
			if i := i0 + (i1-i0)/2 + d; test(i) {
				return i
			}
		}
	}
	return -1
}
