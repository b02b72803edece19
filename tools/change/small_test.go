package change

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// update writes the records of this file anew: go test ./tools/change -run Small -update. Read the difference before it is committed: it is what
// people will see otherwise from then on.
var update = flag.Bool("update", false, "write testdata anew")

// between separates the cases of a record.
const between = "----\n"

// record compares what cases gave with testdata, case by case, so that a failure names the case.
func record(t *testing.T, name string, cases []string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(cases, between)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(string(b), between)
	for i, got := range cases {
		want := ""
		if i < len(was) {
			want = was[i]
		}
		if got != want {
			t.Fatalf("%s, case %d: was\n%s\nis\n%s", name, i, want, got)
		}
	}
	if len(was) != len(cases) {
		t.Errorf("%d cases, %d are recorded", len(cases), len(was))
	}
}

// smallText is a text of few different lines, so that lines repeat, hunks touch and merges are ambiguous.
func smallText(r *rand.Rand) string {
	words := []string{"a", "b", "c", "", "{", "}", "of it", "0", "ä"}
	eol := "\n"
	if r.IntN(8) == 0 {
		eol = "\r\n"
	}
	var sb strings.Builder
	n := r.IntN(7)
	for i := range n {
		sb.WriteString(words[r.IntN(len(words))])
		switch {
		case i == n-1 && r.IntN(4) == 0:
		case r.IntN(20) == 0:
			sb.WriteString("\r\n")
		default:
			sb.WriteString(eol)
		}
	}
	return sb.String()
}

// otherText changes a few lines.
func otherText(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range r.IntN(4) {
		switch i := r.IntN(len(lines)); r.IntN(7) {
		case 0:
			lines[i] = ""
		case 1, 2:
			lines[i] += []string{"x\n", "y\n", "a\n", "\n"}[r.IntN(4)]
		case 3, 4:
			lines[i] = []string{"x\n", "y\n", "b\n", "z"}[r.IntN(4)]
		case 5:
			j := r.IntN(len(lines))
			lines[i], lines[j] = lines[j], lines[i]
		case 6:
			return strings.ReplaceAll(strings.Join(lines, ""), "\n", "\r\n")
		}
	}
	return strings.Join(lines, "")
}

// smallFile is a member of any kind.
func smallFile(r *rand.Rand, path string) File {
	f := File{Path: path, Kind: Edit, Old: smallText(r)}
	f.New = otherText(r, f.Old)
	switch r.IntN(9) {
	case 0:
		f.Kind, f.Old = Create, ""
		f.Folders = []string{"/p/made"}
	case 1:
		f.Kind, f.New = Delete, ""
	case 2, 3:
		f.Kind, f.NewPath = Rename, path+".new"
	}
	if r.IntN(5) == 0 {
		f.Mode = []uint32{0o755, 0o644, 0o600}[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		f.OldMode = []uint32{0o755, 0o644, 0o600}[r.IntN(3)]
	}
	switch r.IntN(12) {
	case 0:
		f.Binary = true
		f.OldEncoding = []string{"", "binary", "utf-16le"}[r.IntN(3)]
	case 1:
		f.Binary, f.Encoding = true, Link
		f.OldEncoding = []string{"", "utf-8", Link}[r.IntN(3)]
	case 2:
		f.Binary, f.OldEncoding = true, Link
	}
	return f
}

func shownFile(f File) string {
	s := fmt.Sprintf("%s %s", f.Kind, same(f.Path))
	if f.NewPath != "" {
		s += "→" + same(f.NewPath)
	}
	if f.Mode != 0 || f.OldMode != 0 {
		s += fmt.Sprintf(" %o→%o", f.OldMode, f.Mode)
	}
	if f.Encoding != "" || f.OldEncoding != "" || f.Binary {
		s += fmt.Sprintf(" %s→%s %t", f.OldEncoding, f.Encoding, f.Binary)
	}
	if len(f.Folders) > 0 {
		s += fmt.Sprint(f.Folders)
	}
	return s + fmt.Sprintf(" %q→%q %s", f.Old, f.New, shownHunks(f.Hunks))
}

func shownHunks(hunks []Hunk) string {
	var out []string
	for _, h := range hunks {
		out = append(out, fmt.Sprintf("%s:-%d,%d+%d,%d", h.ID, h.OldStart, h.OldLines, h.NewStart, h.NewLines))
	}
	return "[" + strings.Join(out, " ") + "]"
}

func shownConflicts(list []Conflict) string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("{%s %s %d %q %q %q %s}", same(c.Path), c.HunkID, c.Line, c.Base, c.Ours, c.Theirs, c.Why))
	}
	return strings.Join(out, " ")
}

func shownSet(s *Set, err error) string {
	if c, ok := err.(*ConflictError); ok {
		return fmt.Sprintf("%s: %s", c, shownConflicts(c.Conflicts))
	}
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, f := range s.Files {
		out = append(out, shownFile(f))
	}
	return s.Title + "| " + strings.Join(out, " | ")
}

// decisions are random ones about a set.
func decisions(r *rand.Rand, s *Set) Decisions {
	d := Decisions{Default: []DecisionKind{"", Accept, Reject}[r.IntN(3)], Hunks: map[string]Decision{}}
	if r.IntN(4) == 0 {
		d.Comment = "on all"
	}
	for _, f := range s.Files {
		for _, h := range f.Hunks {
			v := Decision{Kind: []DecisionKind{"", Accept, Reject, Replace, Replace}[r.IntN(5)]}
			if v.Kind == Replace {
				v.NewText = []string{h.OldText, h.NewText, "mine\n", "mine", "two\r\nlines", ""}[r.IntN(6)]
			}
			if r.IntN(4) == 0 {
				v.Comment = "why"
			}
			if r.IntN(3) > 0 {
				d.Hunks[h.ID] = v
			}
		}
	}
	return d
}

// What the package makes of small changes of every kind is recorded: hunks, diffs, decisions, merges and ways back. Properties (what is accepted
// is written, what is taken back is as it was, Git merges the same) have tests of their own; this one notices the rest.
func TestSmallChangesAreAsRecorded(t *testing.T) {
	var cases []string
	for seed := range uint64(220) {
		r := rand.New(rand.NewPCG(seed, 3))
		var sb strings.Builder
		say := func(what, text string) { fmt.Fprintf(&sb, "%s %s\n", what, text) }
		files := []File{smallFile(r, "/p/one")}
		if r.IntN(4) == 0 {
			files = append(files, smallFile(r, "/p/two"))
		}
		s := New("c", files)
		s.Title = []string{"", "Title"}[r.IntN(2)]
		added, removed := s.Stat()
		_, lines := s.Lines()
		say("set", fmt.Sprintf("%s +%d-%d %v %v", shownSet(s, nil), added, removed, lines, s.Paths()))
		say("diff", fmt.Sprintf("%q", s.Unified(same)))

		d := decisions(r, s)
		decided, err := s.Decide(d)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for id, v := range d.Hunks {
			ids = append(ids, fmt.Sprintf("%s=%s%q%s", id, v.Kind, v.NewText, v.Comment))
		}
		slices.Sort(ids)
		say("decide", fmt.Sprintf("%s %v: %s, %d accepted", d.Default, ids, shownSet(decided.Set, nil), decided.Accepted))
		say("report", fmt.Sprintf("%q", decided.Report(same)))

		f := s.Files[0]
		now := otherText(r, f.Old)
		moved, err := f.Rebase(now)
		if err != nil {
			say("rebase", fmt.Sprintf("%q: %s", now, shownSet(nil, err)))
		} else {
			say("rebase", fmt.Sprintf("%q: %s", now, shownFile(moved)))
		}
		loose, conflicts := Merge(f.Old, f.New, now, false)
		say("merge", fmt.Sprintf("%q %s", loose, shownConflicts(conflicts)))
		say("conflicted", fmt.Sprintf("%q %q", Conflicted(f.Old, now, f.New), BothSides(now, f.New)))
		say("with", shownFile(f.With(now)))

		// The way back, from what was written or from what was written since; sometimes the file is gone or its old place is taken.
		var some []string
		for _, h := range f.Hunks {
			if r.IntN(2) == 0 {
				some = append(some, h.ID)
			}
		}
		present := f.New
		if r.IntN(2) == 0 {
			present = otherText(r, present)
		}
		gone, taken := r.IntN(9) == 0, r.IntN(9) == 0
		say("undo", fmt.Sprintf("%v %q: ", some, present)+shownSet(s.Undo("u", some, func(path string) (string, bool) {
			switch {
			case gone:
				return "", false
			case f.Kind == Delete || f.Kind == Rename && path == f.Path:
				return []string{"other\n", f.Old}[r.IntN(2)], taken
			}
			return present, true
		})))

		// Two changes of a turn, with a person between them.
		persons := otherText(r, f.New)
		second := smallFile(r, cmp.Or(f.NewPath, f.Path))
		if second.Old, second.New = persons, otherText(r, persons); second.Kind == Delete {
			second.New = ""
		}
		if second.Kind == Create {
			second.Kind = Edit
		}
		if f.Kind == Delete {
			second.Kind, second.Old = Create, ""
		}
		next := New("d", []File{second})
		parts := []Part{{"c", f}, {"d", next.Files[0]}}
		sum := Sum(parts, otherText(r, next.Files[0].New))
		var hunks []string
		for _, h := range sum.Hunks {
			hunks = append(hunks, fmt.Sprintf("%s%v", shownHunks([]Hunk{h.Hunk}), h.Members))
		}
		say("sum", fmt.Sprintf("%s: %s %s→%s %q→%q %t %v", shownFile(next.Files[0]), sum.Kind, same(sum.Path), sum.NewPath, sum.Base, sum.Text, sum.Binary, hunks))
		cases = append(cases, sb.String())
	}
	record(t, "changes", cases)
}

// Compare is recorded for all pairs of what can be at a path.
func TestSmallComparisonsAreAsRecorded(t *testing.T) {
	var sides []Side
	for _, text := range []string{"", "a\n", "b\x00\n"} {
		for _, encoding := range []string{"utf-8", "utf-16le", Link} {
			for _, mode := range []uint32{0, 0o644, 0o755} {
				sides = append(sides, Side{true, text, encoding, mode})
			}
		}
	}
	sides = append(sides, Side{})
	var sb strings.Builder
	for _, a := range sides {
		for _, b := range sides {
			f, ok := Compare("/p/f", a, b, 0o022)
			g, _ := Compare("/p/f", a, b, 0o077)
			if a.Text == b.Text || a.Mode != b.Mode { // the rest says the same again
				fmt.Fprintf(&sb, "%+q %+q: %t %s %o\n", fmt.Sprint(a), fmt.Sprint(b), ok, shownFile(f), g.Mode)
			}
		}
	}
	record(t, "comparisons", []string{sb.String()})
}

// The lines of evidence are recorded for every state of checks, uses and claims.
func TestSmallEvidenceIsAsRecorded(t *testing.T) {
	var cases []string
	say := func(e *Evidence) {
		var sb strings.Builder
		for _, l := range e.Lines(func(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }) {
			fmt.Fprintf(&sb, "%d %s\n", l.Mood, l.Text)
		}
		cases = append(cases, sb.String())
	}
	tests := [][]TestResult{nil, {{Name: "A", Status: EvidencePassed}}, {{Name: "A", Status: EvidenceFailed, Suite: "p", Before: EvidenceFailed}},
		{{Name: "A", Status: EvidenceFailed, Before: EvidenceFailed}, {Name: "B", Status: EvidenceFailed, Before: EvidencePassed}, {Name: "C", Status: EvidenceSkipped}}, nil}
	for i := range maxFailedLines + 2 {
		tests[4] = append(tests[4], TestResult{Name: fmt.Sprint("T", i), Status: EvidenceFailed})
	}
	for _, status := range []EvidenceStatus{EvidencePassed, EvidenceFailed, EvidenceNotRun, "later"} {
		for i, list := range tests {
			e := &Evidence{}
			for k := range 4 {
				e.Checks = append(e.Checks, Check{Command: "go test", Status: status, ExitCode: k / 2, Seconds: 1.25, Stale: k%2 == 1, Reason: []string{"", "cut off"}[(i+k)%2], Tests: list})
			}
			say(e)
		}
	}
	for n := range maxUseLines + 7 {
		e := &Evidence{}
		for i := range n {
			u := Use{Name: fmt.Sprint("F", i), Kind: "function", Path: "/p/f", Line: i + 1, What: []string{UseBody, UseSignature, UseRemoved}[i%3], Public: i%2 == 0, Uses: i % 4, Files: i%4 - i%4/3, Inside: (i + n) % (i%4 + 1)}
			for k := range u.Uses - u.Inside {
				u.Others = append(u.Others, Place{"/p/g", 10 * (k + 1)})
			}
			if (i+n)%5 == 4 {
				u.Unknown = "no server"
			}
			e.Uses = append(e.Uses, u)
		}
		say(e)
	}
	e := &Evidence{Attempts: 1, Insists: "it must be so", Merged: []string{"/p/a", "/p/b"}}
	for _, support := range []string{ClaimSupported, ClaimStale, ClaimFailed, ClaimNoRun} {
		c := Claim{Text: "tests pass", About: "tests", Support: support, Command: "go test", Exit: len(e.Claims)}
		if support == ClaimNoRun {
			c.Command, c.Exit = "", 0
		}
		e.Claims = append(e.Claims, c)
	}
	e.Claims = append(e.Claims, Claim{Text: "tests pass and vet is clean", About: "lint", Subject: "go vet", Support: ClaimNoRun}, Claim{Text: "lint passes", About: "lint", Support: ClaimNoRun, Command: "make lint test", Exit: 1})
	say(e)
	say(&Evidence{Attempts: 2})
	e.Groups = []Group{{Title: "verified rename a → b", Verified: true, Hunks: []string{"1.1"}}, {Title: "together", Hunks: []string{"1.2", "1.3"}}}
	s := New("c", []File{{Path: "/a", Kind: Edit, Old: "a\n", New: "b\n"}}).WithEvidence(e)
	e.Checks = []Check{{Command: "make", Status: EvidencePassed}}
	after := s.WithFiles(nil).Evidence
	var none *Evidence
	text := fmt.Sprintf("%s\n%+v\n%v %v %v %v\n", s.EvidenceText(), *after, e.GroupOf("1.3").Title, e.GroupOf("2.1"), none.GroupOf("1.1"), none.Lines(nil))
	cases = append(cases, text)
	record(t, "evidence", cases)
}

// A place is known by lines with words: letters and digits of any script.
func TestWhatTellsAPlace(t *testing.T) {
	for _, c := range []struct {
		line string
		want bool
	}{{"a", true}, {"z", true}, {"A", true}, {"Z", true}, {"0", true}, {"9", true}, {"ä", true}, {"\x7f", false}, {"{ } [ ] @ / : ` ~ _", false}, {"", false}} {
		if got := telling([]string{"word", c.line}); got != c.want {
			t.Errorf("%q: %t", c.line, got)
		}
	}
}

// A side without any line end takes the base's.
func TestMergeOfASideWithoutLineEnds(t *testing.T) {
	if got, _ := Merge("a\r\nb\r\n", "a", "x\r\na\r\nb\r\n", false); got != "x\r\na" {
		t.Errorf("%q", got)
	}
}
