package patch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/replace"
)

// Whatever the text, reading and applying it ends without a panic, and without an error nothing but what the patch
// names is changed.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@ a\n@@ b\n-b\n+c\n*** End of File\n*** End Patch",
		"*** Begin Patch\n*** Add File: h\n+x\n\n+y\n*** Delete File: f\n*** End Patch",
		"diff --git a/f b/g\nold mode 100644\nnew mode 100755\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n",
		"--- \"a/\\303\\251\"\t1970-01-01 00:00:00\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n",
		"--- f\n+++ f\n@@ -3,0 +3 @@\n+x\n@@@\n",
	} {
		f.Add(s, "a\nb\r\nc", false)
	}
	f.Fuzz(func(t *testing.T, text, old string, inside bool) {
		if inside {
			text = "*** Begin Patch\n*** Update File: f\n" + text + "\n*** End Patch"
		}
		p, err := Parse(text)
		if err != nil {
			return
		}
		fs := files{"f": old, "untouched": "x"}
		changes, err := p.Apply(fs.read)
		if err != nil {
			return
		}
		named := map[string]bool{}
		for _, path := range p.Paths() {
			named[path] = true
		}
		for _, c := range changes {
			if !named[c.Path] || c.NewPath != "" && !named[c.NewPath] {
				t.Fatalf("%+v is none of %v", c, p.Paths())
			}
		}
	})
}

// An envelope written from two versions, with what models do to context (blanks, punctuation), makes the one from
// the other, and what it does not mention stays to the byte.
func FuzzEnvelope(f *testing.F) {
	f.Add(uint64(1), uint64(2), false)
	f.Fuzz(func(t *testing.T, a, b uint64, crlf bool) {
		r := rand.New(rand.NewPCG(a, b))
		n := 5 + r.IntN(30)
		var old, new, body []string
		for i := range n {
			old = append(old, fmt.Sprintf("  line “%d” x", i))
		}
		from, cut := r.IntN(n), 0
		cut = min(n-from, 1+r.IntN(4))
		new = append(append([]string{}, old[:from]...), "  added one", "  added two")
		new = append(new, old[from+cut:]...)
		mode := r.IntN(3) // how lines are indented: as in the file, some not at all, none at all
		sloppy := func(s string) string {
			if mode == 2 {
				s = strings.TrimSpace(s)
			}
			switch r.IntN(4) {
			case 0:
				return s + "  "
			case 1:
				if mode == 1 {
					return strings.TrimSpace(s)
				}
			case 2:
				return replace.Fold(s)
			}
			return s
		}
		for _, line := range old[max(0, from-3):from] {
			body = append(body, " "+sloppy(line))
		}
		for _, line := range old[from : from+cut] {
			body = append(body, "-"+sloppy(line))
		}
		if mode == 2 {
			body = append(body, "+added one", "+added two")
		} else {
			body = append(body, "+  added one", "+  added two")
		}
		for _, line := range old[from+cut : min(n, from+cut+3)] {
			body = append(body, " "+sloppy(line))
		}
		sep, end := "\n", "\n"
		if crlf {
			sep, end = "\r\n", "\r\n"
		}
		if r.IntN(3) == 0 {
			end = ""
		}
		got, e := apply(t, "*** Begin Patch\n*** Update File: f\n@@\n"+strings.Join(body, "\n")+"\n*** End Patch\n", files{"f": strings.Join(old, sep) + end})
		if e != nil && mode == 1 && e.Kind == Conflict {
			return // how deep the added lines belong cannot be told
		}
		if e != nil {
			t.Fatal(e)
		}
		if want := strings.Join(new, sep) + end; got["f"] != want {
			t.Fatalf("got %q\nwant %q", got["f"], want)
		}
	})
}

// 1,000 hunks in a file of 100,000 lines: each pass over the file is one comparison of integers a line.
func BenchmarkEnvelopeThousandHunks(b *testing.B) {
	var text, patch strings.Builder
	patch.WriteString("*** Begin Patch\n*** Update File: f\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "line %d of the file\n", i)
		if i%100 == 50 {
			fmt.Fprintf(&patch, "@@\n line %d of the file \n-line %d of the file\n+changed\n", i, i+1)
		}
	}
	patch.WriteString("*** End Patch\n")
	fs := files{"f": text.String()}
	for b.Loop() {
		p, err := Parse(patch.String())
		if err != nil {
			b.Fatal(err)
		}
		if _, err = p.Apply(fs.read); err != nil {
			b.Fatal(err)
		}
	}
}
