package replace

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is one line of a merged block. From lets the caller keep the file's own line ending for a line that stays.
type Line struct {
	Text string // without its line ending
	From int    // 0-based index of the block's line whose bytes these are, -1 for a new line
}

// Merge applies a change that was stated for quoted lines to the lines that the file has: a three-way merge with
// the quotation as base, the file's lines as ours and the wanted lines as theirs. Lines are given without their ends.
//
//	Merge([]string{"a()", "b()"}, []string{"\ta()", "\taudit()", "\tb()"}, []string{"a()", "c()"})
//	// "\ta()", "\taudit()", "\tc()": what was not quoted stays, what is new is indented as the file is
//
// A wanted line that was quoted keeps the file's bytes. ok is false when the change touches a line that is not as quoted, or when it is
// not clear on which side of an unquoted line something new belongs: a guess would remove or displace text that the author of the change
// has not seen.
func Merge(quoted, have, wanted []string) (lines []Line, ok bool) {
	return newMerger(quoted, have, wanted).merge()
}

// merger is one three-way merge, used once. Names: base is what was quoted, ours what the file has, theirs what is wanted. Half-open
// ranges of lines are written i0 to i1 in base and j0 to j1 in theirs.
type merger struct {
	base, ours, theirs []string
	pair               []int       // for each base line the line of ours that it is paired with, -1 for none
	same               []bool      // for each base line: its pair is equal apart from white space and typography, see key
	from               []int       // for each line of theirs the base line that it is, apart from white space around it, -1 for none
	padded             string      // blanks at the ends of quoted lines that the file does not have, "" for none; see unpad
	doubtful           []bool      // for each line of theirs: unpad cut blanks off that may have been meant
	habit              []bool      // for each line of theirs: it ends in blanks that quoted lines end in too, where the file does not
	cut                []string    // for each line of theirs: what unpad cut off
	placed             bool        // base is at the file's depth, since the wanted lines are; see atFile
	mixed              bool        // some wanted lines are indented like the file, some like the quotation; set by indentation
	given              [3][]string // base, ours and theirs as the caller gave them

	style style // of the whole file, where the caller knows it
	file  style // the same, for Reindent, which it does not bind: lines of a declaration may stand where no others of the file do

	// move gives the indentation of a wanted line in the file, false where it cannot be told; see indentation.
	move func(line int, indent string) (string, bool)

	out  []Line
	next int // first line of ours that is not in out yet
}

// MergeIn is Merge for a block of a file whose lines are all given: new lines must fit the way in which the file is indented throughout.
func MergeIn(file, quoted, have, wanted []string) (lines []Line, ok bool) {
	m := newMerger(quoted, have, wanted)
	m.style = styleOf(file)
	return m.merge()
}

// newMerger pairs the lines; merge does the rest. The caller's slices are not modified.
func newMerger(base, ours, theirs []string) *merger {
	return newAligned(base, ours, theirs, pairLines, align)
}

// newAligned is newMerger with the two alignments given, see mirrored.
func newAligned(base, ours, theirs []string, pair func(base, ours []string) ([]int, []bool), from func(old, lines []string) []int) *merger {
	m := &merger{given: [3][]string{base, ours, theirs}}
	m.base, m.theirs = decoded(base, ours, theirs)
	m.base, m.theirs = plain(m.base, ours, m.theirs)
	m.ours = ours
	m.pair, m.same = pair(m.base, ours)
	m.unpad()
	m.atFile(from)
	m.from = from(m.base, m.theirs)
	return m
}

// mirrored is the merger that reads all lines from the end: of several alignments that are equally good it takes the last one where
// newMerger takes the first.
func (m *merger) mirrored() *merger {
	reversed := func(lines []string) []string {
		lines = slices.Clone(lines)
		slices.Reverse(lines)
		return lines
	}
	// turn makes indices that count from the end count from the beginning, in both their places and their values.
	turn := func(at []int, n int) []int {
		slices.Reverse(at)
		for i := range at {
			if at[i] >= 0 {
				at[i] = n - 1 - at[i]
			}
		}
		return at
	}
	other := newAligned(m.given[0], m.given[1], m.given[2],
		func(base, ours []string) ([]int, []bool) {
			pair, same := pairLines(reversed(base), reversed(ours))
			slices.Reverse(same)
			return turn(pair, len(ours)), same
		},
		func(old, lines []string) []int { return turn(align(reversed(old), reversed(lines)), len(old)) })
	other.style = m.style
	return other
}

// unpad removes blanks at line ends that come from how the model writes lines, from quoted and new ones. They are known by quoted lines
// that the file has without them. Other blanks at the end of new lines are meant (a line break in Markdown). Without unpad, every new
// line would bring such blanks into the file.
func (m *merger) unpad() {
	pads, all := map[string]bool{}, true
	unknown := map[string]bool{} // blanks behind quoted lines that the file has otherwise or not at all: the model's, or the file's then
	for i, o := range m.pair {
		if trim(m.base[i]) == "" {
			continue
		}
		if o < 0 || !m.same[i] {
			if e := end(m.base[i]); e != "" {
				unknown[e] = true
			}
			continue
		}
		pad, ok := strings.CutPrefix(m.base[i][len(indent(m.base[i])):], trimLeft(m.ours[o]))
		if !ok || pad == "" || trim(pad) != "" {
			all = false
			continue
		}
		pads[pad] = true
		if len(pad) > len(m.padded) {
			m.padded = pad
		}
	}
	m.doubtful, m.habit, m.cut = make([]bool, len(m.theirs)), make([]bool, len(m.theirs)), make([]string, len(m.theirs))
	if m.padded == "" {
		for j, line := range m.theirs {
			m.doubtful[j] = trim(line) != "" && unknown[end(line)]
			m.habit[j] = m.doubtful[j]
		}
		return
	}
	// In Markdown two blanks are a line break. They are taken for a habit only where every line has them, and the block none of its own.
	breaks := slices.ContainsFunc(m.ours, func(s string) bool { return strings.HasSuffix(s, "  ") && trim(s) != "" })
	// The caller's slices stay as they are.
	m.base, m.theirs = slices.Clone(m.base), slices.Clone(m.theirs)
	for i, o := range m.pair {
		if trim(m.base[i]) != "" && (o < 0 || !m.same[i] || trimLeft(m.base[i]) != trimLeft(m.ours[o])) {
			m.base[i] = strings.TrimSuffix(m.base[i], m.padded)
		}
	}
	for j, line := range m.theirs {
		e := end(line)
		if trim(line) == "" || e == "" {
			continue
		}
		m.doubtful[j] = !pads[e] || e == "  " && (!all || breaks)
		m.habit[j] = pads[e] || unknown[e]
		if pads[e] {
			m.theirs[j], m.cut[j] = trimRight(line), e
		}
	}
}

// atFile moves the quotation to the file's indentation when the new text is indented like the file; no depth has to be worked out then.
// That is the case when more of the new lines equal lines of the moved quotation than of the original one, and no new line is less deep
// than the whole block, which would mean that its depth counts from somewhere else.
func (m *merger) atFile(from func(old, lines []string) []int) {
	// placed is the quotation at the file's depth; it is used only if it explains more of the new lines.
	placed, moved := slices.Clone(m.base), false
	for i, o := range m.pair {
		if o >= 0 && m.same[i] && trim(m.base[i]) != "" && indent(m.base[i]) != indent(m.ours[o]) {
			placed[i], moved = indent(m.ours[o])+trimLeft(m.base[i]), true
		}
	}
	if !moved || len(shallowest(m.theirs)) < len(shallowest(m.ours)) {
		return
	}
	// Quoted at a depth of its own, the change may be to move all lines by as much as the file's have been moved since.
	if shallowest(m.base) != "" || m.edgesAsQuoted() {
		return
	}
	// A new line that is as deep as it was quoted shows that the new text is indented like the quotation. More lines may be as deep as in the
	// file because the change takes them out of a block.
	for i, j := range subsequence(m.base, m.theirs) {
		if j >= 0 && worded(m.base[i]) && m.base[i] != placed[i] {
			return
		}
	}
	count := func(lines []string) (n int) {
		for _, i := range subsequence(lines, m.theirs) {
			if i >= 0 && trim(m.theirs[i]) != "" {
				n++
			}
		}
		return n
	}
	if count(placed) > count(m.base) {
		// Lines that the change puts into a block are as deep as in the file by chance, and so may one be where another line that has been
		// moved is at neither depth.
		m.from = from(m.base, m.theirs)
		for j, i := range m.from {
			if i >= 0 && m.base[i] != placed[i] && indent(m.theirs[j]) != indent(placed[i]) {
				return
			}
		}
		if !m.wraps() {
			m.base, m.placed = placed, true
		}
	}
}

// decoded removes one layer of backslash escapes from the quotation and the wanted lines, when the file has quoted lines with a backslash
// only in their decoded form: models escape text twice when they write it into JSON. If the file has one such line with its backslash,
// nothing is decoded.
func decoded(base, ours, theirs []string) (b, t []string) {
	in := make(map[string]bool, len(ours))
	for _, line := range ours {
		in[key(line)] = true
	}
	found := false
	for _, line := range base {
		if !strings.Contains(line, `\`) {
			continue
		}
		if in[key(line)] {
			return base, theirs
		}
		found = found || in[key(unescape(line))]
	}
	if !found {
		return base, theirs
	}
	kinds := strings.Join(base, "\n")
	decode := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			if out[i] = unescapeAs(kinds, line); strings.Contains(out[i], "\n") {
				out[i] = line // an escaped line break is not part of one line
			}
		}
		return out
	}
	return decode(base), decode(theirs)
}

// plain writes typographic quotes, dashes and blanks of the quotation and of the wanted lines as the ASCII ones, where the quotation has them
// in lines of the file that do not, and no line there does: the model writes them throughout, and new lines would bring them into the file.
func plain(base, ours, theirs []string) (b, t []string) {
	var plainly []string // pairs for a Replacer
	in := make(map[string]bool, len(ours))
	for _, line := range ours {
		in[key(line)] = true
	}
	for _, line := range base {
		if isASCII(line) {
			continue
		}
		for _, r := range line {
			s := string(r)
			if f := Fold(s); f != s && !slices.Contains(plainly, s) && in[key(line)] && !slices.ContainsFunc(ours, func(o string) bool { return strings.Contains(o, s) }) {
				plainly = append(plainly, s, f)
			}
		}
	}
	if plainly == nil {
		return base, theirs
	}
	// Who writes one typographic quote, or three dots as one character, writes the others too. A dash is often meant.
	for _, s := range [...]string{"‘", "’", "“", "”", "…"} {
		if slices.ContainsFunc(plainly, func(p string) bool { return p == "'" || p == `"` || p == "..." }) && !slices.Contains(plainly, s) && !slices.ContainsFunc(ours, func(o string) bool { return strings.Contains(o, s) }) {
			plainly = append(plainly, s, Fold(s))
		}
	}
	r := strings.NewReplacer(plainly...)
	write := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = r.Replace(line)
		}
		return out
	}
	return write(base), write(theirs)
}

// undecidable reports whether a new line has an escape or an entity of which nothing tells whether it is meant: the model may have written
// both texts as for JSON or HTML, and the escape would come into the file. It is meant where the file has it in a quoted line, or where
// either text has the same character without an escape.
func (m *merger) undecidable(line string) bool {
	if !strings.ContainsAny(line, `\&`) {
		return false
	}
	asQuoted := false // the file has a quoted line with it
	plain := func(mark, char string) bool {
		for i, o := range m.pair {
			asQuoted = asQuoted || o >= 0 && m.same[i] && strings.Contains(m.base[i], mark) && strings.Contains(m.ours[o], mark)
		}
		return asQuoted || slices.ContainsFunc(slices.Concat(m.base, m.theirs), func(s string) bool {
			return strings.Contains(unescaped.Replace(s), char)
		})
	}
	for _, e := range escapes {
		if strings.Contains(line, e.mark) && !plain(e.mark, e.char) {
			return true
		}
	}
	// An escaped tab is known by its place: no language begins a line with a backslash and a t.
	return strings.HasPrefix(trimLeft(line), `\t`) && !slices.ContainsFunc(m.ours, func(s string) bool { return strings.HasPrefix(trimLeft(s), `\t`) })
}

// Undecidable reports whether new has a line that old has not, with an escape or an entity of which nothing tells whether it is meant; old is
// as the file has it.
func Undecidable(old, new string) bool {
	have := strings.Split(old, "\n")
	m := newMerger(have, have, strings.Split(new, "\n"))
	for j, line := range m.theirs {
		if m.from[j] < 0 && m.undecidable(line) {
			return true
		}
	}
	return false
}

// escapes are the forms in which models write characters when they escape a text once too often, for JSON, a template or HTML.
var escapes = []struct{ mark, char string }{
	{`\"`, `"`}, {"\\`", "`"}, {`\$`, "$"}, {`\\`, `\`}, {`\u003c`, "<"}, {`\u003e`, ">"}, {`\u0026`, "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"},
}

// unescaped removes all escapes, so that what is left was written as it is.
var unescaped = func() *strings.Replacer {
	var pairs []string
	for _, e := range escapes {
		pairs = append(pairs, e.mark, "")
	}
	return strings.NewReplacer(pairs...)
}()

// uncertain reports whether the change moves a quoted line that the file does not have, or whether a line that the quotation has otherwise (in
// the blanks at its end, in typography) is one of several equal ones, of which the change adds or removes some: which of them has the file's
// own bytes is then a guess.
func (m *merger) uncertain() bool {
	count := func(lines []string, line string) (n int) {
		for _, l := range lines {
			if trim(l) == trim(line) {
				n++
			}
		}
		return n
	}
	for i, o := range m.pair {
		// The change moves a line that the file does not have: one that stands for others, or that has gone since. It would be written. A
		// bracket may be another one, which closes what is new as well.
		if line := m.base[i]; o < 0 && trim(line) != "" && count(m.ours, line) == 0 {
			bracket := strings.Trim(line, "()[]{}<>;, \t") == ""
			if bracket && count(m.theirs, line) > count(m.base, line) {
				continue
			}
			for j, k := range m.from {
				if k < 0 && trim(m.theirs[j]) == trim(line) && !(bracket && m.opened(j)) {
					return true
				}
			}
		}
		if o < 0 || trimLeft(m.ours[o]) == trimLeft(m.base[i]) && (trim(m.ours[o]) != "" || m.ours[o] == m.base[i]) {
			continue
		}
		if now := count(m.theirs, m.base[i]); now > 0 && now != count(m.base, m.base[i]) {
			return true
		}
		for j, line := range m.theirs {
			if m.from[j] < 0 && trim(line) != "" && trimRight(line) == trimRight(m.base[i]) {
				return true // the alignment takes it for a new line
			}
			// It is one of several, and the change moves some of them to where others were.
			if k := m.from[j]; k >= 0 && trim(line) != "" && trim(line) == trim(m.base[i]) && indent(line) != indent(m.base[k]) && count(m.base, line) > 1 {
				return true
			}
		}
	}
	return false
}

// opened reports whether the bracket that new line j closes is opened by a new line before it, with none between that stays.
func (m *merger) opened(j int) bool {
	depth := 0
	for ; j >= 0 && m.from[j] < 0; j-- {
		for _, c := range []byte(m.theirs[j]) {
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
		}
		if depth >= 0 {
			return true
		}
	}
	return false
}

// shifted reports whether the change only moves all of its indented lines to another depth, while the file has them at another one than
// quoted. The file may have been changed so already, and the quotation be in another unit: no indented line stays to tell.
func (m *merger) shifted() bool {
	lines, moved, otherwise := 0, false, false
	for j, i := range m.from {
		if trim(m.theirs[j]) == "" {
			continue
		}
		if i < 0 || m.pair[i] < 0 {
			return false
		}
		want, was, is := indent(m.theirs[j]), indent(m.base[i]), indent(m.ours[m.pair[i]])
		if want == was && was+is != "" {
			return false
		}
		moved, otherwise = moved || want != was, otherwise || was != is
		lines++
	}
	for _, line := range m.base {
		if trim(line) != "" {
			lines--
		}
	}
	return moved && otherwise && lines == 0
}

// merge is walk, whose result must not depend on which of several equally good alignments was chosen: where the first and the last one lead
// to different texts, nothing says which is meant.
func (m *merger) merge() ([]Line, bool) {
	lines, ok := m.walk()
	if !ok {
		return nil, false
	}
	other := m.mirrored()
	if slices.Equal(m.pair, other.pair) && slices.Equal(m.from, other.from) {
		return lines, true
	}
	also, ok := other.walk()
	return lines, ok && slices.EqualFunc(lines, also, func(a, b Line) bool { return a.Text == b.Text })
}

// walk goes through base and theirs together: lines that both have are kept, and what is between them is a hunk of the change. Lines
// of ours are copied up to the current place, so that each is in the result once and in order. The first hunk that could be meant in
// two ways ends the merge: half a change is worse than none.
func (m *merger) walk() ([]Line, bool) {
	m.move = m.indentation()
	// Brackets alone, quoted loosely, are anywhere.
	if m.uncertain() || m.shifted() || firstLine(m.base) >= 0 && !slices.ContainsFunc(m.base, worded) {
		return nil, false
	}
	i, j, moved, between := 0, 0, false, false
	// i and j are the next lines of base and theirs; each round takes a common line or a whole hunk.
	for i < len(m.base) || j < len(m.theirs) {
		if j < len(m.theirs) && m.from[j] == i {
			n := len(m.out)
			if !m.keep(i, j) {
				return nil, false
			}
			// Unquoted lines between two that the change moves to another depth: nothing says whether they move along. Blank lines between
			// them do not separate them.
			if m.pair[i] >= 0 {
				between = between || firstLine(texts(m.out[n:len(m.out)-1])) >= 0
				if trim(m.base[i]) != "" {
					was := moved
					if moved = m.out[len(m.out)-1].From < 0; moved && was && between {
						return nil, false
					}
					between = false
				}
			}
			i, j = i+1, j+1
			continue
		}
		// A hunk of the wanted change: base lines up to i1 go, wanted lines up to j1 come.
		j1 := j
		for j1 < len(m.theirs) && m.from[j1] < 0 {
			j1++
		}
		i1 := len(m.base)
		if j1 < len(m.theirs) {
			i1 = m.from[j1]
		}
		if !m.hunk(i, i1, j, j1) {
			return nil, false
		}
		i, j = i1, j1
	}
	m.unquoted(len(m.ours))
	return m.out, true
}

// unquoted copies the lines of ours before line end that are not in out yet and were not quoted.
func (m *merger) unquoted(end int) {
	for ; m.next < end; m.next++ {
		m.out = append(m.out, Line{m.ours[m.next], m.next})
	}
}

// texts are the lines' texts.
func texts(lines []Line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Text
	}
	return out
}

// keep writes a line that stays: the file's own bytes, unless the change moves it to another depth or changes only the blanks at its end.
// It returns false when the new depth is not clear.
func (m *merger) keep(i, j int) bool {
	o := m.pair[i]
	if o < 0 {
		// The file does not have it, and the change does not ask for it. A change of its depth asks for it: the file may have it in words that
		// are too different to tell, or have lost it on purpose.
		return indent(m.theirs[j]) == indent(m.base[i]) || trim(m.base[i]) == ""
	}
	m.unquoted(o)
	m.next = o + 1
	want, was := indent(m.theirs[j]), indent(m.base[i])
	asQuoted := m.theirs[j] + m.cut[j] // the file's own blanks may be the same as those that the model puts behind all lines
	onlyBlanks := trimRight(m.theirs[j]) == trimRight(m.base[i]) && m.theirs[j] != m.base[i] && asQuoted != m.base[i] && (m.padded == "" || m.theirs[j] != m.base[i]+m.padded)
	switch {
	case onlyBlanks && m.base[i] == m.ours[o]: // the change is to the blanks behind the line
		m.out = append(m.out, Line{m.theirs[j], -1})
		return true
	case onlyBlanks && trim(m.base[i]) != "" && trimLeft(m.base[i]) == trimLeft(m.ours[o]): // and the file has the line at another depth
		m.out = append(m.out, Line{indent(m.ours[o]) + trimLeft(m.theirs[j]), -1})
		return !m.mixed
	}
	// The file's line ends in blanks too. Whether those go that the quotation has and the new text has not, or the habit's, is unknown.
	if m.padded != "" && end(m.ours[o]) != "" && end(asQuoted) != end(m.given[0][i]) && trim(m.ours[o]) != "" {
		return false
	}
	// Some lines are indented like the file and some like the quotation, so a line that looks unmoved may have been moved.
	if m.mixed && want == was && was != indent(m.ours[o]) && trim(m.ours[o]) != "" {
		return false
	}
	// A bracket that is not as deep as quoted, where words are, may be another block's, and the quoted one is gone.
	edge := j > 0 && m.from[j-1] != i-1 || j+1 < len(m.from) && m.from[j+1] != i+1
	if trim(m.ours[o]) != "" && !worded(m.base[i]) && was != indent(m.ours[o]) && (edge || want != was) && m.unmoved() {
		return false
	}
	if want == was || trim(m.ours[o]) == "" {
		m.out = append(m.out, Line{m.ours[o], o})
		return true
	}
	in, ok := m.move(j, want)
	is := end(m.ours[o])
	if to := end(m.theirs[j]); to != end(m.base[i]) && end(asQuoted) != end(m.base[i]) && (m.padded == "" || to != end(m.base[i])+m.padded) {
		// It changes the blanks behind the line as well.
		ok = ok && is == end(m.base[i])
		is = to
	}
	if in == indent(m.ours[o]) && is == end(m.ours[o]) {
		m.out = append(m.out, Line{m.ours[o], o})
		return ok
	}
	m.out = append(m.out, Line{in + trim(m.ours[o]) + is, -1})
	return ok
}

// end is the white space that a line ends with.
func end(line string) string { return line[len(trimRight(line)):] }

// neighbors are the lines of ours with which the nearest paired base lines before i0 and from i1 on are paired; -1 and len(ours) at the
// ends of the block.
func (m *merger) neighbors(i0, i1 int) (before, after int) {
	before, after = -1, len(m.ours)
	for k := i0 - 1; k >= 0; k-- {
		if m.pair[k] >= 0 {
			before = m.pair[k]
			break
		}
	}
	for k := i1; k < len(m.base); k++ {
		if m.pair[k] >= 0 {
			after = m.pair[k]
			break
		}
	}
	return before, after
}

// hunk replaces base lines i0 to i1 by the wanted lines j0 to j1 (half-open). It refuses what could be meant in two ways: unquoted lines
// between those that are removed or beside those that are added, the deletion of one of several equal lines, a new line that the block
// has already. It writes nothing before all of these are checked.
func (m *merger) hunk(i0, i1, j0, j1 int) bool {
	before, after := m.neighbors(i0, i1)
	first, last := -1, -1 // of ours, what is replaced
	for k := i0; k < i1; k++ {
		if m.pair[k] >= 0 {
			if first < 0 {
				first = m.pair[k]
			}
			last = m.pair[k]
		}
	}
	if first < 0 { // nothing of the file goes
		return m.insert(before+1, after, i0, i1-i0, j0, j1)
	}
	// First: if the file has the change already, the reasons for a refusal below do not matter.
	if m.agreed(before+1, after, j0, j1) {
		m.unquoted(after)
		return true
	}
	whole := last-first == i1-i0-1 // no line that was not quoted between those that go
	for k := i0; k < i1; k++ {
		whole = whole && m.pair[k] == first+k-i0
	}
	// A line that goes and is not as deep as quoted, where the others are, may be another one: the quoted one is gone.
	for k := i0; k < i1; k++ {
		if o := m.pair[k]; o >= 0 && trim(m.ours[o]) != "" && indent(m.base[k]) != indent(m.ours[o]) && m.unmoved() {
			return false
		}
	}
	if !whole || !m.held(i0, i1) || !m.bordered(before+1 < first, last+1 < after, i0, i1, j0, j1) {
		return false
	}
	// up and down are how far the deletion could slide, as in slides.
	if j0 == j1 { // a deletion: if the lines are one of several equal runs, it may not be clear which
		up, down := i0, i1
		for n := i1 - i0; up > 0 && trim(m.base[up-1]) == trim(m.base[up-1+n]); {
			up--
		}
		for n := i1 - i0; down < len(m.base) && trim(m.base[down]) == trim(m.base[down-n]); {
			down++
		}
		if (up < i0 || down > i1) && (m.between(up-1, down+1) || slices.Contains(m.same[up:down], false)) {
			return false
		}
	}
	// Lines that go, with lines that were not quoted beside them, may be others than those that were quoted.
	if j0 == j1 && (before+1 < first || last+1 < after) && !m.supported(i0, i1) {
		return false
	}
	for j := j0; j < j1; j++ {
		if m.twice(m.theirs[j]) {
			return false
		}
	}
	lines, ok := m.replaced(i0, i1, first, j0, j1)
	if !ok {
		return false
	}
	m.unquoted(first)
	m.out = append(m.out, lines...)
	m.next = last + 1
	return true
}

// supported reports whether lines i0 to i1 of the quotation, which go, have a line with words beside them that stays and is beside them in
// the file too.
func (m *merger) supported(i0, i1 int) bool {
	sure := func(i, step int) bool { // from the hunk outwards
		for ; i >= 0 && i < len(m.base) && m.pair[i] >= 0 && m.pair[i-step] >= 0 && m.pair[i] == m.pair[i-step]+step; i += step {
			if m.same[i] && worded(m.base[i]) {
				return true
			}
		}
		return false
	}
	return sure(i0-1, -1) || sure(i1, 1)
}

// held reports whether the hunk at base lines i0 to i1 has only one possible place: the run of lines around it that are adjacent in the
// quotation and in the file has a line with words that the block has only once, or the run is all of both. Brackets and blank lines are
// everywhere, and of a run that the block has twice either may be meant.
func (m *merger) held(i0, i1 int) bool {
	joined := func(i int) bool { // base lines i and i+1 are together in the file too
		return m.pair[i] >= 0 && m.pair[i+1] == m.pair[i]+1
	}
	lo, hi := i0, i1
	if i0 == i1 { // between two lines: the run of either
		lo, hi = max(0, i0-1), min(len(m.base), i1+1)
	}
	for lo > 0 && joined(lo-1) {
		lo--
	}
	for hi < len(m.base) && joined(hi-1) {
		hi++
	}
	if lo == 0 && hi == len(m.base) && hi-lo == len(m.ours) {
		return true
	}
	for i := lo; i < hi; i++ {
		if !m.same[i] || !worded(m.base[i]) {
			continue
		}
		if !slices.ContainsFunc(m.ours[:m.pair[i]], func(s string) bool { return key(s) == key(m.base[i]) }) &&
			!slices.ContainsFunc(m.ours[m.pair[i]+1:], func(s string) bool { return key(s) == key(m.base[i]) }) {
			return true
		}
	}
	return false
}

// insert adds wanted lines j0 to j1 before base line i0. Lines lo to hi of ours, at that place, were not quoted. gone is how many base
// lines the change replaces there that the file does not have.
func (m *merger) insert(lo, hi, i0, gone, j0, j1 int) bool {
	if m.agreed(lo, hi, j0, j1) {
		m.unquoted(hi)
		return true
	}
	if j0 == j1 {
		// What is to go is not there, unless it is a line in its place that was quoted in quite other words.
		if slices.ContainsFunc(m.ours[lo:hi], func(s string) bool { return trim(s) != "" }) {
			return false
		}
		// At the edge of the quotation it may be further out, where the block does not reach.
		m.unquoted(hi)
		return i0 > 0 && i0+gone < len(m.base)
	}
	// The change replaces lines that the file does not have, and what became of them is unknown.
	if gone > 0 {
		return false
	}
	if m.slides(j0, j1) || !m.held(i0, i0) {
		return false
	}
	// The nearest lines must be as quoted: beside one that is not, a part of it may have come to stand on a line of its own.
	sure := func(i int) bool { return i >= 0 && i < len(m.base) && m.pair[i] >= 0 && m.same[i] }
	if !sure(i0-1) && !sure(i0) {
		return false
	}
	// Quoted lines on one side, and the file has none of them: the place may be further from the lines on the other side.
	paired := func(o int) bool { return o >= 0 }
	if i0 > 0 && i0 < len(m.base) && (!slices.ContainsFunc(m.pair[:i0], paired) || !slices.ContainsFunc(m.pair[i0:], paired)) {
		return false
	}
	// Between two equal lines of which the file has one: before or after that?
	if i0 > 0 && i0 < len(m.base) && key(m.base[i0-1]) == key(m.base[i0]) && (m.pair[i0-1] < 0) != (m.pair[i0] < 0) {
		return false
	}
	if lo < hi {
		return false // before or after those that were not quoted?
	}
	var lines []Line
	for j := j0; j < j1; j++ {
		if m.twice(m.theirs[j]) {
			return false
		}
		line, ok := m.fresh(j)
		if !ok {
			return false
		}
		lines = append(lines, line)
	}
	m.unquoted(lo)
	m.out = append(m.out, lines...)
	m.next = hi
	return true
}

// slides reports whether the added lines j0 to j1 could also be further up or down, and whether that matters. A function that is added
// between two others begins and ends with lines that its neighbours have too (a brace, a blank line), so a longest common subsequence
// may cut it anywhere. That is harmless, unless unquoted lines are there, since the added lines could be on either side of them.
func (m *merger) slides(j0, j1 int) bool {
	up, down := j0, j1
	for n := j1 - j0; up > 0 && m.from[up-1] >= 0 && trim(m.theirs[up-1]) == trim(m.theirs[up-1+n]); {
		up--
	}
	for n := j1 - j0; down < len(m.theirs) && m.from[down] >= 0 && trim(m.theirs[down]) == trim(m.theirs[down-n]); {
		down++
	}
	last := -1
	for j := max(0, up-1); j < min(len(m.theirs), down+1); j++ {
		if m.from[j] < 0 {
			continue
		}
		o := m.pair[m.from[j]]
		beside := j >= up && j < j0 || j >= j1 && j < down
		if o >= 0 && beside && !m.same[m.from[j]] {
			return true // the file has one of them in other words, which would go along to another place
		}
		if o >= 0 && beside {
			// The lines that it might change places with are at another depth, or end in other blanks.
			if in, ok := m.move(j, indent(m.theirs[j])); !ok || trim(m.theirs[j]) != "" && in+trimLeft(m.theirs[j]) != m.ours[o] {
				return true
			}
		}
		if o < 0 && (up < j0 || down > j1) {
			return true // the file does not have one of the lines that it might be beside
		}
		if o < 0 {
			continue
		}
		if last >= 0 && o != last+1 && (up < j0 || down > j1) {
			return true
		}
		last = o
	}
	return false
}

// between reports whether ours has unquoted lines between the base lines i0 to i1. Indices outside of base are allowed.
func (m *merger) between(i0, i1 int) bool {
	last := -1
	for i := max(0, i0); i < min(len(m.base), i1); i++ {
		if o := m.pair[i]; o >= 0 {
			if last >= 0 && o != last+1 {
				return true
			}
			last = o
		}
	}
	return false
}

// agreed reports whether lines lo to hi of ours are the wanted lines already, at their depth: the person, or an earlier call, has made the
// same change.
func (m *merger) agreed(lo, hi, j0, j1 int) bool {
	if hi-lo != j1-j0 || lo == hi {
		return false
	}
	for k := range hi - lo {
		ours, theirs := m.ours[lo+k], m.theirs[j0+k]
		if in, ok := m.move(j0+k, indent(theirs)); trimLeft(ours) != trimLeft(theirs) || trim(theirs) != "" && (!ok || in != indent(ours)) {
			return false
		}
	}
	return true
}

// twice reports whether the block has a new line already, unquoted. The author of the change has not seen it and would add it a second
// time, such as an import that another edit has added meanwhile.
func (m *merger) twice(line string) bool {
	const least = 8 // bytes; a brace or a return may well come twice
	t := trim(line)
	if len(t) < least {
		return false
	}
	for k, have := range m.ours {
		if trim(have) == t && !slices.Contains(m.pair, k) {
			return true
		}
	}
	return false
}

// bordered reports whether a hunk with unquoted lines before it (above) or after it (below) still has only one place. A change line by
// line and a deletion keep their place; added lines could belong on either side of the unquoted ones, unless the outermost of them is
// similar to the line that it replaces.
func (m *merger) bordered(above, below bool, i0, i1, j0, j1 int) bool {
	if i1-i0 == j1-j0 || j0 == j1 {
		return true
	}
	if above && likeness(m.base[i0], m.theirs[j0]) < alike {
		return false
	}
	return !below || likeness(m.base[i1-1], m.theirs[j1-1]) >= alike
}

// replaced is what replaces the lines of ours from first on, which were quoted as base lines i0 to i1. Exactly quoted lines are replaced;
// others are merged word by word, so that words which the quotation got wrong stay as the file has them.
func (m *merger) replaced(i0, i1, first, j0, j1 int) ([]Line, bool) {
	exact := true
	for k := i0; k < i1; k++ {
		exact = exact && trim(m.base[k]) == trim(m.ours[first+k-i0])
	}
	lines := make([]Line, 0, j1-j0)
	if exact {
		for j := j0; j < j1; j++ {
			line, ok := m.fresh(j)
			if !ok {
				return nil, false
			}
			lines = append(lines, line)
		}
		return lines, true
	}
	// A merge keeps what the quotation got wrong, a deletion does not: lines that are not as quoted are never deleted.
	if j0 == j1 {
		for k := i0; k < i1; k++ {
			if !m.same[k] {
				return nil, false
			}
		}
		return nil, true
	}
	// Word by word, with all three sides at the file's indentation.
	base := make([]string, 0, i1-i0)
	for k := i0; k < i1; k++ {
		base = append(base, indent(m.ours[first+k-i0])+trimLeft(m.base[k]))
	}
	theirs := make([]string, 0, j1-j0)
	for j := j0; j < j1; j++ {
		line, ok := m.fresh(j)
		if !ok {
			return nil, false
		}
		theirs = append(theirs, line.Text)
	}
	text, ok := mergeWords(strings.Join(base, "\n"), strings.Join(m.ours[first:first+i1-i0], "\n"), strings.Join(theirs, "\n"))
	if !ok {
		return nil, false
	}
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Line{line, -1})
	}
	return lines, true
}

// fresh is a new line at the file's indentation; ok is false where that is not clear. Blank lines stay as given.
func (m *merger) fresh(j int) (Line, bool) {
	line := m.theirs[j]
	if trim(line) == "" {
		return Line{line, -1}, true
	}
	// Two blanks are a line break in prose, which is not indented throughout.
	if m.doubtful[j] && m.habit[j] && m.style.clean && m.style.only != 0 {
		line = trimRight(line)
	} else if m.doubtful[j] {
		return Line{}, false
	}
	if m.undecidable(line) {
		return Line{}, false
	}
	// It was quoted too, and the file does not have it: it is moved rather than new.
	for i, o := range m.pair {
		if o < 0 && worded(line) && trim(m.base[i]) == trim(line) {
			return Line{}, false
		}
	}
	in, ok := m.move(j, indent(line))
	return Line{in + trimLeft(line), -1}, ok
}

const (
	alike   = 0.65 // least likeness of two lines of which one may be the other quoted wrong; OpenCode's figure for blocks
	telling = 12   // least bytes of a line that identifies a block: shorter ones, such as "return nil", are in many
)

// key is equal for two lines that differ only in typography and in white space outside of literals. It is for comparing: the bytes written
// are never a key.
func key(line string) string { return collapse(Fold(line)) }

// SameWords says that a quotation and what the file has differ in white space, typography and escapes only.
func SameWords(quoted, have string) bool {
	k := key(have)
	return key(quoted) == k || key(unescape(quoted)) == k
}

// pairLines pairs each base line with a line of ours, in order: as many lines with equal keys as possible with small gaps, and between
// them lines that are similar, for which same is false. It is an alignment by dynamic programming; time and memory grow with the product
// of both lengths.
func pairLines(base, ours []string) (pair []int, same []bool) {
	b, o := make([]string, len(base)), make([]string, len(ours))
	for i, line := range base {
		b[i] = key(line)
	}
	for i, line := range ours {
		o[i] = key(line)
	}
	pair, same = make([]int, len(base)), make([]bool, len(base))
	if slices.Equal(b, o) {
		for i := range pair {
			pair[i], same[i] = i, true
		}
		return pair, same
	}
	// Two tables of a million cells take about 8 MB. Beyond that, nothing is paired and the merge is refused.
	if len(b)*len(o) > 1<<20 {
		for i := range pair {
			pair[i] = -1
		}
		return pair, same
	}
	// Lines with an exact partner somewhere are not paired loosely with another.
	inBase, inOurs := make(map[string]bool, len(b)), make(map[string]bool, len(o))
	for _, k := range b {
		inBase[k] = true
	}
	for _, k := range o {
		inOurs[k] = true
	}
	// Long lines weigh more, as they tell more; 40 bytes are enough for a line to be certain. A pair of equal lines that are not
	// blank outweighs any of lines that are only alike.
	score := func(i, k int) int {
		switch {
		case b[i] == o[k] && b[i] == "":
			return 3
		case b[i] == o[k]:
			s := 20 + 2*min(len(b[i]), 40)
			if base[i] == ours[k] {
				s += 3 // of several closing brackets the one that stands as quoted
			}
			return s
		case b[i] == "" || o[k] == "" || inOurs[b[i]] || inBase[o[k]]: // one of the two has its exact line on the other side
			return 0
		}
		if l := likeness(b[i], o[k]); l >= alike {
			return int(10 * l)
		}
		if grown(b[i], o[k]) {
			return 5
		}
		return 0
	}
	const skip = 1 // for a line of ours between two pairs: of equal pairings the tightest
	cells := make([]int32, (len(b)+1)*(len(o)+1))
	at := func(i, k int) *int32 { return &cells[i*(len(o)+1)+k] }
	scores := make([]int32, len(b)*len(o))
	for i := len(b) - 1; i >= 0; i-- {
		for k := len(o) - 1; k >= 0; k-- {
			s := int32(score(i, k))
			scores[i*len(o)+k] = s
			best := max(*at(i+1, k), *at(i, k+1)-skip)
			if s > 0 {
				best = max(best, *at(i+1, k+1)+s)
			}
			*at(i, k) = best
		}
	}
	for i := range pair {
		pair[i] = -1
	}
	// Lines of ours before the first pair cost nothing; of equally good starts the last one is the tightest.
	start := 0
	for k := range o {
		if *at(0, k) >= *at(0, start) {
			start = k
		}
	}
	// Follow the best cells from the start and read off the pairs.
	for i, k := 0, start; i < len(b) && k < len(o); {
		s := scores[i*len(o)+k]
		switch {
		case s > 0 && *at(i, k) == *at(i+1, k+1)+s:
			pair[i], same[i] = k, b[i] == o[k]
			i, k = i+1, k+1
		case *at(i, k) == *at(i+1, k):
			i++
		default:
			k++
		}
	}
	return pair, same
}

// likeness of two lines, from 0 to 1: one minus their distance divided by the length of the longer one, in code points, without white
// space around them. It is 0 without a comparison for lines over 2,000 bytes, which are generated, and for lines of very different length,
// which cannot reach alike.
func likeness(a, b string) float64 {
	a, b = trim(a), trim(b)
	if a == b {
		return 1
	}
	long, short := max(len(a), len(b)), min(len(a), len(b))
	if long > 2000 || float64(short) < alike*float64(long)*0.5 {
		return 0
	}
	return 1 - float64(distance(a, b))/float64(max(runeLen(a), runeLen(b)))
}

// grown reports whether one line is roughly the other with words added: a parameter, a condition. Four fifths of the shorter line's words
// must be in the longer one and be half of it; with fewer than four words that proves nothing.
func grown(a, b string) bool {
	x, y := words(a), words(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 5 || len(y) > 200 { // the last is always empty
		return false
	}
	both := -1
	for _, j := range common(x, y) {
		if j >= 0 {
			both++
		}
	}
	return 5*both >= 4*(len(x)-1) && 2*both >= len(y)-1
}

// word is a run of letters and digits, or one other character, with the white space before it. White space in a literal is a word.
type word struct {
	space, text string
}

// words takes a text apart. The last word is empty and holds the white space at the end.
func words(s string) []word {
	var out []word
	var open literals
	all, literal := s, 0 // literal is the end of the one that s begins in or behind
	for {
		rest := trimLeft(s)
		space := s[:len(s)-len(rest)]
		if at := len(all) - len(s); at < literal && space != "" {
			out, s = append(out, word{text: space}), rest
			continue
		}
		if strings.Contains(space, "\n") {
			open = literals{}
		}
		if rest == "" {
			return append(out, word{space: space})
		}
		n := 0
		for n < len(rest) {
			r, size := utf8.DecodeRuneInString(rest[n:])
			if !isWord(r) {
				break
			}
			n += size
		}
		if at := len(all) - len(rest); at >= literal {
			literal = max(literal, open.end(all, at))
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(rest)
			for n < len(rest) { // marks belong to what they stand on
				r, size := utf8.DecodeRuneInString(rest[n:])
				if !unicode.Is(unicode.M, r) {
					break
				}
				n += size
			}
		}
		out = append(out, word{space, rest[:n]})
		s = rest[n:]
	}
}

// mergeWords is mergeWordsOnce, whose result must be the same when the texts are read from the end: words that are repeated can be
// aligned in several ways, and where those lead to different texts nothing says which is meant.
func mergeWords(base, ours, theirs string) (text string, ok bool) {
	if base == ours {
		return theirs, true
	}
	if text, ok = mergeWordsOnce(base, ours, theirs); !ok {
		return "", false
	}
	back, ok := mergeWordsOnce(backward(base), backward(ours), backward(theirs))
	return text, ok && backward(back) == text
}

// backward is s with its characters in reverse order; bytes that are not UTF-8 count as one each.
func backward(s string) string {
	out := make([]byte, len(s))
	for at, rest := len(s), s; rest != ""; {
		_, n := utf8.DecodeRuneInString(rest)
		at -= n
		copy(out[at:], rest[:n])
		rest = rest[n:]
	}
	return string(out)
}

// mergeWordsOnce is the three-way merge of texts word by word. Words that both sides left alone, apart from typography, are those of ours,
// with their white space. ok is false when both changed the same place, or adjacent places, because neither author has seen the mixture:
// in f.failf("x", a), quoted as f.fail("x", a) and changed into f.fail(&err), nothing says which function the new argument is for. And when
// the texts are too long for the table of common.
func mergeWordsOnce(base, ours, theirs string) (text string, ok bool) {
	b, o, t := words(base), words(ours), words(theirs)
	if len(b)*max(len(o), len(t)) > 1<<20 {
		return "", false
	}
	toOurs, toTheirs := common(b, o), common(b, t)
	if moved(b, o, t, toOurs, toTheirs) {
		return "", false
	}
	var out strings.Builder
	near := byNobody
	i, k, j := 0, 0, 0 // next word of base, ours, theirs
	for i < len(b) {
		// The next base word that both have: all before it is one place.
		e := i
		for e < len(b) && (toOurs[e] < 0 || toTheirs[e] < 0) {
			e++
		}
		if e == len(b) {
			return "", false // the end is a word of all three
		}
		mine, yours := o[k:toOurs[e]], t[j:toTheirs[e]]
		ob, tb, bb := o[toOurs[e]], t[toTheirs[e]], b[e]
		space, ok := mergeForm(bb.space, ob.space, tb.space) // before the common word
		ourChange, theirChange := !equalWords(b[i:e], mine), !equalWords(b[i:e], yours)
		if spaced := b[i].space != "" || theirChange && len(yours) > 0 && yours[0].space != ""; (ourChange && e > i && near == byTheirs || theirChange && near == byOurs) && !spaced {
			return "", false
		}
		switch {
		case ourChange && theirChange && !slices.Equal(mine, yours):
			agreed, clear := within(b[i:e], mine, yours)
			if !clear {
				return "", false
			}
			put(&out, agreed)
		case theirChange && !ourChange && e == i: // words are added
			// With other white space in the file, nothing says on which side of it they belong.
			if ok = ok && ob.space == bb.space && !slidesOver(b, o, toOurs, i, e, yours); ok {
				put(&out, yours)
			}
		case theirChange && !ourChange && len(yours) == 0: // words are removed, and of the white space around them one is left
			ok = !slidesOver(b, o, toOurs, i, e, b[i:e])
			switch was := b[i].space; {
			case mine[0].space == was && ob.space == bb.space:
				space = tb.space
			case tb.space == was && tb.space != bb.space:
				space = mine[0].space
			case tb.space == bb.space && (tb.space != was || mine[0].space == ob.space):
				space = ob.space
			default:
				ok = false
			}
		case theirChange && !ourChange:
			first, clear := mergeForm(b[i].space, mine[0].space, yours[0].space)
			ok = ok && clear
			out.WriteString(first)
			out.WriteString(yours[0].text)
			put(&out, yours[1:])
		case e > i && len(mine)+len(yours) == 0 && !ok: // both removed the words, and what is left may be the white space before them
			space, ok = mergeForm(b[i].space, ob.space, tb.space)
		default: // changed by ours or by both alike, or no more than typography and white space: the file's words stay
			put(&out, mine)
		}
		if !ok {
			return "", false // white space has been changed to two different ones
		}
		out.WriteString(space)
		// Typography alone is a change too where the file has the word as it was quoted.
		kept, clear := mergeForm(bb.text, ob.text, tb.text)
		if !clear {
			return "", false
		}
		out.WriteString(kept)
		switch {
		case ourChange && !theirChange && e > i: // a word that the file has in another form
			near = byOurs
		case theirChange && !ourChange, theirChange && !slices.Equal(mine, yours):
			near = byTheirs
		}
		if bb.space != "" || worded(bb.text) || trim(bb.text) == "" {
			near = byNobody
		}
		i, k, j = e+1, toOurs[e]+1, toTheirs[e]+1
	}
	return out.String(), true
}

// within merges one place of the three texts in which theirs has the words that ours has instead of quoted ones, and changes others of it,
// which ours has as they were quoted: the quotation got the former wrong, and the new text has them right.
func within(base, ours, theirs []word) (merged []word, ok bool) {
	equal := func(a, b word) bool { return a.text == b.text && a.space == b.space }
	top, end := 0, 0
	for top < min(len(ours), len(theirs)) && equal(ours[top], theirs[top]) {
		top++
	}
	for end < min(len(ours), len(theirs))-top && equal(ours[len(ours)-1-end], theirs[len(theirs)-1-end]) {
		end++
	}
	rest := ours[top : len(ours)-end] // what theirs changes
	if len(rest) == 0 || !slices.ContainsFunc(slices.Concat(ours[:top], ours[len(ours)-end:]), func(w word) bool { return worded(w.text) }) {
		return nil, false
	}
	// Behind what the prefix stands for, and before what the end stands for.
	for at := min(top, 1); at+len(rest)+min(end, 1) <= len(base); at++ {
		if slices.EqualFunc(base[at:at+len(rest)], rest, equal) && (top > 0 || at == 0) && (end > 0 || at+len(rest) == len(base)) {
			return theirs, true
		}
	}
	return nil, false
}

// Whose change is next to a place of mergeWordsOnce, with nothing but signs between the two.
const (
	byNobody = iota
	byOurs
	byTheirs
)

// moved reports whether theirs has a word in another place than base, which ours has in other typography: it is added there as it was
// quoted, and the file's own form of it would be lost.
func moved(base, ours, theirs []word, toOurs, toTheirs []int) bool {
	gone := map[string]bool{}
	kept := make(map[int]bool, len(toTheirs))
	for i, w := range base {
		if toTheirs[i] >= 0 {
			kept[toTheirs[i]] = true
		} else if toOurs[i] >= 0 && ours[toOurs[i]].text != w.text {
			gone[w.text] = true
		}
	}
	for j, w := range theirs {
		if !kept[j] && gone[w.text] {
			return true
		}
	}
	return false
}

// mergeForm is the three-way merge of what the three texts have in different forms, the white space between two words or a word with other
// typography: that of ours unless only theirs changed it. ok is false when both changed it to different ones.
func mergeForm(base, ours, theirs string) (form string, ok bool) {
	switch {
	case theirs == base || ours == theirs:
		return ours, true
	case ours == base:
		return theirs, true
	}
	return "", false
}

// slidesOver reports whether words that are added between base words i-1 and e, or removed there, could as well be those further down or up,
// because they begin or end with the words there, and ours breaks the lines between those otherwise than the base or has them in other
// typography: which of them the change means then makes a difference.
func slidesOver(base, ours []word, toOurs []int, i, e int, moved []word) bool {
	otherForm := func(k int) bool { return toOurs[k] >= 0 && ours[toOurs[k]] != base[k] }
	n := len(moved)
	at := func(k int) string { // of the words, repeated as they slide
		return moved[(k%n+n)%n].text
	}
	for d := 0; e+d < len(base) && base[e+d].text == at(d) && base[e+d].text != ""; d++ {
		if otherForm(e + d) {
			return true
		}
	}
	for d := 1; i-d >= 0 && base[i-d].text == at(-d); d++ {
		if otherForm(i - d) {
			return true
		}
	}
	return false
}

// put writes words with the white space before them, so that each brings its own spacing along.
func put(out *strings.Builder, ws []word) {
	for _, w := range ws {
		out.WriteString(w.space)
		out.WriteString(w.text)
	}
}

// equalWords compares words, not the white space between them: a formatter's work is not a change. Typography does not count
// either.
func equalWords(a, b []word) bool {
	return slices.EqualFunc(a, b, func(x, y word) bool { return x.text == y.text || Fold(x.text) == Fold(y.text) })
}

// common gives for each word of a its index in b, -1 for none: a longest common subsequence of the words, apart from typography.
func common(a, b []word) []int {
	x, y := make([]string, len(a)), make([]string, len(b))
	for i, w := range a {
		x[i] = Fold(w.text)
	}
	for i, w := range b {
		y[i] = Fold(w.text)
	}
	return subsequence(x, y)
}

// subsequence gives for each item of a its index in b in a longest common subsequence, -1 for none. It pairs the common end first, then
// the common beginning, because most texts differ in one place. Where the table for the rest would be larger than a million cells, only
// those are paired.
func subsequence(a, b []string) []int {
	out := make([]int, len(a))
	for i := range out {
		out[i] = -1
	}
	// The table is only built for the middle.
	n, m := len(a), len(b)
	for n > 0 && m > 0 && a[n-1] == b[m-1] {
		n, m = n-1, m-1
		out[n] = m
	}
	top := 0
	for top < min(n, m) && a[top] == b[top] {
		out[top] = top
		top++
	}
	rows, cols := n-top, m-top
	if rows <= 0 || cols <= 0 || rows*cols > 1<<20 {
		return out
	}
	best := make([]int32, (rows+1)*(cols+1))
	at := func(i, j int) *int32 { return &best[i*(cols+1)+j] }
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			if a[top+i] == b[top+j] {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		switch {
		case a[top+i] == b[top+j]:
			out[top+i] = top + j
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return out
}

// align gives for each new line the index of the quoted line that it is, apart from white space around it, -1 for none. It is subsequence
// with weights: of several equal lines it prefers those with the same indentation, so that of two closing brackets the one at the new
// line's depth is the one that stays.
func align(old, lines []string) []int {
	from := make([]int, len(lines))
	for j := range from {
		from[j] = -1
	}
	match := func(i, j int) int32 { // what a pair is worth; two pairs outweigh any one
		switch {
		case trim(old[i]) != trim(lines[j]):
			return 0
		case indent(old[i]) == indent(lines[j]) || trim(old[i]) == "":
			return 3
		}
		return 2
	}
	n, m, top := len(old), len(lines), 0
	for n > 0 && m > 0 && match(n-1, m-1) == 3 {
		n, m = n-1, m-1
		from[m] = n
	}
	for top < min(n, m) && match(top, top) == 3 {
		from[top] = top
		top++
	}
	rows, cols := n-top, m-top
	if rows <= 0 || cols <= 0 || rows*cols > 1<<20 {
		return from
	}
	best := make([]int32, (rows+1)*(cols+1))
	at := func(i, j int) *int32 { return &best[i*(cols+1)+j] }
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			if v := match(top+i, top+j); v > 0 {
				*at(i, j) = max(*at(i, j), *at(i+1, j+1)+v)
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		v := match(top+i, top+j)
		switch {
		case v > 0 && *at(i, j) == *at(i+1, j+1)+v:
			from[top+j] = top + i
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return from
}
