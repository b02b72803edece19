package replace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// history is a random file and an edit of a block of it, stated by somebody who saw the block otherwise than it is.
type history struct {
	text, old, new string
	lines          []string        // the file's, without line endings
	unquoted       map[string]bool // lines of the block that the author did not see
	gone, come     []string        // what the change takes away and adds, trimmed
	eol            string
}

// newHistory makes lines that are unique but for brackets and blank lines, nested as code is. The block is quoted with some of its
// lines left out, at another indentation, or with blanks behind; a line or two of what is quoted go, or others come.
func newHistory(r *rand.Rand) history {
	h := history{unquoted: map[string]bool{}, eol: []string{"\n", "\r\n"}[r.IntN(2)]}
	unit := []string{"\t", "  ", "    "}[r.IntN(3)]
	depth := 0
	for i := range 20 + r.IntN(30) {
		in := strings.Repeat(unit, depth)
		switch k := r.IntN(8); {
		case k == 0 && depth < 4:
			h.lines = append(h.lines, fmt.Sprintf("%sif condition%d(a, %d) {", in, i, r.IntN(100)))
			depth++
		case k == 1 && depth > 0:
			depth--
			h.lines = append(h.lines, strings.Repeat(unit, depth)+"}")
		case k == 2 && len(h.lines) > 0 && h.lines[len(h.lines)-1] != "":
			h.lines = append(h.lines, "")
		default:
			h.lines = append(h.lines, fmt.Sprintf("%svalue%d = compute%d(x, %d)", in, i, r.IntN(1000), i))
		}
	}
	h.lines = append(h.lines, "last = compute(0)")
	from := r.IntN(len(h.lines) - 9)
	block := h.lines[from : from+4+r.IntN(5)]
	var quoted []string
	for i, line := range block {
		if i > 0 && i < len(block)-1 && r.IntN(6) == 0 && strings.Contains(line, "=") {
			h.unquoted[line] = true
			continue
		}
		quoted = append(quoted, line)
	}
	wanted := slices.Clone(quoted)
	at := r.IntN(len(wanted))
	if r.IntN(3) > 0 && strings.Contains(wanted[at], "=") {
		h.gone = append(h.gone, strings.TrimSpace(wanted[at]))
		wanted = slices.Delete(wanted, at, at+1)
	}
	for k := range r.IntN(3) {
		in := indent(block[0])
		if at > 0 && at <= len(wanted) {
			in = indent(wanted[at-1])
		}
		line := fmt.Sprintf("%sfresh%d := added(%d)", in, k, r.IntN(1000))
		h.come = append(h.come, strings.TrimSpace(line))
		wanted = slices.Insert(wanted, min(at, len(wanted)), line)
	}
	as := func(s string) string { return s }
	switch cut := shallowest(block); r.IntN(4) {
	case 0:
		as = func(s string) string { return strings.TrimPrefix(s, cut) }
	case 1:
		as = func(s string) string { return strings.TrimRight(s+strings.Repeat(" ", 2), "\t") }
	}
	end := ""
	if r.IntN(2) == 0 {
		end = "\n"
	}
	h.old, h.new = strings.Join(each(quoted, as), "\n")+end, strings.Join(each(wanted, as), "\n")+end
	h.text = strings.Join(h.lines, h.eol)
	if r.IntN(3) > 0 {
		h.text += h.eol
	}
	return h
}

// However a block is quoted, an edit that is made takes away only what it says, adds what it says once, leaves every other line to the
// byte and in its place, makes no blank lines, and keeps line endings and the lack of the last one.
func FuzzMergeKeepsWhatIsNotQuoted(f *testing.F) {
	for seed := range uint64(1000) {
		f.Add(seed, uint64(26))
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		h := newHistory(rand.New(rand.NewPCG(a, b)))
		r, err := Apply(h.text, h.old, h.new, false)
		if err != nil {
			return // a refusal harms nobody; how many there are is counted by the replay bench
		}
		fail := func(format string, args ...any) {
			t.Fatalf("%s\nfile\n%s\nold\n%q\nnew\n%q\nresult\n%s", fmt.Sprintf(format, args...), h.text, h.old, h.new, r.Text)
		}
		if strings.HasSuffix(r.Text, "\n") != strings.HasSuffix(h.text, "\n") && len(h.come)+len(h.gone) > 0 {
			fail("the end of the file has changed")
		}
		if h.eol == "\r\n" && strings.Count(r.Text, "\n") != strings.Count(r.Text, "\r\n") {
			fail("a line ending has changed")
		}
		got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(r.Text, "\r\n", "\n"), "\n"), "\n")
		var kept []string // the file's lines with a text of their own, in the order of the result
		blanks := 0
		for _, line := range got {
			switch {
			case trim(line) == "":
				blanks++
			case slices.Contains(h.lines, line) && strings.ContainsAny(line, "=c"):
				kept = append(kept, line)
			}
		}
		var want []string
		was := 0
		for _, line := range h.lines {
			switch {
			case line == "":
				was++
			case !strings.ContainsAny(line, "=c") || slices.Contains(h.gone, strings.TrimSpace(line)):
			default:
				want = append(want, line)
			}
		}
		if !slices.Equal(kept, want) {
			fail("lines were lost, doubled or moved: %q, want %q", kept, want)
		}
		if blanks != was {
			fail("%d blank lines, the file had %d", blanks, was)
		}
		for _, line := range h.come {
			if n := strings.Count(r.Text, line); n != 1 {
				fail("%q was added %d times", line, n)
			}
		}
		if len(got) != len(h.lines)-len(h.gone)+len(h.come) {
			fail("%d lines, want %d", len(got), len(h.lines)-len(h.gone)+len(h.come))
		}
	})
}
