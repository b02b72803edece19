package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
)

// AttackKinds are edits that a loose engine gets wrong without an error: what was made already is made again, lines that nobody has
// written are taken for the file's, an abbreviation becomes the file's text.
var AttackKinds = []string{"made already", "made already, misquoted", "made in part", "two places in one quotation", "invented line kept", "invented line removed",
	"all of a name", "all of a block, loosely", "other blanks in the file", "other blanks in the quotation", "part of a long line", "mixed line endings", "tabs and spaces mixed",
	"new text abbreviated", "new text abbreviated at its end", "numbers in the quotation only", "numbers in the new text only", "output of a tool", "entities in the quotation only", "typography in both texts"}

// exactly are the kinds in which an exact quotation is no proof that the new text is meant as it is.
var exactly = map[string]bool{"made already": true, "made already, misquoted": true, "made in part": true, "new text abbreviated": true,
	"new text abbreviated at its end": true, "numbers in the new text only": true}

// Attacks makes cases of one file, as Stories does.
func Attacks(r *rand.Rand, name, before, after string, most int) (out []Case) {
	before, after = strings.ReplaceAll(before, "\r\n", "\n"), strings.ReplaceAll(after, "\r\n", "\n")
	if !strings.HasSuffix(before, "\n") || strings.Contains(before, "\r") || strings.Count(before, "\n") < 12 {
		return nil
	}
	a := lines(before)
	var edits []diff.Edit
	var b []string
	if after != "" && after != before {
		b = lines(after)
		edits = diff.Strings(a, b)
	}
	for try := 0; len(out) < most && try < most*10; try++ {
		s := draw(r, before, a, b, edits, len(edits) > 0 && r.IntN(2) == 0)
		if s == nil {
			continue
		}
		kind := AttackKinds[r.IntN(len(AttackKinds))]
		if c, ok := s.attack(kind); ok && c.Old != c.New && strings.TrimSpace(c.Old) != "" && (c.Fits != nil || exactly[kind] || !c.elsewhere()) {
			c.Kind, c.File = kind, name
			if c.Whole == "" {
				c.Whole = kind
			}
			out = append(out, c)
		}
	}
	return out
}

// abbreviations are lines that models write for code that they do not repeat.
var abbreviations = []string{"// ... existing code ...", "// ...", "// … rest of the code unchanged", "# ... rest of the function ...", "/* ... existing code ... */",
	"// (rest unchanged)", "<!-- ... existing markup ... -->", "{/* ... existing code ... */}", "# ...", "// ... other cases ...", "-- ... existing code ...", "// [existing code]",
	"// remaining code stays the same", "// ... keep the rest ...", "... (unchanged) ..."}

// inventions are lines that no file has.
var inventions = []string{"log.Printf(\"entering phase %d\", phase)", "defer tracker.Release(token)", "if featureEnabled(ctx) {", "// NOTE: keep in sync with the schema", "self.audit(event)",
	"const retries = 3;", "assert(isReady());", "}", "return nil, err", "metrics.count += 1"}

// attack turns an edit into a case of the kind; false where the edit is not one for it.
func (s *story) attack(kind string) (Case, bool) {
	r := s.r
	switch kind {
	case "made already", "made already, misquoted":
		if kind != AttackKinds[0] && !s.damage(misquotes[r.IntN(len(misquotes))]) {
			return Case{}, false
		}
		c := s.build()
		// One of several empty lines goes; where the file has another one, that may go as well.
		onlyBlank := !slices.ContainsFunc(s.block, func(e entry) bool { return e.mark != ' ' && !blank(e.file) })
		if c.Want == c.Text || len(c.Also) > 0 || onlyBlank || c.elsewhere() {
			return c, false
		}
		// It is said once more to the file that has it. Only where the very lines are somewhere else too, the edit may be meant for them.
		was, new := strings.Count(c.Want, c.Old), strings.Count(c.New, c.Old)
		bare := func(in string) int { // the same, apart from white space around lines
			return strings.Count("\n"+trimmed(in)+"\n", "\n"+trimmed(strings.TrimSuffix(c.Old, "\n"))+"\n")
		}
		c.Text = c.Want
		return c, was <= new && bare(c.Want) <= bare(c.New)
	case "made in part":
		// The first of two changes is in the file already.
		first, last := -1, -1
		for i, e := range s.block {
			if e.mark != ' ' {
				if first < 0 {
					first = i
				}
				last = i
			}
		}
		end := first
		for end >= 0 && end < len(s.block) && s.block[end].mark != ' ' {
			end++
		}
		if first < 0 || end > last || s.block[end].mark != ' ' {
			return Case{}, false
		}
		c := s.build()
		part := &story{r: r, lines: s.lines, at: s.at, n: s.n, block: slices.Clone(s.block)}
		for i := first; i < end; i++ {
			e := &part.block[i]
			e.inFile = e.mark == '+'
			e.mark = ' '
		}
		c.Text = part.build().Text
		return c, c.Text != c.Want && len(c.Also) == 0
	case "two places in one quotation":
		n := 2 + r.IntN(4)
		if len(s.lines) < s.n+n+20 {
			return Case{}, false
		}
		c := s.build()
		at := r.IntN(len(s.lines) - n)
		if at < s.at+s.n+6 && at+n > s.at-6 || len(c.Also) > 0 {
			return c, false
		}
		more := strings.Join(s.lines[at:at+n], "\n")
		if blank(more) || strings.Count(c.Text, more) != 1 {
			return c, false
		}
		if at > s.at == (r.IntN(4) > 0) {
			c.Old, c.New = c.Old+"\n"+more, c.New+"\n"+more
		} else {
			c.Old, c.New = more+"\n"+c.Old, more+"\n"+c.New
		}
		return c, true
	case "invented line kept", "invented line removed":
		for range 1 + r.IntN(2) {
			i := r.IntN(len(s.block) + 1)
			in := ""
			if i > 0 {
				in = indentOf(s.block[i-1].said)
			}
			l := in + inventions[r.IntN(len(inventions))]
			known := func(have string) bool { return strings.TrimSpace(have) == strings.TrimSpace(l) }
			if slices.ContainsFunc(s.lines, known) || slices.ContainsFunc(s.block, func(e entry) bool { return known(e.said) }) {
				return Case{}, false
			}
			e := entry{mark: ' ', said: l, quoted: true}
			if kind == "invented line removed" {
				e.mark = '-'
			}
			s.block = slices.Insert(s.block, i, e)
		}
		c := s.build()
		return c, len(c.Also) == 0 || strings.TrimSpace(c.New) != ""
	case "all of a name":
		var names []string
		for _, l := range s.lines {
			names = append(names, strings.FieldsFunc(l, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') })...)
		}
		if len(names) == 0 {
			return Case{}, false
		}
		old := names[r.IntN(len(names))]
		text := join(s.lines)
		if n := strings.Count(text, old); len(old) < 4 || n < 2 || n > 200 {
			return Case{}, false
		}
		new := []string{old + "Ext", "my" + old, strings.ToUpper(old), "$1" + old}[r.IntN(4)]
		return Case{Text: text, Old: old, New: new, Want: strings.ReplaceAll(text, old, new), All: true}, new != old
	case "all of a block, loosely":
		return s.allLoosely()
	case "other blanks in the file", "other blanks in the quotation":
		sorts := []string{"\u00a0", "\u2003", "\u3000", "\u202f", "\u2009", "\u2007"}
		odd := sorts[r.IntN(len(sorts))]
		swap := func(l string, some bool) string {
			in := indentOf(l)
			var b strings.Builder
			for _, c := range l[len(in):] {
				if c == ' ' && (!some || r.IntN(2) == 0) {
					b.WriteString(odd)
				} else {
					b.WriteRune(c)
				}
			}
			return in + b.String()
		}
		if strings.ContainsAny(join(s.lines), strings.Join(sorts, "")) {
			return Case{}, false
		}
		if kind == "other blanks in the quotation" {
			some := r.IntN(2) == 0
			ok := s.say(func(l string) string { return swap(l, some) })
			if r.IntN(4) == 0 { // the indentation too
				s.say(func(l string) string {
					in := indentOf(l)
					return strings.ReplaceAll(in, " ", odd) + l[len(in):]
				})
			}
			return s.build(), ok
		}
		done := false
		for i := range s.block {
			e := &s.block[i]
			switch {
			case e.mark == ' ' && e.inFile && r.IntN(2) == 0:
				was := e.file
				e.file = swap(e.file, true)
				done = done || was != e.file
			case e.mark == '-' && i+1 < len(s.block) && s.block[i+1].mark == '+' && (i == 0 || s.block[i-1].mark == ' ') && (i+2 == len(s.block) || s.block[i+2].mark == ' '):
				// One blank well before the first difference.
				b := &s.block[i+1]
				n := 0
				for n < min(len(e.file), len(b.file)) && e.file[n] == b.file[n] {
					n++
				}
				in := len(indentOf(e.file))
				if k := strings.Index(e.file[in:], " "); k > 0 && in+k+8 < n {
					e.file, b.file, done = e.file[:in+k]+odd+e.file[in+k+1:], b.file[:in+k]+odd+b.file[in+k+1:], true
				}
			}
		}
		return s.build(), done
	case "typography in both texts":
		curl := []*strings.Replacer{strings.NewReplacer(`"`, "”", "'", "’"), strings.NewReplacer(`"`, "“"), strings.NewReplacer("-", "–"), strings.NewReplacer("...", "…", "'", "‘")}[r.IntN(4)]
		if strings.ContainsAny(join(s.lines), "“”‘’–…") {
			return Case{}, false
		}
		ok := s.say(curl.Replace)
		return s.build(), ok
	case "part of a long line":
		return s.longLine()
	case "mixed line endings":
		return s.mixedEnds()
	case "tabs and spaces mixed":
		return s.mixedTabs()
	case "new text abbreviated", "new text abbreviated at its end":
		return s.abbreviated(kind != "new text abbreviated")
	case "numbers in the quotation only", "numbers in the new text only", "output of a tool":
		form := []string{"%d: %s", "%d\t%s", "%6d\t%s", "%5d| %s", "%05d| %s", "  Line %d: %s", "%d→%s", "%d:%s", "%d-%s"}[r.IntN(9)]
		c := s.build()
		number := func(text string) string {
			all := strings.Split(text, "\n")
			for i, l := range all {
				all[i] = fmt.Sprintf(form, s.at+1+i, l)
			}
			return strings.Join(all, "\n")
		}
		switch kind {
		case "numbers in the quotation only":
			c.Old = number(c.Old)
		case "numbers in the new text only":
			c.New = number(c.New)
		default:
			c.Old, c.New = number(c.Old), number(c.New)
			frame := [][2]string{{"<file>\n", "\n</file>"}, {"<content>\n", "\n</content>"}, {"```\n", "\n```"}, {"", "\n\n(End of file - total 200 lines)"}, {"", ""}}[r.IntN(5)]
			c.Old, c.New = frame[0]+c.Old+frame[1], frame[0]+c.New+frame[1]
		}
		return c, len(c.Also) == 0
	case "entities in the quotation only":
		c := s.build()
		c.Old = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(c.Old)
		return c, c.Old != s.build().Old && len(c.Also) == 0
	}
	panic("unknown kind " + kind)
}

// allLoosely puts copies of a few lines elsewhere, at depths of their own, and changes all of them by a quotation at yet another depth.
func (s *story) allLoosely() (Case, bool) {
	r := s.r
	n := 1 + r.IntN(3)
	if n > s.n {
		return Case{}, false
	}
	block := slices.Clone(s.lines[s.at : s.at+n])
	if blank(block[0]) || blank(block[n-1]) || len(strings.TrimSpace(block[0])) < 8 {
		return Case{}, false
	}
	cut := margin(block)
	bare := each(block, func(l string) string { return strings.TrimPrefix(l, cut) })
	k := r.IntN(n)
	now := slices.Clone(bare)
	now[k] = reword(r, bare[k])
	if now[k] == bare[k] {
		return Case{}, false
	}
	unit := unitOfFile(s.lines)
	deep := []string{"", unit, unit + unit}
	same := r.IntN(2) == 0
	at := func(in string, lines []string) []string {
		return each(lines, func(l string) string { return in + l })
	}
	var have, want []string
	depth := deep[r.IntN(3)]
	for i, l := range s.lines {
		if i == s.at || i == 0 || i == len(s.lines)-1 || r.IntN(40) == 0 && (i < s.at || i > s.at+n) {
			in := depth
			if !same {
				in = deep[r.IntN(3)]
			}
			have, want = append(have, at(in, bare)...), append(want, at(in, now)...)
			have, want = append(have, ""), append(want, "")
		}
		if i < s.at || i >= s.at+n {
			have, want = append(have, l), append(want, l)
		}
	}
	count := func(text, block []string) int {
		return strings.Count(strings.ReplaceAll("\n"+trimmed(join(text)), "\n", "\n\n"), "\n"+strings.ReplaceAll(trimmed(strings.Join(block, "\n")), "\n", "\n\n")+"\n")
	}
	if count(have, bare) != count(want, now) || count(want, bare) > 0 {
		return Case{}, false // the file has more of them, or the new lines
	}
	said := deep[r.IntN(3)]
	pad := []string{"", "", " "}[r.IntN(3)]
	quote := func(lines []string) string {
		return strings.Join(each(at(said, lines), func(l string) string { return l + pad }), "\n")
	}
	c := Case{Text: join(have), Old: quote(bare), New: quote(now), Want: join(want), All: true}
	if strings.Contains(c.Text, c.Old) { // an exact quotation means the places that have it exactly, of which there may be fewer
		c.Also = append(c.Also, strings.ReplaceAll(c.Text, c.Old, c.New))
	}
	return c, strings.TrimSpace(bare[k]) != ""
}

// longLine is a change within a line of thousands of bytes, quoted in part with other blanks or a word misremembered.
func (s *story) longLine() (Case, bool) {
	r := s.r
	var b strings.Builder
	for i := 0; b.Len() < 2000+r.IntN(60_000); i++ {
		l := strings.TrimSpace(s.lines[r.IntN(len(s.lines))])
		fmt.Fprintf(&b, "%s /*%d*/ ", l, i)
	}
	long := strings.TrimSpace(b.String())
	fields := strings.Split(long, " ")
	n := 4 + r.IntN(12)
	if len(fields) < n+10 {
		return Case{}, false
	}
	i := r.IntN(len(fields) - n)
	part := slices.Clone(fields[i : i+n])
	k := 1 + r.IntN(n-2)
	now := slices.Clone(part)
	now[k] = reword(r, part[k])
	old := strings.Join(part, " ")
	if now[k] == part[k] || strings.Count(long, old) != 1 || strings.Contains(join(s.lines), old) || strings.TrimSpace(part[0]) == "" || strings.TrimSpace(part[n-1]) == "" {
		return Case{}, false
	}
	have, want := slices.Clone(s.lines), slices.Clone(s.lines)
	have[s.at] = long
	want[s.at] = strings.Join(slices.Concat(fields[:i], now, fields[i+n:]), " ")
	c := Case{Text: join(have), Want: join(want), Old: old, New: strings.Join(now, " ")}
	j := r.IntN(n)
	both := func(f func(l []string) string) { c.Old, c.New = f(part), f(now) }
	switch r.IntN(5) {
	case 0: // exact
	case 1:
		both(func(l []string) string { return strings.Join(l[:j+1], " ") + "  " + strings.Join(l[j+1:], " ") })
	case 2, 3:
		both(func(l []string) string { return " " + strings.Join(l, " ") + " " })
	default:
		if j == k {
			return c, false
		}
		w := reword(r, part[j])
		part[j], now[j] = w, w
		both(func(l []string) string { return strings.Join(l, " ") })
	}
	c.Old, c.New = strings.TrimSuffix(c.Old, "  "), strings.TrimSuffix(c.New, "  ")
	return c, true
}

// mixedEnds is an edit in a file in which each line has its own line ending. Lines that stay keep theirs, new ones may have either.
func (s *story) mixedEnds() (Case, bool) {
	r := s.r
	if r.IntN(2) == 0 && !s.damage(misquotes[r.IntN(len(misquotes))]) {
		return Case{}, false
	}
	c := s.build()
	if len(c.Also) > 0 || c.elsewhere() {
		return c, false
	}
	var text strings.Builder
	var wanted []string // with their ending; without one where it may have either
	share := []int{2, 8}[r.IntN(2)]
	add := func(l string, stays bool) {
		end := "\n"
		if r.IntN(share) == 0 {
			end = "\r\n"
		}
		text.WriteString(l + end)
		if stays {
			wanted = append(wanted, l+end)
		}
	}
	for _, l := range slices.Concat(s.lines[:s.at], s.above) {
		add(l, true)
	}
	for _, e := range s.block {
		if e.inFile && e.mark != '+' {
			add(e.file, false)
		}
		// Of several equal lines, any may be the one that stays.
		several := 0
		for _, o := range s.block {
			if strings.TrimSpace(o.file) == strings.TrimSpace(e.file) {
				several++
			}
		}
		switch {
		case !e.inFile || e.mark == '-':
		case e.mark == ' ' && several == 1:
			all := text.String()
			wanted = append(wanted, all[strings.LastIndexByte(strings.TrimSuffix(all, "\n"), '\n')+1:])
		default:
			wanted = append(wanted, e.file)
		}
	}
	for _, l := range slices.Concat(s.below, s.lines[s.at+s.n:]) {
		add(l, true)
	}
	c.Text = text.String()
	if r.IntN(3) == 0 {
		c.Old, c.New = strings.ReplaceAll(c.Old, "\n", "\r\n"), strings.ReplaceAll(c.New, "\n", "\r\n")
	}
	c.Fits = func(got string) bool {
		rest := got
		for _, l := range wanted {
			ok := false
			if strings.HasSuffix(l, "\n") {
				rest, ok = strings.CutPrefix(rest, l)
			} else if rest, ok = strings.CutPrefix(rest, l); ok {
				rest, ok = strings.CutPrefix(strings.TrimPrefix(rest, "\r"), "\n")
			}
			if !ok {
				return false
			}
		}
		return rest == ""
	}
	return c, true
}

// mixedTabs is an edit in a file that is indented by tabs in some lines and by spaces in others, quoted with one of them only. New lines
// must be as deep as they should be when a tab is as wide as the quotation says.
func (s *story) mixedTabs() (Case, bool) {
	r := s.r
	wide := []int{4, 8}[r.IntN(2)]
	tabs := strings.Contains(indents(s.lines), "\t")
	if unit := unitOf(s.lines); !tabs && unit != wide {
		return Case{}, false
	}
	width := func(l string) int {
		n := 0
		for _, c := range indentOf(l) {
			if n++; c == '\t' {
				n += wide - 1
			}
		}
		return n
	}
	as := func(l string, tab bool) string {
		n := width(l)
		if tab {
			return strings.Repeat("\t", n/wide) + strings.Repeat(" ", n%wide) + strings.TrimLeft(l, " \t")
		}
		return strings.Repeat(" ", n) + strings.TrimLeft(l, " \t")
	}
	var have, want []string
	add := func(l string, stays bool) {
		if !blank(l) {
			l = as(l, r.IntN(2) == 0)
		}
		have = append(have, l)
		if stays {
			want = append(want, l)
		}
	}
	for _, l := range s.lines[:s.at] {
		add(l, true)
	}
	for _, e := range s.block {
		if e.mark == '+' {
			want = append(want, "+"+e.file)
			continue
		}
		add(e.file, e.mark == ' ')
	}
	for _, l := range s.lines[s.at+s.n:] {
		add(l, true)
	}
	c := s.build()
	tab := r.IntN(2) == 0
	quote := func(text string) string {
		return strings.Join(each(strings.Split(text, "\n"), func(l string) string { return as(l, tab) }), "\n")
	}
	c.Text, c.Old, c.New = join(have), quote(c.Old), quote(c.New)
	// Where the widths cannot be told apart, there is one right answer all the same: a new line is as deep as the lines beside it are.
	c.Fits = func(got string) bool {
		all := lines(got)
		if len(all) != len(want) {
			return false
		}
		for i, l := range want {
			if new, ok := strings.CutPrefix(l, "+"); ok && (i >= len(have) || have[i] != l) {
				if strings.TrimLeft(new, " \t") != strings.TrimLeft(all[i], " \t") || !blank(new) && width(new) != width(all[i]) {
					return false
				}
			} else if all[i] != l && !(blank(l) && blank(all[i])) {
				return false
			}
		}
		return true
	}
	c.Want = "" // only Fits counts
	return c, len(c.Also) == 0
}

// abbreviated is an edit whose new text has a comment for some of the quoted lines. They stay, or it is refused.
func (s *story) abbreviated(atEnd bool) (Case, bool) {
	r := s.r
	c := s.build()
	if len(c.Also) > 0 || c.Want == c.Text {
		return c, false
	}
	// The longest run of context lines.
	from, n := 0, 0
	for i := 0; i < len(s.block); i++ {
		k := i
		for k < len(s.block) && s.block[k].mark == ' ' && s.block[k].quoted {
			k++
		}
		if k-i > n && (!atEnd || k == len(s.block)) {
			from, n = i, k-i
		}
		i = k
	}
	if n < 3 {
		return c, false
	}
	if !atEnd {
		from, n = from+r.IntN(2), n-1
	}
	words := 0
	var new []string
	mark := abbreviations[r.IntN(len(abbreviations))]
	for i, e := range s.block {
		switch {
		case i >= from && i < from+n:
			if i == from {
				new = append(new, indentOf(e.said)+mark)
			}
			if strings.ContainsFunc(e.said, func(c rune) bool { return c >= 'a' && c <= 'z' }) {
				words++
			}
		case e.mark != '-' && e.quoted:
			new = append(new, e.said)
		}
	}
	if words < 2 || strings.Contains(join(s.lines), mark) {
		return c, false
	}
	c.New, c.Whole = strings.Join(new, "\n"), mark
	return c, true
}
