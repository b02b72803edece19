package patch

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/replace"
	"github.com/pillion-dev/pillion/tools/replace/recorded"
)

var rewrite = flag.Bool("update", false, "write testdata/record.txt anew")

// testdata/record.txt is written anew by: go test ./tools/patch -run Recorded -update. Before it is committed, look at some of the cases that
// changed: the test prints the first one whole.
// drawing makes patches by chance, of files whose lines repeat.
type drawing struct{ *rand.Rand }

func (r drawing) one(of ...string) string { return of[r.IntN(len(of))] }
func (r drawing) in(n int) bool           { return r.IntN(n) == 0 } // one time in n

func (r drawing) word() string {
	return r.one("load", "store", "user", "items", "count", "cache", "it’s", "“quoted”", "a–b", "naïve", "e.g…", "x", "err")
}

func (r drawing) line() string {
	in := r.one("", "", "\t", "\t", "\t\t", "    ", "        ", "  ")
	switch r.IntN(9) {
	case 0:
		return ""
	case 1:
		return in + r.one("}", "{", "})", "end", "return nil")
	case 2:
		return in + "func " + r.word() + "(" + r.word() + ") {"
	case 3:
		return in + "// " + r.word() + " the " + r.word() + r.one("", " ", "  ")
	case 4:
		return in + strings.Repeat(r.word()+" ", 1+r.IntN(40)) + r.word()
	case 5:
		return r.one("--- a", "+++ b", "-- ", "@@ -1 +1 @@", "*** End Patch", "diff --git a b", "```", "\xff", "- item", "+ item")
	}
	return in + r.word() + "(" + r.word() + ", " + r.word() + ")"
}

// file is a text of 0 to 40 lines, a third of them a copy of an earlier one, with line endings of one kind or of two.
func (r drawing) file() []string {
	var out []string
	for range r.IntN(41) {
		if len(out) > 0 && r.in(3) {
			out = append(out, out[r.IntN(len(out))])
		} else {
			out = append(out, r.line())
		}
	}
	return out
}

func (r drawing) ended(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	style := r.IntN(6)
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(l)
		if i == len(lines)-1 && style == 5 {
			break
		}
		if style == 3 || style == 4 && r.in(2) {
			b.WriteByte('\r')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// hunk is a change of a few lines: where it begins, and its lines with their marks.
type drawn struct {
	at    int // from 0
	lines []string
	old   int
	new   int
}

func (r drawing) hunk(file []string, from int) (drawn, bool) {
	if from >= len(file) {
		return drawn{at: from, lines: []string{"+" + r.line()}, new: 1}, r.in(3)
	}
	h := drawn{at: from + r.IntN(min(8, len(file)-from))}
	end := min(len(file), h.at+1+r.IntN(7))
	for i := h.at; i < end; i++ {
		switch r.IntN(6) {
		case 0:
			h.lines = append(h.lines, "-"+file[i])
		case 1:
			h.lines = append(h.lines, "-"+file[i], "+"+file[i]+r.one("2", "()", " ", ""))
		case 2:
			h.lines = append(h.lines, "+"+r.line(), " "+file[i])
		default:
			h.lines = append(h.lines, " "+file[i])
		}
	}
	if r.in(5) {
		h.lines = append(h.lines, r.one("+", "-", " ", "+added()", "+\tadded()", "+2: added()", "+// ...", "+// ... existing code ...", ""))
	}
	h.count()
	return h, true
}

func (h *drawn) count() {
	h.old, h.new = 0, 0
	for _, l := range h.lines {
		if !strings.HasPrefix(l, "+") && !strings.HasPrefix(l, `\`) {
			h.old++
		}
		if !strings.HasPrefix(l, "-") && !strings.HasPrefix(l, `\`) {
			h.new++
		}
	}
}

// misquote damages the lines of a hunk as models do.
func (r drawing) misquote(h *drawn) {
	each := func(f func(string) string) {
		for i, l := range h.lines {
			if l != "" {
				h.lines[i] = l[:1] + f(l[1:])
			}
		}
	}
	k := r.IntN(len(h.lines))
	switch r.IntN(16) {
	case 0:
		each(strings.TrimSpace)
	case 1:
		each(func(s string) string { return strings.ReplaceAll(s, "\t", "    ") })
	case 2:
		each(func(s string) string { return strings.TrimPrefix(s, "\t") })
	case 3:
		each(func(s string) string { return s + r.one("", " ", "  ") })
	case 4:
		each(replace.Fold)
	case 5:
		each(func(s string) string { return strings.NewReplacer("(", "“", "...", "…").Replace(s) })
	case 6:
		h.lines[k] += " x"
	case 7:
		h.lines = slices.Delete(h.lines, k, k+1)
	case 8:
		h.lines = slices.Insert(h.lines, k, r.one(" ", "-", "+")+r.line())
	case 9:
		n := h.at
		each(func(s string) string { n++; return fmt.Sprintf("%d: %s", n, s) })
	case 10:
		each(func(s string) string { return strings.TrimRight(s, " ") })
		for i, l := range h.lines {
			if l == " " && r.in(2) {
				h.lines[i] = ""
			}
		}
	case 11:
		h.lines[k] = strings.TrimLeft(h.lines[k], " ")
	case 12:
		h.lines = append(h.lines, `\ No newline at end of file`)
	case 13:
		if k+1 < len(h.lines) {
			h.lines[k], h.lines[k+1] = h.lines[k+1], h.lines[k]
		}
	}
	if len(h.lines) == 0 {
		h.lines = []string{"+x"}
	}
	if r.in(2) {
		h.count()
	}
}

func (r drawing) hunks(file []string) (out []drawn) {
	at := 0
	for range 1 + r.IntN(3) {
		h, ok := r.hunk(file, at)
		if !ok {
			break
		}
		at = h.at + h.old
		for r.in(3) {
			r.misquote(&h)
		}
		out = append(out, h)
	}
	if len(out) > 1 && r.in(6) {
		out[0], out[1] = out[1], out[0]
	}
	if len(out) > 0 && r.in(10) {
		out = append(out, out[0])
	}
	return out
}

// section is one file of an envelope.
func (r drawing) section(name string, file []string) []string {
	out := []string{r.one("", "", "", " ", "\t") + "*** Update File: " + name + r.one("", "", " ", "\r")}
	if r.in(6) {
		out = append(out, "*** Move to: "+r.one("g", "d/h", "f", "./f", "", " other "))
	}
	if r.in(12) {
		out = append(out, "--- a/f", "+++ b/f", "@@ -1,2 +1,2 @@")
	}
	near := func(at int) string {
		if len(file) == 0 {
			return "nothing"
		}
		return file[max(0, min(len(file)-1, at-r.IntN(4)))]
	}
	for _, h := range r.hunks(file) {
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			out = append(out, "@@")
		case 4, 5:
			out = append(out, "@@ "+near(h.at))
		case 6:
			l := near(h.at)
			out = append(out, "@@ "+strings.TrimSpace(l[:len(l)-len(l)/3])+r.one("", " @@"))
		case 7:
			out = append(out, "@@ "+near(max(0, h.at-5)), "@@ "+near(h.at))
		case 8:
			out = append(out, fmt.Sprintf("@@ -%d,%d +%d,%d @@%s", h.at+1+r.IntN(3)-1, h.old, h.at+1, h.new, r.one("", " "+near(h.at))))
		}
		out = append(out, h.lines...)
		if r.in(8) {
			out = append(out, r.one("*** End of File", " *** End of File", "-", " ", "", "*** Foo"))
		}
	}
	return out
}

func (r drawing) envelope(file, second []string) []string {
	out := []string{r.one("", "", " ", "  ") + "*** Begin Patch" + r.one("", "", " ")}
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0:
			out = append(out, "*** Add File: "+r.one("n", "f", "./n", ""), "+"+r.line(), "+", "+"+r.line())
			if r.in(3) {
				out = append(out, r.one("", "\\ No newline at end of file", "*** End of File", "+last", "no mark"))
			}
		case 1:
			out = append(out, "*** Delete File: "+r.one("f", "s", "missing", "./f"))
			if r.in(5) {
				out = append(out, r.one("", "-x"))
			}
		case 2:
			out = append(out, r.section("s", second)...)
		default:
			out = append(out, r.section(r.one("f", "f", "f", "f", "./f", "missing"), file)...)
		}
	}
	if !r.in(15) {
		out = append(out, r.one("", "", " ", "\t ")+"*** End Patch"+r.one("", " ", "\r"))
	}
	if r.in(10) {
		out = append(append([]string{"Here it is:", "```"}, out...), "```", "That is all.")
	}
	return out
}

func (r drawing) diff(file []string) []string {
	var out []string
	git := r.in(2)
	old, new := "a/f", "b/f"
	switch r.IntN(12) {
	case 0:
		old, new = "f", "f"
	case 1:
		old, new = "f.orig", "f"
	case 2:
		old, new = `"a/\146"`, `"b/f"`
	case 3:
		old, new = "i/f", "w/f"
	case 4:
		old = "/dev/null"
	case 5:
		new = "/dev/null"
	case 6:
		new = "b/n"
	case 7:
		old, new = "a/n o", "b/n o"
	}
	if git {
		out = append(out, "diff --git "+old+" "+new)
		for r.in(3) {
			out = append(out, r.one("index 123..456 100644", "old mode 100644", "new mode 100755", "new mode 120000", "new mode 160000", "new mode x", "new file mode 100644", "deleted file mode 100644",
				"similarity index 90%", "rename from f", "rename to g", "copy from f", "copy to \"d\\/h\"", "GIT binary patch", "Binary files a and b differ", "comment"))
		}
	}
	if !git || !r.in(6) {
		out = append(out, "--- "+old+r.one("", "", "\t2026-01-01 00:00:00", "\t1970-01-01 00:00:00 +0000", "\t1969-12-31 19:00:00 -0500"), "+++ "+new+r.one("", "", "\t", "\t1970-01-01 00:00:00 +0000"))
	}
	shift := r.IntN(3)
	for _, h := range r.hunks(file) {
		switch r.IntN(8) {
		case 0:
			out = append(out, r.one("@@", "@@ ... @@", "@@ "+r.line(), "@@@ -1 -1 +1 @@@", "@@ -x +1 @@", "@@ -1,-2 +1 @@"))
		case 1:
			out = append(out, fmt.Sprintf("@@ -%d +%d @@", h.at+1, h.at+1))
		case 2:
			out = append(out, fmt.Sprintf("@@ -%d,%d +%d,%d @@", max(0, h.at+1-r.IntN(9)), h.old+r.IntN(3)-1, h.at+1, h.new))
		case 3:
			out = append(out, fmt.Sprintf("@@ -0,0 +1,%d @@", h.new))
		default:
			out = append(out, fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.at+1+shift, h.old, h.at+1+shift, h.new, r.one("", "func x() {")))
		}
		out = append(out, h.lines...)
		if r.in(8) {
			out = append(out, r.one("", "-- ", "words behind", "```", "\\ No newline at end of file", "Binary files a and b differ", "GIT binary patch"))
		}
	}
	if r.in(4) {
		out = append(append([]string{"From: somebody", ""}, out...), r.one("-- ", "", "2.39"))
	}
	return out
}

// oneCase is the patch of one seed, and the files it meets.
func oneCase(seed uint64) (text string, before files) {
	r := drawing{rand.New(rand.NewPCG(seed, 19))}
	file, second := r.file(), r.file()
	before = files{"f": r.ended(file), "s": r.ended(second)}
	var lines []string
	switch r.IntN(9) {
	case 0, 1, 2:
		lines = r.diff(file)
		if r.in(5) {
			lines = append(lines, r.diff(file)...)
		}
	case 3:
		lines = append(append([]string{"*** Begin Patch"}, r.diff(file)...), "*** End Patch")
	default:
		lines = r.envelope(file, second)
		if r.in(12) {
			lines = append(lines, r.envelope(file, second)...)
		}
	}
	for r.in(6) {
		k := r.IntN(len(lines))
		switch r.IntN(5) {
		case 0:
			lines = slices.Delete(lines, k, k+1)
		case 1:
			lines = slices.Insert(lines, k, lines[k])
		case 2:
			lines[k] = lines[k][min(1, len(lines[k])):]
		case 3:
			lines[k] = " " + lines[k]
		case 4:
			lines = lines[:k]
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
	}
	end := r.one("\n", "\n", "\n", "\n", "\n", "\r\n")
	return strings.Join(lines, end) + r.one("", end), before
}

// What thousands of patches in both grammars make of files, or why they are refused, is recorded, as a digest: a change of the package that
// changes an answer is seen, and must be meant.
func TestAnswersAreAsRecorded(t *testing.T) {
	recorded.Check(t, "testdata/record.txt", 8000, *rewrite, func(seed uint64) (kind, whole, about string) {
		text, before := oneCase(seed)
		p, err := Parse(text)
		var changes []FileChange
		kind = "parsed"
		if err == nil {
			changes, err = p.Apply(before.read)
			whole = fmt.Sprintf("%q", p.Paths())
		}
		var refused *Error
		switch {
		case errors.As(err, &refused):
			kind = refused.Kind
			whole += fmt.Sprintf("%+v", *refused)
		case err != nil:
			kind = "error"
			whole += err.Error()
		default:
			for _, c := range changes {
				whole += fmt.Sprintf("%+v\n", c)
			}
			if len(changes) > 0 {
				kind = "done"
			}
		}
		return kind, whole, fmt.Sprintf("%s\nfiles %q", text, before)
	})
}
