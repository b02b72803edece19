package replace

import (
	"strings"
)

// reindent moves new by the difference between the quoted lines' indentation and the file's. old and have are
// the quoted lines and the file's; new keeps its own line structure. A new text that already stands at the
// file's indentation, unlike the quotation, is left as it is.
func reindent(old, have []string, new string) string {
	was, is := pair(old, have)
	if len(was) == 0 {
		return new
	}
	lines := strings.Split(new, "\n")
	if shallowest(lines) == shallowest(have) && shallowest(old) != shallowest(have) {
		return new
	}
	move := fitting(was, is, lines)
	first := false // the first line has a rule of its own
	if move == nil && len(was) > 1 {
		// A model that starts quoting behind the indentation has only the first line wrong.
		move = fitting(was[1:], is[1:], lines)
		first = move != nil
	}
	if move == nil {
		return strings.Join(byLines(old, have, lines), "\n")
	}
	for i, line := range lines {
		in := indent(line)
		if len(in) == len(line) {
			continue
		}
		if i == 0 && first && in == was[0] {
			lines[i] = is[0] + line[len(in):]
			continue
		}
		lines[i] = move(in) + line[len(in):]
	}
	return strings.Join(lines, "\n")
}

// pair gives the indentations of the lines that correspond: those that say the same, line by line when there are
// as many, else from both ends; the first line's when none does.
func pair(old, have []string) (was, is []string) {
	add := func(o, h string) bool {
		same := trim(o) == trim(h) || collapse(o) == collapse(h)
		if same && trim(o) != "" {
			was, is = append(was, indent(o)), append(is, indent(h))
		}
		return same
	}
	if len(old) == len(have) {
		for i := range old {
			add(old[i], have[i])
		}
	} else {
		n := min(len(old), len(have))
		top := 0
		for top < n && add(old[top], have[top]) {
			top++
		}
		for k := 1; k <= n-top && add(old[len(old)-k], have[len(have)-k]); k++ {
		}
	}
	if len(was) == 0 && trim(old[0]) != "" && trim(have[0]) != "" {
		return []string{indent(old[0])}, []string{indent(have[0])}
	}
	return was, is
}

// shallowest is the shortest indentation of the lines that are not blank, "-" when all are.
func shallowest(lines []string) string {
	least, found := "-", false
	for _, line := range lines {
		if in := indent(line); len(in) < len(line) && (!found || len(in) < len(least)) {
			least, found = in, true
		}
	}
	return least
}

// fitting finds the one rule that turns each was into its is, nil when there is none: the same, a prefix more,
// a prefix less, or other units (tabs for spaces, four for two, from another base). lines are the new
// ones, whose indentation may show the unit.
func fitting(was, is, lines []string) func(string) string {
	all := func(rule func(string) string) bool {
		for i := range was {
			if rule(was[i]) != is[i] {
				return false
			}
		}
		return true
	}
	same := func(in string) string { return in }
	if all(same) {
		return same
	}
	if more, ok := strings.CutSuffix(is[0], was[0]); ok {
		if add := func(in string) string { return more + in }; all(add) {
			return add
		}
	}
	if less, ok := strings.CutSuffix(was[0], is[0]); ok {
		cut := func(in string) string {
			n := 0
			for n < len(in) && n < len(less) && in[n] == less[n] {
				n++
			}
			return in[n:]
		}
		if all(cut) {
			return cut
		}
	}
	if unit := units(was, is, lines); unit != nil && all(unit) {
		return unit
	}
	return nil
}

// units is the linear rule: so many of one character for so many of another, from a base.
func units(was, is, lines []string) func(string) string {
	from, ok1 := only(was)
	to, ok2 := only(is)
	if !ok1 || !ok2 || from == 0 || to == 0 {
		return nil
	}
	lo, hi := 0, 0
	for i := range was {
		if len(was[i]) < len(was[lo]) {
			lo = i
		}
		if len(was[i]) > len(was[hi]) {
			hi = i
		}
	}
	x0, y0 := len(was[lo]), len(is[lo])
	dx, dy := len(was[hi])-x0, len(is[hi])-y0
	if dx == 0 { // one depth only: how much a further one is must be guessed
		dx, dy = step(x0, y0, from, to, lines)
	}
	if dx <= 0 || dy <= 0 || dy > 16*dx || dx > 16*dy { // beyond that it is no unit but chance
		return nil
	}
	return func(in string) string {
		n := 0
		for n < len(in) && in[n] == from {
			n++
		}
		y := y0*dx + (n-x0)*dy // in units of 1/dx
		if y < 0 {
			y = 0
		}
		out := strings.Repeat(string(rune(to)), y/dx)
		if left := y % dx; left != 0 && from == ' ' && to == '\t' {
			out += strings.Repeat(" ", (left+dy-1)/dy) // alignment that is no full tab
		}
		return out + in[n:]
	}
}

// step guesses the unit from one depth, x of one character for y of another: a tab stands for as many spaces as
// divide all the indentations in sight, and for four where that is one or none.
func step(x, y int, from, to byte, lines []string) (dx, dy int) {
	switch {
	case from == ' ' && to == '\t':
		unit := x
		for _, line := range lines {
			if in := indent(line); len(in) < len(line) {
				for n := len(in); n != 0; {
					unit, n = n, unit%n
				}
			}
		}
		if unit < 2 {
			unit = 4
		}
		return unit, 1
	case from == '\t' && to == ' ' && y%x == 0 && y/x <= 4:
		return 1, y / x
	case from == '\t' && to == ' ':
		return 1, 4
	}
	return x, y
}

// only is the one character all the indentations are made of; 0 when they are all empty.
func only(indents []string) (c byte, ok bool) {
	for _, in := range indents {
		for i := range len(in) {
			if c == 0 {
				c = in[i]
			}
			if in[i] != c {
				return 0, false
			}
		}
	}
	return c, true
}

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
