package replay

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/diff"
)

// entry is one line of a story: what the file has, what the model writes for it, and what becomes of it.
type entry struct {
	mark           byte   // ' ' stays, '-' goes, '+' comes
	file, said     string // the line in the file (for '+' in the file afterwards), and in the model's quotation
	inFile, quoted bool
}

// story is an edit of a block together with everything that makes its quotation differ from the file.
type story struct {
	r            *rand.Rand
	lines        []string // the file
	at, n        int      // the block's lines
	block        []entry
	ended        bool // both texts end in a newline
	head, tail   int  // bytes that the quotation leaves out of its first and its last line
	crlf         bool
	noFinal      bool // the file's last line has no newline
	extra        []string
	above, below []string // lines that the file has got elsewhere since
	copied       []string // of them those that are a copy of the block, with words changed
}

// StoryKinds are the damages, each applied to a quotation or to the file since it was quoted.
var StoryKinds = []string{"as it is", "lines left out", "shifted", "another unit", "first line bare", "deeper from the second line", "curled", "curled in places",
	"file curled", "blanks stripped", "blanks put behind all", "blanks put behind some", "decomposed", "entities", "escaped", "numbered", "line stuttered", "lines swapped",
	"comment forgotten", "lines joined", "words misremembered", "elided", "copy elsewhere", "copy elsewhere and stale", "lines added since", "lines removed since", "lines reworded since",
	"changed line reworded since", "wrapped since", "indented since", "part of a line", "blank lines doubled", "blank lines lost", "no-break blanks", "tab inside"}

// tell makes one case of a hunk: the first damage is the kind, a third of the cases get another one on top.
func (s *story) tell(kind string) (Case, bool) {
	if !s.damage(kind) {
		return Case{}, false
	}
	name := kind
	if s.r.IntN(3) == 0 {
		more := StoryKinds[s.r.IntN(len(StoryKinds))]
		if more == kind || !s.damage(more) {
			return Case{}, false
		}
		name += " + " + more
	}
	if s.copied != nil && s.nearerCopy() {
		return Case{}, false
	}
	s.crlf = s.r.IntN(6) == 0
	s.noFinal = s.r.IntN(12) == 0 && !blank(s.lines[len(s.lines)-1]) // an empty last line would be the end of the one before it
	s.ended = s.r.IntN(5) == 0 && s.tail == 0
	c := s.build()
	c.Kind, c.Whole = kind, name
	return c, c.Old != c.New && c.Want != c.Text && strings.TrimSpace(c.Old) != "" && !c.elsewhere()
}

// nearerCopy reports whether the copy has as many of the quoted lines as the block itself, or more: then nothing says that the block is meant.
func (s *story) nearerCopy() bool {
	here, there := 0, 0
	for _, e := range s.block {
		if e.mark == '+' || !e.quoted || blank(e.said) {
			continue
		}
		if e.inFile && strings.TrimSpace(e.file) == strings.TrimSpace(e.said) {
			here++
		}
		if slices.ContainsFunc(s.copied, func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(e.said) }) {
			there++
		}
	}
	return there >= here
}

func (s *story) build() Case {
	var have, want, old, new []string
	have = append(have, s.lines[:s.at]...)
	have = append(have, s.above...)
	want = slices.Clone(have)
	for _, e := range s.block {
		if e.inFile && e.mark != '+' {
			have = append(have, e.file)
		}
		if e.inFile && e.mark != '-' {
			want = append(want, e.file)
		}
		if e.quoted && e.mark != '+' {
			old = append(old, e.said)
		}
		if e.quoted && e.mark != '-' {
			new = append(new, e.said)
		}
	}
	rest := append(slices.Clone(s.below), s.lines[s.at+s.n:]...)
	have, want = append(have, rest...), append(want, rest...)
	c := Case{Text: join(have), Old: strings.Join(old, "\n"), New: strings.Join(new, "\n"), Want: join(want)}
	if s.ended {
		c.Old += "\n"
		if len(new) > 0 {
			c.New += "\n"
		}
	}
	if s.head > 0 && len(c.Old) > s.head+s.tail && len(c.New) > s.head+s.tail {
		c.Old, c.New = c.Old[s.head:len(c.Old)-s.tail], c.New[s.head:len(c.New)-s.tail]
	}
	if unitUnknown := !slices.ContainsFunc(s.block, func(e entry) bool {
		return e.mark != '+' && e.quoted && indentOf(e.said) != indentOf(e.file)
	}); unitUnknown {
		for _, e := range s.block { // nothing says that new lines are in another unit
			if e.mark == '+' {
				s.extra = append(s.extra, e.said)
			}
		}
	}
	for _, w := range s.variants() {
		c.Also = append(c.Also, join(slices.Concat(s.lines[:s.at], s.above, w, rest)))
	}
	if len(new) == 0 && !s.ended {
		// Deleting the text of whole lines without their line ending leaves an empty line, or not.
		blank := slices.Concat(s.lines[:s.at], s.above)
		for i, e := range s.block {
			if e.mark == '-' && (i == 0 || s.block[i-1].mark != '-') {
				blank = append(blank, "")
			} else if e.mark == ' ' && e.inFile {
				blank = append(blank, e.file)
			}
		}
		c.Also = append(c.Also, join(append(blank, rest...)))
	}
	all := append([]*string{&c.Text, &c.Want}, nil...)
	for i := range c.Also {
		all = append(all, &c.Also[i])
	}
	for _, p := range all {
		if s.noFinal {
			*p = strings.TrimSuffix(*p, "\n")
		}
		if s.crlf {
			*p = strings.ReplaceAll(*p, "\n", "\r\n")
		}
	}
	return c
}

// variants are other right answers: a new line beside lines that were not quoted may be on either side of them, and a line that
// replaces one with blanks behind it may have them or not.
func (s *story) variants() (out [][]string) {
	flat := func(b []entry) []string {
		var l []string
		for _, e := range b {
			if e.inFile && e.mark != '-' {
				l = append(l, e.file)
			}
		}
		return l
	}
	// Runs of new lines move up or down over lines that were not quoted.
	for i := 0; i < len(s.block); i++ {
		if s.block[i].mark != '+' || i > 0 && s.block[i-1].mark == '+' {
			continue
		}
		j := i
		for j < len(s.block) && s.block[j].mark == '+' {
			j++
		}
		if i > 0 && s.block[i-1].mark == '-' || j < len(s.block) && s.block[j].mark == '-' {
			continue
		}
		for lo := i; lo > 0 && !s.block[lo-1].quoted; lo-- {
			out = append(out, flat(slices.Concat(s.block[:lo-1], s.block[i:j], s.block[lo-1:i], s.block[j:])))
		}
		for hi := j; hi < len(s.block) && !s.block[hi].quoted; hi++ {
			out = append(out, flat(slices.Concat(s.block[:i], s.block[j:hi+1], s.block[i:j], s.block[hi+1:])))
		}
	}
	if len(s.extra) > 0 {
		b := slices.Clone(s.block)
		k := 0
		for i := range b {
			if b[i].mark == '+' && k < len(s.extra) {
				b[i].file = s.extra[k]
				k++
			}
		}
		out = append(out, flat(b))
	}
	return out
}

// say changes what the model writes, line by line; false when nothing changes.
func (s *story) say(f func(string) string) bool {
	changed := false
	for i := range s.block {
		if e := &s.block[i]; e.quoted && !blank(e.said) {
			now := f(e.said)
			changed = changed || now != e.said
			e.said = now
		}
	}
	return changed
}

// pick is a random entry of the block for which ok is true, -1 without one.
func (s *story) pick(ok func(i int, e entry) bool) int {
	var list []int
	for i, e := range s.block {
		if ok(i, e) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return -1
	}
	return list[s.r.IntN(len(list))]
}

// inner are context lines that are neither the first nor the last of the quotation.
func (s *story) inner(i int, e entry) bool {
	return e.mark == ' ' && e.quoted && e.inFile && i > 0 && i < len(s.block)-1
}

// clear says that no line of the change has what f would touch, so that there is one right answer.
func (s *story) clear(chars string) bool {
	return !slices.ContainsFunc(s.block, func(e entry) bool { return e.mark != ' ' && strings.ContainsAny(e.file, chars) })
}

// damage makes the quotation or the file differ; false where the edit is not one for the kind.
func (s *story) damage(kind string) bool { return s.differ(kind) && !s.crossed() }

// crossed reports whether the change moves a line over one that was left out: then both texts have the moved line, and do not say where.
func (s *story) crossed() bool {
	for i, e := range s.block {
		if e.mark != ' ' || e.quoted || !e.inFile {
			continue
		}
		for _, a := range s.block[:i] {
			for _, b := range s.block[i+1:] {
				if a.mark != ' ' && b.mark != ' ' && a.mark != b.mark && !blank(a.file) && strings.TrimSpace(a.file) == strings.TrimSpace(b.file) {
					return true
				}
			}
		}
	}
	return false
}

func (s *story) differ(kind string) bool {
	r := s.r
	switch kind {
	case "as it is":
		return true
	case "lines left out":
		done := false
		for range 1 + r.IntN(3) {
			if i := s.pick(s.inner); i >= 0 && !blank(s.block[i].file) {
				s.block[i].quoted, done = false, true
			}
		}
		return done
	case "shifted":
		unit := strings.Repeat(" ", []int{1, 2, 3, 4, 8}[r.IntN(5)])
		if strings.HasPrefix(indents(s.said()), "\t") || r.IntN(8) == 0 {
			unit = "\t"
		}
		if r.IntN(2) == 0 {
			return s.say(func(l string) string { return unit + l })
		}
		if !strings.HasPrefix(margin(s.said()), unit) {
			return false
		}
		return s.say(func(l string) string { return strings.TrimPrefix(l, unit) })
	case "another unit":
		all := indents(s.said())
		if !slices.ContainsFunc(s.block, func(e entry) bool { return e.mark != '+' && e.quoted && indentOf(e.said) != "" && !blank(e.said) }) {
			return false // nothing quoted shows the unit
		}
		if indents(s.lines) == "" {
			return false // nothing in the file does
		}
		if all == "" || strings.Contains(all, "\t") && strings.Contains(all, " ") {
			return false
		}
		if all[0] == '\t' {
			to := strings.Repeat(" ", []int{2, 3, 4, 8}[r.IntN(4)])
			return s.say(func(l string) string { in := indentOf(l); return strings.Repeat(to, len(in)) + l[len(in):] })
		}
		unit := unitOf(s.lines)
		if unit == 0 {
			return false
		}
		for _, l := range s.said() {
			if len(indentOf(l))%unit != 0 && !blank(l) {
				return false
			}
		}
		to := []string{"\t", "  ", "    ", "   "}[r.IntN(4)]
		return s.say(func(l string) string { in := indentOf(l); return strings.Repeat(to, len(in)/unit) + l[len(in):] })
	case "first line bare":
		// The text begins behind the first line's indentation, in both.
		if len(s.block) < 2 || s.block[0].mark != ' ' || !s.block[0].quoted || indentOf(s.block[0].said) == "" {
			return false
		}
		s.block[0].said = s.block[0].said[len(indentOf(s.block[0].said)):]
		return true
	case "deeper from the second line":
		if len(s.block) < 3 || s.block[0].mark != ' ' || s.block[1].mark != ' ' {
			return false
		}
		first := true
		unit := []string{"\t", "  ", "    "}[r.IntN(3)]
		return s.say(func(l string) string {
			if first {
				first = false
				return l
			}
			return unit + l
		})
	case "curled", "curled in places":
		if !s.clear("\"'-.") {
			return false
		}
		curl := strings.NewReplacer(`"`, "”", "'", "’", " - ", " – ", "--", "—", "...", "…")
		return s.say(func(l string) string {
			if kind == "curled in places" && r.IntN(2) == 0 {
				return l
			}
			return curl.Replace(l)
		})
	case "file curled":
		curl := strings.NewReplacer(`"`, "“", "'", "’", " - ", " – ", "...", "…", " \"", " “")
		done := false
		for i := range s.block {
			if e := &s.block[i]; e.mark == ' ' && e.inFile {
				now := curl.Replace(e.file)
				done = done || now != e.file
				e.file = now
			}
		}
		return done
	case "blanks stripped":
		// The file has blanks behind lines (Markdown's line break, or carelessness), and the model gives them without.
		done := false
		for i := range s.block {
			e := &s.block[i]
			if e.mark == ' ' && e.inFile && r.IntN(2) == 0 {
				e.file += []string{" ", "  ", "\t", "   "}[r.IntN(4)]
				done = true
			}
		}
		return done
	case "blanks put behind all", "blanks put behind some":
		if slices.ContainsFunc(s.block, func(e entry) bool { return e.file != strings.TrimRight(e.file, " \t") }) && kind != "blanks put behind all" {
			return false
		}
		pad := []string{" ", "  ", "\t"}[r.IntN(3)]
		s.say(func(l string) string {
			if kind == "blanks put behind some" && r.IntN(2) == 0 {
				return l
			}
			return l + pad
		})
		// Blanks that only new lines have may be meant.
		return slices.ContainsFunc(s.block, func(e entry) bool { return e.mark != '+' && e.quoted && e.said == e.file+pad })
	case "decomposed":
		// The file has composed letters, the model gives decomposed ones, or the other way round.
		i := s.pick(func(i int, e entry) bool {
			return e.mark == ' ' && e.quoted && e.inFile && strings.ContainsAny(e.file, "aeou")
		})
		if i < 0 {
			return false
		}
		a, b := "\u00e9", "e\u0301"
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		e := &s.block[i]
		k := strings.IndexAny(e.file, "aeou")
		if !strings.Contains(e.said, e.file[k:k+1]) {
			return false
		}
		e.said = strings.Replace(e.said, e.file[k:k+1], b, 1)
		e.file = e.file[:k] + a + e.file[k+1:]
		return true
	case "entities":
		s.say(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace)
		return slices.ContainsFunc(s.block, func(e entry) bool { return e.mark != '+' && e.quoted && strings.ContainsAny(e.file, "&<>") })
	case "escaped":
		return s.say([]*strings.Replacer{strings.NewReplacer(`"`, `\"`), strings.NewReplacer(`"`, `\"`, `\`, `\\`), strings.NewReplacer("\t", `\t`), strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`), strings.NewReplacer("`", "\\`", "$", `\$`)}[r.IntN(5)].Replace)
	case "numbered":
		n := s.at
		form := []string{"%d: %s", "%d\t%s", "%6d\t%s", "%5d| %s", "L%d: %s"}[r.IntN(5)]
		return s.say(func(l string) string { n++; return fmt.Sprintf(form, n, l) })
	case "line stuttered":
		i := s.pick(s.inner)
		if i < 0 || blank(s.block[i].file) {
			return false
		}
		twin := s.block[i]
		twin.inFile = false
		s.block = slices.Insert(s.block, i, twin)
		return true
	case "lines swapped":
		i := s.pick(func(i int, e entry) bool {
			return s.inner(i, e) && s.inner(i+1, s.block[min(i+1, len(s.block)-1)]) && len(strings.TrimSpace(e.said)) > 8 && len(strings.TrimSpace(s.block[i+1].said)) > 8 && e.said != s.block[i+1].said
		})
		if i < 0 {
			return false
		}
		s.block[i].said, s.block[i+1].said = s.block[i+1].said, s.block[i].said
		return true
	case "comment forgotten":
		done := false
		for i := range s.block {
			e := &s.block[i]
			for _, mark := range []string{" // ", " # ", " /* ", " -- "} {
				if k := strings.Index(e.said, mark); k > 0 && e.mark == ' ' && e.quoted && !blank(e.said[:k]) {
					e.said, done = strings.TrimRight(e.said[:k], " \t"), true
				}
			}
			if !done && e.mark == ' ' && e.quoted && e.inFile && len(e.file) > 10 && r.IntN(3) == 0 {
				e.file += " // see issue 4711"
				done = true
			}
		}
		return done
	case "lines joined":
		// Two context lines of the file are one in the quotation.
		i := s.pick(func(i int, e entry) bool {
			return s.inner(i, e) && i+1 < len(s.block)-1 && s.inner(i+1, s.block[i+1]) && !blank(e.said) && !blank(s.block[i+1].said)
		})
		if i < 0 {
			return false
		}
		s.block[i].said += " " + strings.TrimLeft(s.block[i+1].said, " \t")
		s.block[i+1].quoted = false
		return true
	case "words misremembered":
		done := false
		for range 1 + r.IntN(3) {
			if i := s.pick(func(i int, e entry) bool { return e.mark == ' ' && e.quoted && !blank(e.said) }); i >= 0 {
				now := reword(r, s.block[i].said)
				done = done || now != s.block[i].said
				s.block[i].said = now
			}
		}
		return done
	case "elided":
		// A run of context lines is a comment that says so.
		i := s.pick(s.inner)
		if i < 0 {
			return false
		}
		s.block[i].said = indentOf(s.block[i].said) + []string{"// ...", "...", "# ...", "// ... existing code ...", "/* ... */", "// rest unchanged"}[r.IntN(6)]
		for j := i + 1; j < len(s.block)-1 && s.inner(j, s.block[j]) && r.IntN(3) > 0; j++ {
			s.block[j].quoted = false
		}
		return true
	case "copy elsewhere", "copy elsewhere and stale":
		// The file has the block twice, the other time with a word changed.
		var copied []string
		for _, e := range s.block {
			if e.inFile && e.mark != '+' {
				copied = append(copied, e.file)
			}
		}
		if len(copied) < 2 {
			return false
		}
		was := strings.Join(copied, "\n")
		for range 1 + r.IntN(2) {
			k := r.IntN(len(copied))
			copied[k] = reword(r, copied[k])
		}
		now := strings.Join(copied, "\n")
		if now == was {
			return false
		}
		copied = append(copied, foreignLine(r, s.lines))
		if r.IntN(2) == 0 {
			s.above = copied
		} else {
			s.below = append([]string{foreignLine(r, s.lines)}, copied...)
		}
		if kind == "copy elsewhere and stale" {
			s.copied = copied[:len(copied)-1]
			return s.damage([]string{"lines reworded since", "lines removed since", "lines added since", "words misremembered", "changed line reworded since"}[r.IntN(5)])
		}
		return s.damage([]string{"shifted", "another unit", "lines left out", "blanks put behind all", "curled", "line stuttered", "entities"}[r.IntN(7)])
	case "lines added since":
		done := false
		for range 1 + r.IntN(3) {
			i := 1 + r.IntN(max(1, len(s.block)-1))
			if i >= len(s.block) {
				return false
			}
			// Beside lines that come there is no one right place.
			if s.block[i].mark != ' ' || s.block[i-1].mark == '-' && r.IntN(4) > 0 {
				continue
			}
			in := indentOf(s.block[i-1].file)
			l := strings.TrimSpace(foreignLine(r, s.lines))
			if slices.ContainsFunc(s.block, func(e entry) bool { return strings.TrimSpace(e.file) == l }) {
				continue
			}
			l = in + l
			s.block = slices.Insert(s.block, i, entry{mark: ' ', file: l, inFile: true})
			done = true
		}
		return done
	case "lines removed since":
		done := false
		for range 1 + r.IntN(2) {
			if i := s.pick(func(i int, e entry) bool { return e.mark == ' ' && e.quoted && e.inFile && !blank(e.file) }); i >= 0 {
				s.block[i].inFile, done = false, true
			}
		}
		return done
	case "lines reworded since":
		done := false
		for range 1 + r.IntN(3) {
			if i := s.pick(func(i int, e entry) bool { return e.mark == ' ' && e.quoted && e.inFile && !blank(e.file) }); i >= 0 {
				now := reword(r, s.block[i].file)
				done = done || now != s.block[i].file
				s.block[i].file = now
			}
		}
		return done
	case "changed line reworded since":
		// One line is changed in one place by the edit and has been changed in another since it was quoted.
		for i := range len(s.block) - 1 {
			a, b := &s.block[i], &s.block[i+1]
			if a.mark != '-' || b.mark != '+' || i > 0 && s.block[i-1].mark == '-' || i+2 < len(s.block) && s.block[i+2].mark == '+' {
				continue
			}
			n := 0
			for n < min(len(a.file), len(b.file)) && a.file[n] == b.file[n] {
				n++
			}
			// A word well before the first difference.
			w := strings.FieldsFunc(a.file[:max(0, n-8)], func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') })
			if len(w) < 2 || len(w[0]) < 3 {
				return false
			}
			a.file = strings.Replace(a.file, w[0], w[0]+"Since", 1)
			b.file = strings.Replace(b.file, w[0], w[0]+"Since", 1)
			return true
		}
		return false
	case "wrapped since":
		// A formatter has broken a context line in two.
		i := s.pick(func(i int, e entry) bool {
			return s.inner(i, e) && strings.Contains(strings.TrimSpace(e.file), ", ")
		})
		if i < 0 {
			return false
		}
		e := s.block[i]
		k := strings.LastIndex(e.file, ", ")
		rest := entry{mark: ' ', file: indentOf(e.file) + "    " + e.file[k+2:], inFile: true}
		s.block[i].file = e.file[:k+1]
		s.block = slices.Insert(s.block, i+1, rest)
		return true
	case "indented since":
		// Everything that was quoted has been put into a block since.
		unit := unitOfFile(s.lines)
		if indents(s.lines) == "" {
			return false // in a file without indentation a block's depth says nothing of that of new lines
		}
		// A change that moves lines by as much reads as written at the file's present depth, and spaces below tabs as levels.
		for _, e := range s.block {
			if e.mark == '+' && (unit == "\t" && strings.HasPrefix(e.said, " ") || slices.ContainsFunc(s.block, func(o entry) bool {
				return o.mark != '+' && strings.TrimSpace(o.said) == strings.TrimSpace(e.said) && indentOf(e.said) == unit+indentOf(o.said)
			})) {
				return false
			}
		}
		for i := range s.block {
			if e := &s.block[i]; !blank(e.file) {
				e.file = unit + e.file
			}
		}
		return true
	case "part of a line":
		// The quotation begins and ends inside lines.
		b := s.block
		if len(b) < 3 || b[0].mark != ' ' || b[len(b)-1].mark != ' ' || !b[0].quoted || !b[len(b)-1].quoted || len(b[0].said) < 12 || len(b[len(b)-1].said) < 12 || s.head > 0 {
			return false
		}
		cutAt := func(l string) int {
			k := len(indentOf(l)) + 2 + r.IntN(4)
			for k < len(l) && !utf8.RuneStart(l[k]) {
				k++
			}
			return min(k, len(l)-2)
		}
		s.head = cutAt(b[0].said)
		if r.IntN(2) == 0 {
			s.head = len(indentOf(b[0].said))
		}
		last := b[len(b)-1].said
		s.tail = len(last) - cutAt(last)
		return s.head > 0
	case "blank lines doubled", "blank lines lost":
		i := s.pick(func(i int, e entry) bool {
			return s.inner(i, e) && blank(e.file) && s.block[i+1].mark == ' ' && s.block[i-1].mark == ' '
		})
		if i < 0 {
			return false
		}
		if kind == "blank lines lost" {
			s.block[i].quoted = false
			return true
		}
		twin := s.block[i]
		twin.inFile = false
		s.block = slices.Insert(s.block, i, twin)
		return true
	case "no-break blanks":
		done := false
		for i := range s.block {
			if e := &s.block[i]; e.mark == ' ' && e.inFile && r.IntN(2) == 0 {
				t := strings.TrimLeft(e.file, " \t")
				if k := strings.Index(t, " "); k > 0 {
					e.file, done = indentOf(e.file)+t[:k]+"\u00a0"+t[k+1:], true
				}
			}
		}
		return done
	case "tab inside":
		done := false
		for i := range s.block {
			if e := &s.block[i]; e.mark == ' ' && e.inFile && r.IntN(2) == 0 {
				t := strings.TrimLeft(e.file, " \t")
				if k := strings.LastIndex(t, " "); k > 0 {
					e.file, done = indentOf(e.file)+t[:k]+"\t"+t[k+1:], true
				}
			}
		}
		return done
	}
	panic("unknown kind " + kind)
}

// said are the quoted lines of both texts.
func (s *story) said() (out []string) {
	for _, e := range s.block {
		if e.quoted {
			out = append(out, e.said)
		}
	}
	return out
}

func foreignLine(r *rand.Rand, a []string) string {
	for range 50 {
		if l := a[r.IntN(len(a))]; len(strings.TrimSpace(l)) > 6 {
			return l
		}
	}
	return fmt.Sprintf("audit(%d)", r.IntN(1000))
}

// Stories makes cases of one file: edits taken from its history (after "" for none) and edits that are made up, with one to three changed
// places and up to eight lines around them.
func Stories(r *rand.Rand, name, before, after string, most int) (out []Case) {
	before = strings.ReplaceAll(before, "\r\n", "\n")
	after = strings.ReplaceAll(after, "\r\n", "\n")
	if !strings.HasSuffix(before, "\n") || strings.Contains(before, "\r") {
		return nil
	}
	a := lines(before)
	if len(a) < 6 {
		return nil
	}
	var edits []diff.Edit
	var b []string
	if after != "" && after != before {
		b = lines(after)
		edits = diff.Strings(a, b)
	}
	for try := 0; len(out) < most && try < most*8; try++ {
		s := draw(r, before, a, b, edits, len(edits) > 0 && r.IntN(3) > 0)
		if s == nil {
			continue
		}
		if c, ok := s.tell(StoryKinds[r.IntN(len(StoryKinds))]); ok {
			c.File = name
			out = append(out, c)
		}
	}
	return out
}

// draw is an edit of a file, taken from its history or made up; nil where its lines are blank or more than once in the file. before is the
// file's text, a its lines, b and edits its history.
func draw(r *rand.Rand, before string, a, b []string, edits []diff.Edit, history bool) *story {
	var s *story
	if history {
		s = fromHistory(r, a, b, edits)
	} else {
		s = invented(r, a)
	}
	if s == nil {
		return nil
	}
	if quote := strings.Join(a[s.at:s.at+s.n], "\n"); blank(quote) || strings.Count(before, quote) != 1 {
		return nil
	}
	return s
}

func stays(l string) entry { return entry{mark: ' ', file: l, said: l, inFile: true, quoted: true} }
func goes(l string) entry  { return entry{mark: '-', file: l, said: l, inFile: true, quoted: true} }
func comes(l string) entry { return entry{mark: '+', file: l, said: l, inFile: true, quoted: true} }

func fromHistory(r *rand.Rand, a, b []string, edits []diff.Edit) *story {
	k := r.IntN(len(edits))
	last := k
	for last+1 < len(edits) && edits[last+1].A0-edits[last].A1 <= 6 && last-k < 2 && r.IntN(2) == 0 {
		last++
	}
	from, to := max(0, edits[k].A0-r.IntN(7)), min(len(a), edits[last].A1+r.IntN(7))
	if k > 0 {
		from = max(from, edits[k-1].A1)
	}
	if last+1 < len(edits) {
		to = min(to, edits[last+1].A0)
	}
	if to-from > 60 || to <= from {
		return nil
	}
	s := &story{r: r, lines: a, at: from, n: to - from}
	i := from
	for _, e := range edits[k : last+1] {
		if e.B1-e.B0 > 25 || e.A1-e.A0 > 25 {
			return nil
		}
		for ; i < e.A0; i++ {
			s.block = append(s.block, stays(a[i]))
		}
		for ; i < e.A1; i++ {
			s.block = append(s.block, goes(a[i]))
		}
		for _, l := range b[e.B0:e.B1] {
			s.block = append(s.block, comes(l))
		}
	}
	for ; i < to; i++ {
		s.block = append(s.block, stays(a[i]))
	}
	return s
}

// invented is an edit as people ask for: a word renamed, lines removed, a line added like the one before it, a block put into another.
func invented(r *rand.Rand, a []string) *story {
	n := 2 + r.IntN(10)
	if r.IntN(6) == 0 {
		n = 12 + r.IntN(40)
	}
	if n > len(a) {
		return nil
	}
	at := r.IntN(len(a) - n + 1)
	s := &story{r: r, lines: a, at: at, n: n}
	unit := unitOfFile(a)
	what := r.IntN(6)
	lo := r.IntN(n)
	hi := min(n, lo+1+r.IntN(3))
	for i := range n {
		l := a[at+i]
		if i < lo || i >= hi {
			s.block = append(s.block, stays(l))
			continue
		}
		switch what {
		case 0, 1: // one line is reworded
			now := reword(r, l)
			if i > lo || now == l {
				s.block = append(s.block, stays(l))
				continue
			}
			s.block = append(s.block, goes(l), comes(now))
		case 2: // lines go
			s.block = append(s.block, goes(l))
		case 3: // a line comes
			s.block = append(s.block, stays(l))
			if i == lo {
				now := reword(r, l)
				if now == l {
					return nil
				}
				s.block = append(s.block, comes(now))
			}
		case 4: // the lines go into a block
			if i == lo {
				s.block = append(s.block, comes(indentOf(l)+"if enabled {"))
			}
			if blank(l) {
				return nil
			}
			s.block = append(s.block, goes(l), comes(unit+l))
			if i == hi-1 {
				s.block = append(s.block, comes(indentOf(a[at+lo])+"}"))
			}
		case 5: // several lines come that the file does not have
			s.block = append(s.block, stays(l))
			if i == lo {
				if blank(l) && i > 0 {
					l = a[at+i-1] // as deep as code beside it
				}
				in := indentOf(l)
				s.block = append(s.block, comes(in+"for _, item := range list {"), comes(in+unit+fmt.Sprintf("handle(item, %d)", r.IntN(1000))), comes(in+"}"))
			}
		}
	}
	// Everything that goes before anything that comes, as models write it.
	if what == 4 {
		var gone, come []entry
		var out []entry
		flush := func() { out = append(append(out, gone...), come...); gone, come = nil, nil }
		for _, e := range s.block {
			switch e.mark {
			case '-':
				gone = append(gone, e)
			case '+':
				come = append(come, e)
			default:
				flush()
				out = append(out, e)
			}
		}
		flush()
		s.block = out
	}
	return s
}

// unitOfFile is one level of a file's indentation, a tab where nothing says, so that all parts of a case agree.
func unitOfFile(a []string) string {
	if u := unitOf(a); u > 0 {
		return strings.Repeat(" ", u)
	}
	return "\t"
}

// StoriesBetween are stories of the text files of a folder, with the history that another folder gives.
func StoriesBetween(r *rand.Rand, before, after string, each int) ([]Case, error) {
	return between(before, after, each, func(name, old, new string, n int) []Case {
		return append(Stories(r, name, old, new, n), Chains(r, name, old, new, n/4)...)
	})
}

// AttacksBetween are attacks of the text files of a folder, as StoriesBetween.
func AttacksBetween(r *rand.Rand, before, after string, each int) ([]Case, error) {
	return between(before, after, each, func(name, old, new string, n int) []Case { return Attacks(r, name, old, new, n) })
}

func between(before, after string, each int, make func(name, old, new string, n int) []Case) (cases []Case, err error) {
	err = filepath.WalkDir(before, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(d.Name(), ".min.") || strings.HasSuffix(path, ".map") {
			return err
		}
		rel, err := filepath.Rel(before, path)
		if err != nil {
			return err
		}
		new, _ := os.ReadFile(filepath.Join(after, rel))
		old, err := os.ReadFile(path)
		if err == nil && len(old) < mostBytes && len(new) < 2*mostBytes && utf8.Valid(old) && bytes.IndexByte(old, 0) < 0 {
			n := 1
			if len(new) > 0 && !bytes.Equal(old, new) {
				n = each
			}
			cases = append(cases, make(filepath.ToSlash(rel), string(old), string(new), n)...)
		}
		return err
	})
	return cases, err
}
