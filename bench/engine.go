package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/replace"
)

const howEngine = `tools/replace alone. The last stage (similar_block): a quoted block of six lines, two of which were left out of the quotation, in
10,000 lines; the seven stages before it look first and fail, and the change is merged. The worst case: texts of 1 MB made to be
slow for one replacer or the other; the slowest of them is named.`

func (b *bench) engine() {
	text := goLines(10_000)
	lines := strings.Split(text, "\n")
	block := append([]string(nil), lines[5000:5006]...)
	quoted := append([]string(nil), block...)
	quoted = slices.Delete(quoted, 2, 4)
	old := strings.Join(quoted, "\n")
	quoted[len(quoted)-1] = "replaced"
	new := strings.Join(quoted, "\n")
	var s Samples
	stage := ""
	for range b.rounds(40) {
		s = append(s, timed(func() {
			r, err := replace.Apply(text, old, new, false)
			check(err)
			stage = r.Stage
		}))
	}
	if stage != "similar_block" {
		failf("similar_block was to decide, %s did", stage)
	}
	b.add(Row{What: "last stage, 10,000 lines", Unit: "ms", Ours: s, Target: Target{AtMost: 20}})

	const size = 1 << 20
	fill := func(line string) string { return strings.Repeat(line, size/len(line)) }
	hostile := []struct{ name, text, old string }{
		{"nothing alike", fill(goLines(100)), "this is\nnowhere in\nthe text"},
		{"every line an anchor", fill("{\n}\n"), "{\nx\ny\nz\n}"},
		{"anchors far apart", "{\n" + fill("some line of words\n") + "}\n", "{\n" + strings.Repeat("some other line\n", 2000) + "}"},
		{"anchors in every block", fill("begin\nvalue = 1\nother = 2\nend\n"), "begin\nnothing = like\nit = here\nend"},
		{"one long line", fill("word  "), "word word word nowhere"},
		{"one long line, quoted with other blanks", fill("word ") + "the  end", "word the end"},
		{"a prefix of everything", fill("a\n"), strings.Repeat("a\n", 2000) + "b"},
		{"blank lines", fill("\n"), "\n\n\nx\n\n\n"},
		{"deep indentation", fill(strings.Repeat("\t", 200) + "x\n"), "\tx\n\t\ty\n"},
		{"backslashes", fill(`\\n\\t\\"`), `\\n\\q`},
		{"half of a megabyte quoted", fill("line of text\n"), strings.Repeat("line of text \n", size/30) + "other"},
		{"one letter off in long lines", strings.Repeat(strings.Repeat("x", 20_000)+"\n", size/20_001), "x\n" + strings.Repeat("x", 20_000) + "y\nx"},
	}
	worst, name := 0.0, ""
	for _, h := range hostile {
		best := 0.0
		for i := range 3 {
			took := timed(func() { _, _ = replace.Apply(h.text, h.old, "new", false) })
			if i == 0 || took < best {
				best = took
			}
		}
		if best > worst {
			worst, name = best, h.name
		}
	}
	b.add(Row{What: fmt.Sprintf("worst of %d hostile texts of 1 MB", len(hostile)), Unit: "ms", Ours: Samples{worst}, Target: Target{AtMost: 200}, Note: name})
}
