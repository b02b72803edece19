package patch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// codex is what the rules of Codex's apply_patch make of a patch of an envelope; false where they refuse it. The text is trimmed; the first and
// the last line are the envelope, apart from white space; so are the headers of sections, outside of a section's lines. Lines are sought from
// the last hunk on: exactly, without white space at their end, without white space around them; a last empty one that is not found is left out.
func codex(text string, before files) (files, bool) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if strings.TrimSpace(lines[0]) != "*** Begin Patch" || strings.TrimSpace(lines[len(lines)-1]) != "*** End Patch" {
		return nil, false
	}
	lines = lines[1 : len(lines)-1]
	now := maps.Clone(before)
	for len(lines) > 0 {
		head := strings.TrimSpace(lines[0])
		lines = lines[1:]
		if name, ok := strings.CutPrefix(head, "*** Add File: "); ok {
			text := ""
			for len(lines) > 0 && strings.HasPrefix(lines[0], "+") {
				text += lines[0][1:] + "\n"
				lines = lines[1:]
			}
			now[name] = text
			continue
		}
		if name, ok := strings.CutPrefix(head, "*** Delete File: "); ok {
			delete(now, name)
			continue
		}
		name, ok := strings.CutPrefix(head, "*** Update File: ")
		was, there := now[name]
		if !ok || !there {
			return nil, false
		}
		have := strings.Split(strings.TrimSuffix(was, "\n"), "\n")
		var out []string
		at, hunks := 0, 0
		for len(lines) > 0 && !strings.HasPrefix(lines[0], "***") {
			if strings.TrimSpace(lines[0]) == "" {
				lines = lines[1:]
				continue
			}
			switch {
			case lines[0] == "@@":
				lines = lines[1:]
			case hunks > 0:
				return nil, false
			}
			var old, new []string
			eof, removed := false, false // removed: the last old line is one that goes
			for len(lines) > 0 && !eof {
				l := lines[0]
				switch {
				case l == "*** End of File":
					eof = true
				case l == "":
					old, new = append(old, ""), append(new, "")
				case l[0] == ' ':
					old, new = append(old, l[1:]), append(new, l[1:])
				case l[0] == '-':
					old = append(old, l[1:])
				case l[0] == '+':
					new = append(new, l[1:])
				}
				if !eof && l != "" && !strings.ContainsRune(" -+", rune(l[0])) {
					break
				}
				if !eof && !strings.HasPrefix(l, "+") {
					removed = strings.HasPrefix(l, "-")
				}
				lines = lines[1:]
			}
			hunks++
			place := codexSeek(have, old, at, eof)
			if place < 0 && len(old) > 0 && old[len(old)-1] == "" {
				old = old[:len(old)-1]
				if removed && len(new) > 0 && new[len(new)-1] == "" {
					return nil, false // Codex' rules would drop an empty line that the hunk keeps
				}
				if len(new) > 0 && new[len(new)-1] == "" {
					new = new[:len(new)-1]
				}
				place = codexSeek(have, old, at, eof)
			}
			if place < 0 {
				return nil, false
			}
			out = append(append(out, have[at:place]...), new...)
			at = place + len(old)
		}
		if hunks == 0 {
			return nil, false
		}
		out = append(out, have[at:]...)
		now[name] = strings.Join(out, "\n") + "\n"
	}
	return now, true
}

func codexSeek(have, want []string, from int, eof bool) int {
	if eof && len(have)-len(want) > from {
		from = len(have) - len(want)
	}
	for _, form := range []func(string) string{func(s string) string { return s }, func(s string) string { return strings.TrimRight(s, " \t") }, strings.TrimSpace} {
		for i := from; i+len(want) <= len(have); i++ {
			if slices.EqualFunc(want, have[i:i+len(want)], func(a, b string) bool { return form(a) == form(b) }) {
				return i
			}
		}
	}
	return -1
}

// padded is a patch of files whose lines are all different, padded as models pad it: blanks around headers and around the envelope, empty lines
// between its parts, an empty last line that is removed, kept or added.
func padded(r *rand.Rand) (text string, before files) {
	pad := func() string { return []string{"", "", " ", "  ", "\t", "      "}[r.IntN(6)] }
	gap := func() string { return []string{"", "", "", "\n", " \n"}[r.IntN(5)] }
	before = files{}
	var b strings.Builder
	b.WriteString(gap() + pad() + "*** Begin Patch" + pad() + "\n")
	open := false // the section before has lines, so that a blank in front of a header is a line that stays
	for k := range 1 + r.IntN(3) {
		name := string(rune('f' + k))
		front := pad()
		if open {
			front = ""
		}
		switch r.IntN(5) {
		case 0:
			b.WriteString(front + "*** Add File: " + name + pad() + "\n+" + name + "\n+\n+end\n")
			open = false
			continue
		case 1:
			before[name] = name + "\n"
			b.WriteString(front + "*** Delete File: " + name + pad() + "\n")
			open = false
			continue
		}
		var have []string
		for i := range 4 + r.IntN(12) {
			line := strings.Repeat("\t", r.IntN(3)) + fmt.Sprintf("line %d of %s", i, name)
			if i > 0 && r.IntN(4) == 0 && have[i-1] != "" {
				line = ""
			}
			have = append(have, line)
		}
		b.WriteString(front + "*** Update File: " + name + pad() + "\n")
		open = true
		at := 0
		for h := range 1 + r.IntN(2) {
			if at > len(have)-2 {
				break
			}
			from := at + r.IntN(len(have)-1-at)
			to := min(len(have), from+1+r.IntN(5))
			if h > 0 || r.IntN(3) > 0 {
				b.WriteString("@@\n")
			}
			cut := from + r.IntN(to-from)
			if have[cut] == "" { // which of several empty lines goes, nothing would say
				cut--
			}
			from = min(from, cut)
			for i, line := range have[from:to] {
				switch {
				case from+i != cut && line == "" && r.IntN(2) == 0:
					b.WriteString("\n") // the blank of the prefix was cut off
				case from+i != cut:
					b.WriteString(" " + line + "\n")
				default:
					b.WriteString("-" + line + "\n+" + fmt.Sprintf("line %d, new", from+i) + "\n")
				}
			}
			if to == len(have) {
				b.WriteString([]string{"", "", "-\n", " \n", "\n", "-\n*** End of File\n", "*** End of File\n"}[r.IntN(7)])
			} else if r.IntN(4) == 0 {
				b.WriteString("\n")
			}
			at = to
		}
		before[name] = strings.Join(have, "\n") + "\n"
	}
	end := pad()
	b.WriteString(end + "*** End Patch" + pad() + gap())
	return b.String(), before
}

// What Codex' rules take, however it is padded, gives the same files here. It may be refused only where the lines are in several places, which
// is deliberate.
func TestPaddedPatchesAsCodexTakesThem(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 3))
	took, same, refused := 0, 0, 0
	for range 4000 {
		text, before := padded(r)
		want, ok := codex(text, before)
		if !ok {
			continue
		}
		took++
		got, e := apply(t, text, before)
		switch {
		case e != nil && len(e.Lines) > 1: // several places
			refused++
		case e != nil:
			t.Fatalf("refused: %v\n%s\nfiles %q", e, text, before)
		case maps.Equal(got, want):
			same++
		default:
			t.Fatalf("%s\nfiles %q\ngot  %q\nwant %q", text, before, got, want)
		}
	}
	if took < 2000 || refused > took/50 {
		t.Errorf("Codex' rules take %d, of which %d are the same here and %d refused", took, same, refused)
	}
}
