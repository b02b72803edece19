package replace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// ending is the line ending of each line: all LF, all CRLF, or mixed.
func endings(r *rand.Rand, n int) []string {
	kind := r.IntN(3)
	out := make([]string, n)
	for i := range out {
		out[i] = "\n"
		if kind == 1 || kind == 2 && r.IntN(2) == 0 {
			out[i] = "\r\n"
		}
	}
	if r.IntN(3) == 0 {
		out[n-1] = ""
	}
	return out
}

// oddLine is a line that no other line is, with what files have in them besides ASCII: typographic characters, NUL, bytes that are not
// UTF-8, a CR alone, blanks at its end, thousands of bytes.
func oddLine(r *rand.Rand, i int) string {
	line := strings.Repeat([]string{"\t", "  ", "    "}[r.IntN(3)], r.IntN(3)) + fmt.Sprintf("line%d(%q, %d)", i, "it's – so", r.IntN(1000))
	switch r.IntN(12) {
	case 0:
		line += " // “quoted” — ‘so’…"
	case 1:
		line += " \x00 after NUL"
	case 2:
		line += " \xff\xfe\xc3"
	case 3:
		line += "  \t"
	case 4:
		line += " old\rMac"
	case 5:
		line += strings.Repeat(" word", 200+r.IntN(2000))
	case 6:
		return ""
	}
	return line
}

// misquote is how a model gives lines that it has read: as they are, with blanks behind, without indentation, with plain or curled
// punctuation.
func misquote(r *rand.Rand) func(string) string {
	curl := strings.NewReplacer(`"`, "”", "'", "’", "-", "–")
	return []func(string) string{
		func(s string) string { return s },
		func(s string) string { return s + "  " },
		func(s string) string { return strings.TrimLeft(s, " \t") },
		Fold,
		curl.Replace,
	}[r.IntN(5)]
}

// Whatever a file consists of and however a block of it is quoted: an edit that is made leaves every byte before and behind the block, and
// every line of the block that the change keeps has its own bytes or, moved to another depth, its own text.
func FuzzOutsideTheQuotationEveryByteStays(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed, uint64(18))
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		n := 12 + r.IntN(40)
		if r.IntN(250) == 0 {
			n = 20_000
		}
		eol := endings(r, n)
		lines := make([]string, n)
		for i := range lines {
			lines[i] = oddLine(r, i)
		}
		raw := func(from, to int) string {
			var s strings.Builder
			for i := from; i < to; i++ {
				s.WriteString(lines[i])
				s.WriteString(eol[i])
			}
			return s.String()
		}
		from := r.IntN(n - 9)
		to := from + 2 + r.IntN(7)
		as := misquote(r)
		var quoted, wanted []string
		left := -1 // a line that the quotation leaves out
		if to-from > 4 && r.IntN(3) == 0 {
			left = from + 1 + r.IntN(to-from-2)
		}
		change := from + r.IntN(to-from)
		for i := from; i < to; i++ {
			if i == left {
				continue
			}
			quoted = append(quoted, as(lines[i]))
			if i == change {
				wanted = append(wanted, as(indent(lines[i])+"changed()"))
			} else {
				wanted = append(wanted, as(lines[i]))
			}
		}
		text, old, new := raw(0, n), strings.Join(quoted, "\n"), strings.Join(wanted, "\n")
		res, err := Apply(text, old, new, false)
		if err != nil {
			return // a refusal harms nobody
		}
		fail := func(what string) {
			shown := text
			if n > 1000 {
				shown = raw(from-2, to+2)
			}
			t.Fatalf("%s (%s)\nfile %q\nold %q\nnew %q\nspans %v", what, res.Stage, shown, old, new, res.Spans)
		}
		head, tail := raw(0, from), raw(to, n)
		if !strings.HasPrefix(res.Text, head) {
			fail("bytes before the block have changed")
		}
		if !strings.HasSuffix(res.Text, tail) {
			fail("bytes behind the block have changed")
		}
		if len(head)+len(tail) > len(res.Text) {
			fail("the block's neighbours have grown together")
		}
		block := res.Text[len(head) : len(res.Text)-len(tail)]
		for i := from; i < to; i++ {
			if i == change || lines[i] == "" {
				continue
			}
			at := strings.Index(block, strings.TrimSpace(lines[i]))
			if at < 0 {
				fail(fmt.Sprintf("line %d is gone", i))
			}
			rest := block[at+len(strings.TrimSpace(lines[i])):]
			if want := lines[i][len(strings.TrimRight(lines[i], " \t")):] + eol[i]; !strings.HasPrefix(rest, want) {
				fail(fmt.Sprintf("line %d has another end: %q", i, rest[:min(len(rest), 20)]))
			}
			block = rest
		}
	})
}
