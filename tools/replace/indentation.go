package replace

import (
	"slices"
	"strings"
)

// indentation finds out how to indent the wanted lines in the file: unchanged, when the quotation was indented like the file or the wanted
// lines already are; else by the one rule that leads from the indentation of the quoted lines to the file's; else like the lines beside
// them. The function that it returns takes the index of a line of theirs and its indentation; its second result is false when several
// answers are possible.
func (m *merger) indentation() func(int, string) (string, bool) {
	same := func(_ int, in string) (string, bool) { return in, true }
	var was, is []string
	moved, flat := false, true
	unmoved := m.unmoved()
	for i, o := range m.pair {
		if o < 0 || !m.same[i] || trim(m.base[i]) == "" || unmoved && !worded(m.base[i]) {
			continue
		}
		// was and is are the evidence: how deep a line was quoted, and how deep the file has it.
		was, is = append(was, indent(m.base[i])), append(is, indent(m.ours[o]))
		moved = moved || was[len(was)-1] != is[len(is)-1]
		flat = flat && was[len(was)-1] == was[0]
	}
	if len(was) == 0 { // all lines were quoted loosely: the first that is paired with a line of the file decides
		for i, o := range m.pair {
			if o >= 0 && trim(m.base[i]) != "" {
				was, is = []string{indent(m.base[i])}, []string{indent(m.ours[o])}
				moved = was[0] != is[0]
				break
			}
		}
	}
	// Text that is at the file's depth has no other indentation than the file.
	foreign := slices.ContainsFunc(indents(withoutStars(m.theirs)), func(in string) bool { return !m.style.allows(in) })
	if m.placed && foreign {
		return func(_ int, in string) (string, bool) { return in, false }
	}
	if !moved {
		for i, o := range m.pair {
			if o < 0 || trim(m.base[i]) == "" || indent(m.base[i]) == indent(m.ours[o]) {
				continue
			}
			if !m.same[i] { // a line quoted in other words at another depth is the only witness of how deeper lines are quoted
				if !unmoved {
					return func(_ int, in string) (string, bool) { return in, in == "" }
				}
				continue
			}
			// Brackets are at another depth than quoted, so new lines may be too.
			return func(_ int, in string) (string, bool) { return in, m.style.allows(in) }
		}
		// What the file has nowhere, tabs among spaces, comes from how the new lines are written down.
		return func(_ int, in string) (string, bool) { return in, (style{only: m.style.only}).allows(in) }
	}
	asQuoted, asFile, asNeither := 0, 0, 0 // lines that stay and tell which of the two the wanted ones are indented like
	for j, i := range m.from {
		if i < 0 || m.pair[i] < 0 || trim(m.theirs[j]) == "" {
			continue
		}
		want, q, f := indent(m.theirs[j]), indent(m.base[i]), indent(m.ours[m.pair[i]])
		if q == f {
			continue
		}
		if want == q {
			asQuoted++
		}
		if want == f {
			asFile++
		}
		if want != q && want != f {
			asNeither++
		}
	}
	switch {
	case asFile > 0 && asQuoted == 0 && shallowest(m.base) == "" && len(shallowest(m.theirs)) >= len(shallowest(m.ours)):
		if m.wraps() || m.edgesAsQuoted() || asNeither > 0 || foreign {
			// Lines that the change puts into a block stand deeper than quoted; that the file has them as deep may be chance. So it may be
			// that a new line is equal to one that was quoted.
			return func(_ int, in string) (string, bool) { return in, false }
		}
		return same
	case asFile > 0 && asQuoted == 0 && shallowest(m.base) != "":
		// Quoted at a depth of its own, or with new lines less deep than the block in the file: moved along with the quotation, or meant as
		// they are?
		return func(_ int, in string) (string, bool) { return in, false }
	case asFile > 0 && asQuoted > 0: // some lines are at the file's depth and some at the quotation's: there is no one frame of reference
		m.mixed = true
		return func(_ int, in string) (string, bool) { return in, false }
	case asFile+asQuoted+asNeither == 0 && !slices.Contains([]string{shallowest(m.base), shallowest(m.ours)}, shallowest(m.theirs)) &&
		shallowest(m.theirs[:firstLine(m.theirs)+1]) != shallowest(m.base[:firstLine(m.base)+1]):
		return func(_ int, in string) (string, bool) { return in, false } // no line is in both, and the new ones begin at a depth of their own
	case asQuoted > 0 && m.given[0] != nil && shallowest(m.theirs) == shallowest(m.ours) && shallowest(m.base) != shallowest(m.ours):
		return func(_ int, in string) (string, bool) { return in, false } // lines that stay may have come out of a block, and brackets are anywhere
	case asNeither > 0 && asQuoted == 0 && shallowest(m.theirs) != shallowest(m.base): // moved, from which depth?
		return func(_ int, in string) (string, bool) { return in, false }
	case asQuoted == 0 && shallowest(m.theirs) == shallowest(m.ours) && shallowest(m.base) != shallowest(m.ours):
		// In a declaration that Reindent places, there is no quotation that the new lines could be indented like.
		if asFile == 0 && (shallowest(m.base) != "" || m.given[0] != nil) { // written at the file's depth, or moved there by the change: no line is in both texts to tell
			return func(_ int, in string) (string, bool) { return in, false }
		}
		return same
	}
	// Neither the quotation nor the new text shows any structure, so only the lines beside can tell.
	if flat && flattened(m.theirs) {
		return func(j int, in string) (string, bool) { return m.beside(j, in, true) }
	}
	if m.eitherWay() {
		return func(_ int, in string) (string, bool) { return in, false }
	}
	// One rule for all lines is better evidence than neighbours, which may be exceptions.
	rule := fitting(was, is, m.theirs, m.style.unit)
	first := false // the first line has a rule of its own
	if rule == nil && len(was) > 1 && was[0] == "" {
		// A model that starts quoting behind the indentation has only the first line wrong.
		if rule = fitting(was[1:], is[1:], m.theirs, m.style.unit); len(was) == 2 && was[1] != is[1] {
			rule = nil // one line is not evidence of a rule
		}
		first = rule != nil
	}
	if rule == nil {
		return func(j int, in string) (string, bool) {
			out, ok := m.beside(j, in, flat)
			if flat {
				return out, ok
			}
			to, known := "", false // what lines that were quoted at this depth have in the file, if all the same
			for i := range was {
				for k := range i {
					if was[i] != was[k] && is[i] == is[k] { // two depths became one, so an equal depth proves nothing
						return in, false
					}
				}
			}
			for i := range was {
				if i == 0 && was[0] != "" {
					continue // the first line is often quoted at a depth of its own
				}
				if was[i] == in && known && is[i] != to {
					return in, false
				}
				if was[i] == in {
					to, known = is[i], true
				}
			}
			if ok && out == in && !known {
				return out, true
			}
			return to, known && (!ok || out == to) // two witnesses that disagree prove nothing
		}
	}
	// One depth below the margin does not tell whether the quotation is in larger steps than the file or only deeper, and the new lines' own
	// steps are not the file's: only depths that were quoted are known.
	if level := oneLevel(m.theirs); m.style.unit > 0 && level > m.style.unit && level != oneLevel(m.ours) && flatBelow(was) {
		return func(_ int, in string) (string, bool) {
			out, ok := rule(in)
			return out, ok && slices.Contains(was, in)
		}
	}
	// One depth alone may have been moved, or counted in another unit; the new lines' own steps tell, where the file has a unit.
	if flat && max(m.style.unit, m.file.unit) > 0 {
		if moved, from, to := m.inUnits(was[0], is[0]); !moved {
			return func(_ int, in string) (string, bool) {
				if in == was[0] || from == 0 {
					return is[0], in == was[0]
				}
				return strings.Repeat(" ", len(in)/from*to), len(in)%from == 0
			}
		}
	}
	return func(j int, in string) (string, bool) {
		if j == 0 && first && in == was[0] {
			return is[0], true
		}
		out, ok := rule(in)
		// Further down, a line as deep as the first one was quoted has two witnesses that disagree.
		return out, ok && m.style.allows(out) && !(first && in == was[0] && out != in)
	}
}

// inUnits weighs the two ways in which lines that were quoted at one depth, was, can be at another in the file, is: moved, or counted in
// another unit than the file's. Lines that were moved are apart by steps of the file. Lines in another unit are as many levels deep in both;
// from is then that unit and to the file's, 0 where nothing proves it.
func (m *merger) inUnits(was, is string) (moved bool, from, to int) {
	st := m.style
	if st.unit == 0 {
		st = m.file
	}
	all := append(indents(withoutStars(m.theirs)), was)
	if c, ok := only(all); !ok || c != ' ' || strings.Trim(is, " ") != "" {
		return true, 0, 0
	}
	level := oneLevel(m.theirs) // proven by a line that opens a block; else the lines' distances, which may be several levels
	proven := level > 0
	for _, in := range all {
		for a, b := level, max(len(in)-len(was), len(was)-len(in)); !proven; a, b = b, a%b {
			if b == 0 {
				level = a
				break
			}
		}
	}
	common := st.unit // the file's usual step
	for step, n := range st.steps {
		if n > st.steps[common] || n == st.steps[common] && step < common {
			common = step
		}
	}
	if level < 2 || level == common {
		return true, 0, 0
	}
	for _, unit := range []int{st.unit, common} {
		if len(was)%level == 0 && len(is)%unit == 0 && len(was)/level == len(is)/unit {
			if to != 0 && to != unit {
				return false, 0, 0
			}
			from, to = level, unit
		}
	}
	switch own := level % st.unit; {
	case to != 0 && st.steps[level] == 0 && st.steps[common] > 1:
		return false, from, to
	case to != 0 || proven || own != 0:
		return false, 0, 0
	}
	return true, 0, 0
}

// edgesAsQuoted reports whether the new text begins or ends at the depth of the quotation's first or last line, where the file has that line
// at another one: it is then indented like the quotation.
func (m *merger) edgesAsQuoted() bool {
	at := func(i, j int) bool {
		return i >= 0 && j >= 0 && m.pair[i] >= 0 && m.same[i] && worded(m.base[i]) && worded(m.theirs[j]) &&
			indent(m.theirs[j]) == indent(m.base[i]) && indent(m.base[i]) != indent(m.ours[m.pair[i]])
	}
	return at(firstLine(m.base), firstLine(m.theirs)) || at(lastLine(m.base), lastLine(m.theirs))
}

// unmoved reports whether all lines with words are as deep in the file as they were quoted. A bracket at another depth then belongs to
// another block: the quoted one is gone, and its pair is not evidence of the depth of new lines.
func (m *merger) unmoved() bool {
	found := false
	for i, o := range m.pair {
		if o < 0 || !m.same[i] || !worded(m.base[i]) {
			continue
		}
		if indent(m.base[i]) != indent(m.ours[o]) {
			return false
		}
		found = found || indent(m.base[i]) != "" // at the margin tabs and spaces look alike
	}
	return found
}

// withoutStars leaves out the lines of comments that begin with a star, which are a blank deeper than the comment's beginning.
func withoutStars(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(trimLeft(s), "*") })
}

// worded reports whether a line has a letter or a digit; lines of brackets or dashes are in many places and identify none.
func worded(line string) bool { return strings.ContainsFunc(line, isWord) }

// eitherWay reports whether new lines may be indented like the quotation or like the file: a new line is deeper than the line before it,
// which opens no block, and has the depth that the file has for that line, or behind a blank line a smaller one. It is then either badly
// indented or written at the file's depth, and the two lead to different files.
func (m *merger) eitherWay() bool {
	for k := range m.theirs {
		if m.stays(k) { // before it nothing opened a block either
			in := indent(m.theirs[0])
			if k > 0 && len(in) > len(indent(m.theirs[k])) && !closes(m.theirs[k]) && in == indent(m.ours[m.pair[m.from[k]]]) {
				return true
			}
			break
		}
	}
	for j := 1; j < len(m.theirs); j++ {
		last := j - 1 // the line before it, blank ones aside
		for last > 0 && trim(m.theirs[last]) == "" {
			last--
		}
		if m.from[j] >= 0 || trim(m.theirs[j]) == "" || !m.stays(last) || opens(m.theirs[last]) {
			continue
		}
		in, above, file := indent(m.theirs[j]), indent(m.theirs[last]), indent(m.ours[m.pair[m.from[last]]])
		if len(in) > len(above) && (in == file || last < j-1 && strings.HasPrefix(file, in)) {
			return true
		}
	}
	return false
}

// beside indents a wanted line like the quoted lines next to it: the one that it replaces, else those before and after it with the same
// indentation. flat says that the quotation has only one depth, so that equal indentation proves nothing.
func (m *merger) beside(j int, in string, flat bool) (string, bool) {
	p, q := j, j // the nearest lines of theirs that stay
	for p >= 0 && !m.stays(p) {
		p--
	}
	for q < len(m.theirs) && !m.stays(q) {
		q++
	}
	file := func(line int) string { return indent(m.ours[m.pair[m.from[line]]]) }
	if p == j {
		return file(j), in == indent(m.base[m.from[j]]) || in == file(j)
	}
	// i0 and i1 are the quoted lines that the neighbours come from; between them lies what the hunk replaces.
	i0, i1 := -1, len(m.base)
	if p >= 0 {
		i0 = m.from[p]
	}
	if q < len(m.theirs) {
		i1 = m.from[q]
	}
	if i := i0 + j - p; i1-i0 == q-p && i < len(m.base) && m.pair[i] >= 0 && indent(m.base[i]) == in && trim(m.base[i]) != "" {
		return indent(m.ours[m.pair[i]]), true
	}
	if i := i0 + 1; i < i1 && m.pair[i] >= 0 && trim(m.base[i]) != "" && trim(m.theirs[p+1]) != "" && indent(m.theirs[p+1]) == indent(m.base[i]) && !flattened(m.theirs[p+1:q]) {
		at := indent(m.ours[m.pair[i]])
		if more, ok := strings.CutPrefix(in, indent(m.base[i])); ok && alikeIndent(at, more) { // as deep below the hunk's first line
			return at + more, true
		}
	}
	before, after := p >= 0 && indent(m.theirs[p]) == in, q < len(m.theirs) && indent(m.theirs[q]) == in
	switch {
	case before && after && file(p) == file(q):
		return file(p), !flat || !opens(m.theirs[p])
	case flat && before && (q == len(m.theirs) || closes(m.theirs[q])):
		return file(p), !opens(m.theirs[p]) && j == p+1
	case flat:
		return in, false
	case before && !after:
		return file(p), true
	case after && !before:
		return file(q), true
	}
	return in, false
}

// wraps reports whether the change puts a line that stays into a new block: a new line opens one, and the next line that stays is deeper
// than it was quoted. A line before all of them that is as deep in the file as in the new text, and not as deep as it was quoted, says that
// the new text is written at the file's depth.
func (m *merger) wraps() bool {
	opened := false
	for j, line := range m.theirs {
		switch {
		case trim(line) == "":
		case !opened && m.stays(j) && worded(line) && indent(line) == indent(m.ours[m.pair[m.from[j]]]) && indent(line) != indent(m.base[m.from[j]]):
			return false
		case m.from[j] < 0:
			opened = opened || opens(line)
		case opened && len(indent(line)) > len(indent(m.base[m.from[j]])):
			return true
		}
	}
	return false
}

// style is how a whole file is indented, as far as it is so throughout. A rule that was found for a few lines and leads out of it was
// found by chance.
type style struct {
	only byte // the one character of all indentations, 0 when there are several or none
	unit int  // the number of spaces that all indentations are a multiple of, 0 when there is none
	// steps counts by how many spaces lines are deeper than the line before them.
	steps map[int]int
	// clean says that no line ends in blanks. Those that a quotation has at its lines' ends are then how its author writes lines.
	clean bool
}

// styleOf reads the indentations of all lines. Those of comments' stars and of fewer than four lines say nothing.
func styleOf(lines []string) style {
	st := style{clean: true, steps: map[int]int{}}
	n, mixed, last := 0, false, 0
	for _, line := range lines {
		in := indent(line)
		st.clean = st.clean && (len(in) == len(line) || trimRight(line) == strings.TrimSuffix(line, "\r"))
		if len(in) == len(line) || line[len(in)] == '*' {
			continue
		}
		if len(in) > last {
			st.steps[len(in)-last]++
		}
		if last = len(in); in == "" {
			continue
		}
		n++
		c, ok := only([]string{in})
		mixed = mixed || !ok || st.only != 0 && c != st.only
		st.only = c
		for a, b := st.unit, len(in); ; a, b = b, a%b {
			if b == 0 {
				st.unit = a
				break
			}
		}
	}
	if n < 4 || mixed {
		return style{clean: st.clean}
	}
	if st.only != ' ' || st.unit > 4 {
		st.unit = 0
	}
	return st
}

// allows reports whether an indentation fits the file's style.
func (st style) allows(in string) bool {
	if c, ok := only([]string{in}); st.only != 0 && in != "" && (!ok || c != st.only) {
		return false
	}
	return st.unit == 0 || len(in)%st.unit == 0
}

// alikeIndent reports whether b can follow a in an indentation without changing from tabs to spaces or back. Empty ones fit
// everything.
func alikeIndent(a, b string) bool { return a == "" || b == "" || a[len(a)-1] == b[0] }

// stays reports whether a wanted line is a line of the file, so that its depth there is known.
func (m *merger) stays(j int) bool {
	i := m.from[j]
	return i >= 0 && m.pair[i] >= 0 && trim(m.theirs[j]) != ""
}

// opens reports a line after which code is usually deeper: it ends in an opening bracket or a colon. It knows no language:
// a wrong answer leads to a refusal or to the file's own depth, never to another block.
func opens(line string) bool {
	t := trim(line)
	return t != "" && strings.IndexByte("{([:", t[len(t)-1]) >= 0
}

// closes reports a line that is usually less deep than the one before: a closing bracket, or the end of Lua and Ruby. Like opens it only
// weighs evidence.
func closes(line string) bool {
	t := trim(line)
	return t != "" && strings.IndexByte("})]", t[0]) >= 0 || t == "end"
}

// flattened reports whether lines lost their indentation: a line that opens a block is followed by one that is not deeper. Their depth is
// then no evidence of anything.
func flattened(lines []string) bool {
	last := ""
	for _, line := range lines {
		if trim(line) == "" {
			continue
		}
		if opens(last) && !closes(line) && len(indent(line)) <= len(indent(last)) {
			return true
		}
		last = line
	}
	return false
}

// shallowest is the shortest indentation of the lines that are not blank, "-" when all are: no indentation is equal to that.
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
// ones, whose indentation may show the unit; unit is the file's, 0 when it has none. The simplest rule that explains every pair counts.
func fitting(was, is, lines []string, unit int) func(string) (string, bool) {
	all := func(rule func(string) (string, bool)) bool {
		for i := range was {
			if to, ok := rule(was[i]); !ok || to != is[i] {
				return false
			}
		}
		return true
	}
	same := func(in string) (string, bool) { return in, true }
	if all(same) {
		return same
	}
	if more, ok := strings.CutSuffix(is[0], was[0]); ok && (deeper(was) || unmixed(more, lines)) {
		if add := func(in string) (string, bool) { return more + in, true }; all(add) {
			return add
		}
	}
	if less, ok := strings.CutSuffix(was[0], is[0]); ok {
		cut := func(in string) (string, bool) {
			n := 0
			for n < len(in) && n < len(less) && in[n] == less[n] {
				n++
			}
			return in[n:], true
		}
		if all(cut) {
			// Lines at the margin cannot lose what the others lose, so another unit explains all of them as well.
			scaled := units(was, is, lines, unit)
			if scaled == nil || !all(scaled) || !slices.ContainsFunc(was, func(in string) bool { return len(in) < len(less) }) {
				return cut
			}
			return func(in string) (string, bool) {
				a, _ := cut(in)
				b, ok := scaled(in)
				return a, ok && a == b
			}
		}
	}
	if rule := units(was, is, lines, unit); rule != nil && all(rule) {
		return rule
	}
	return nil
}

// flatBelow reports whether all indentations that are not empty are equal: two depths, one of them the margin.
func flatBelow(indents []string) bool {
	deep := ""
	for _, in := range indents {
		if in != "" && deep != "" && in != deep {
			return false
		}
		deep = max(deep, in)
	}
	return true
}

// deeper reports whether one of the indentations is not empty: a prefix that fits it too is proven by more than lines at the margin.
func deeper(was []string) bool {
	for _, in := range was {
		if in != "" {
			return true
		}
	}
	return false
}

// unmixed reports whether a prefix before the lines' indentation gives no new mixture of tabs and spaces, which looks right in one editor and
// wrong in the next: spaces behind the prefix's tabs, or a tab behind its spaces.
func unmixed(more string, lines []string) bool {
	for _, line := range lines {
		if in := indent(line); len(in) < len(line) && in != "" && (strings.Contains(more, "\t") && in[0] == ' ' || strings.HasSuffix(more, " ") && in[0] == '\t') {
			return false
		}
	}
	return true
}

// units is the linear rule, so many of one character for so many of another, from a base: four spaces for a tab, two spaces for four. It
// is nil when the indentations mix characters, or the unit is not clear. unit is the file's, 0 when it has none.
func units(was, is, lines []string, unit int) func(string) (string, bool) {
	from, ok1 := only(append(indents(lines), was...))
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
	if dx == 0 { // one depth only: how much a further one is must be found out
		dx, dy = step(x0, y0, from, to, lines, unit)
	}
	if from == '\t' && to == '\t' && dx != dy {
		return nil // a level is one tab everywhere: such a rule comes from a line that was paired with another block's
	}
	if from == to && dx != dy && x0*dy != y0*dx && !slices.ContainsFunc(was, func(in string) bool { return len(in) != x0 && len(in) != len(was[hi]) }) {
		return nil // another unit and another base at once: two depths do not prove both
	}
	// A step of over sixteen characters for one is not indentation in use, but chance.
	if dx <= 0 || dy <= 0 || dy > 16*dx || dx > 16*dy {
		return nil
	}
	return func(in string) (string, bool) {
		n := 0
		for n < len(in) && in[n] == from {
			n++
		}
		y := y0*dx + (n-x0)*dy // in units of 1/dx
		if y < 0 {
			y = 0
		}
		out := strings.Repeat(string(rune(to)), y/dx)
		left := y % dx
		if left != 0 && from == ' ' && to == '\t' {
			out += strings.Repeat(" ", (left+dy-1)/dy) // alignment that is not a full tab
			left = 0
		}
		return out + in[n:], left == 0 // a part of a level shows that the lines have no one unit
	}
}

// step finds the unit when all evidence is of one depth, x of one character for y of another, from how far the new lines are from that
// depth: dx for dy, 0 when several units are equally likely. It considers tabs of 4 and 8 columns and steps of 2 to 4 spaces. unit is the
// file's, 0 when it has none.
func step(x, y int, from, to byte, lines []string, unit int) (dx, dy int) {
	apart := 0 // greatest common divisor of the distances from x
	for _, in := range indents(lines) {
		for a, b := apart, max(len(in)-x, x-len(in)); ; a, b = b, a%b {
			if b == 0 {
				apart = a
				break
			}
		}
	}
	if level := oneLevel(lines); level > 0 && apart%level == 0 {
		apart = level
	}
	switch {
	case apart == 0: // all at that depth
		return 1, 1
	case from == ' ' && to == '\t':
		per := 0 // spaces a tab, were nothing else in front
		if y > 0 && x%y == 0 {
			per = x / y
		}
		if level := oneLevel(lines); level > 0 && (per == 4 || per == 8) && level != per {
			return 0, 0 // the one known depth and the new lines' own steps show different widths
		}
		// First the width that the one known depth proves, then the distance between the new lines' own depths.
		switch {
		case (per == 4 || per == 8) && apart%per == 0:
			return per, 1
		case apart == 4 || (apart == 2 || apart == 3) && oneLevel(lines) == apart:
			return apart, 1
		case per >= 2 && per <= 4 && apart%per == 0:
			return per, 1
		case apart == 8 && oneLevel(lines) == 8:
			return 8, 1
		}
		return 0, 0
	case from == '\t' && to == ' ' && x > 0 && y%x == 0 && y/x <= 4 && (unit == 0 || unit == y/x):
		return 1, y / x
	case from == '\t' && to == ' ' && x > 0 && unit > 0: // quoted at another depth and in another unit at once: one depth does not prove both
		return 0, 0
	case from == '\t' && to == ' ' && unit > 0:
		return 1, unit
	case from == '\t' && to == ' ':
		return 1, 4
	case from == to:
		return 1, 1
	}
	return 0, 0
}

// oneLevel is how much deeper the lines stand that follow one which opens a block, 0 when there is none or they differ.
func oneLevel(lines []string) int {
	level, last := 0, ""
	for _, line := range lines {
		if trim(line) == "" {
			continue
		}
		if more := len(indent(line)) - len(indent(last)); opens(last) && more > 0 {
			if level > 0 && more != level {
				return 0
			}
			level = more
		}
		last = line
	}
	return level
}

// indents are the indentations of the lines that are not blank, in order, with repetitions.
func indents(lines []string) []string {
	var out []string
	for _, line := range lines {
		if in := indent(line); len(in) < len(line) {
			out = append(out, in)
		}
	}
	return out
}

// only is the one character all the indentations are made of; 0 when they are all empty. ok is false for a mixture, for which
// there is no linear rule.
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
