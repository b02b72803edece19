package diff

import "strings"

// slide moves pure insertions and deletions to the place where a person would cut, and joins edits that touch afterwards. A block that
// repeats the lines before or after it can be in several places: a new function may seem to begin with the closing bracket of the one
// before. The best place begins after a blank line or at the smallest indentation; of equals the last is taken, as in Git.
func slide(a, b []string, edits []Edit) []Edit {
	out := edits[:0]
	for k, e := range edits {
		end := len(a) // first old line of the next edit
		if k+1 < len(edits) {
			end = edits[k+1].A0
		}
		start := 0 // old line after the edit before
		if len(out) > 0 {
			start = out[len(out)-1].A1
		}
		switch {
		// An insertion slides in the new text, a deletion in the old one; both sides move by as much, as the lines
		// passed are common.
		case e.A0 == e.A1:
			d := shift(b, e.B0, e.B1, e.A0-start, end-e.A1)
			e = Edit{e.A0 + d, e.A1 + d, e.B0 + d, e.B1 + d}
		case e.B0 == e.B1:
			d := shift(a, e.A0, e.A1, e.A0-start, end-e.A1)
			e = Edit{e.A0 + d, e.A1 + d, e.B0 + d, e.B1 + d}
		}
		if n := len(out); n > 0 && out[n-1].A1 == e.A0 && out[n-1].B1 == e.B0 {
			out[n-1].A1, out[n-1].B1 = e.A1, e.B1
			continue
		}
		out = append(out, e)
	}
	return out
}

// shift returns by how many lines to move the block l[i:j], negative for towards the beginning: at most up lines back and down lines
// on, the unchanged lines around it. A move by one line is correct only when the line that leaves the block at one end equals the one
// that enters at the other.
func shift(l []string, i, j, up, down int) int {
	lo, hi := 0, 0
	// Each place costs two ratings, and a block of equal lines, such as blanks, could move through the whole file.
	const most = 100 // lines in each direction
	for -lo < min(up, most) && l[i+lo-1] == l[j+lo-1] {
		lo--
	}
	for hi < min(down, most) && j+hi < len(l) && l[i+hi] == l[j+hi] {
		hi++
	}
	best, score := 0, 0
	for d := lo; d <= hi; d++ {
		if s := cut(l, i+d, j+d); d == lo || s >= score {
			best, score = d, s
		}
	}
	return best
}

// cut rates the two borders of a block; higher is better. The weights were chosen for the order that they give: an end of the text or a
// blank line is the best border, less indentation is better, a border before a closing bracket is bad. Git's indent heuristic
// (diff.indentHeuristic) has the same aim.
func cut(l []string, i, j int) int {
	s := 0
	for _, at := range [2]int{i, j} { // the borders are before line i and before line j
		switch {
		case at == 0 || at == len(l):
			s += 60
		case blank(l[at-1]):
			s += 50
		}
		if at < len(l) && !blank(l[at]) {
			s -= 2 * min(indent(l[at]), 20)
		}
		if at < len(l) && closes(l[at]) {
			s -= 30 // a border before a closing bracket cuts a block in two
		}
	}
	if blank(l[i]) && !blank(l[j-1]) {
		s -= 10 // a block that ends with its blank line reads better than one that begins with it
	}
	return s
}

// blank reports a line of white space, its line ending included.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// closes reports a line that begins with a closing bracket, or with the end of Lua, Ruby and shell.
func closes(s string) bool {
	s = strings.TrimLeft(s, " \t")
	return s != "" && strings.IndexByte("})]", s[0]) >= 0 || strings.HasPrefix(s, "end")
}

// indent is a line's indentation in columns, with 4 for a tab: it is only compared, so the real width of a tab does not matter.
func indent(s string) int {
	n := 0
	for _, c := range s {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}
