package change

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func lines(r *rand.Rand, n int) []string {
	l := make([]string, n)
	for i := range l {
		l[i] = fmt.Sprintf("line %d of %d\n", i, r.IntN(1000))
	}
	return l
}

// vary changes, drops and adds a few lines of l.
func vary(r *rand.Rand, l []string, tag string) string {
	l = append([]string{}, l...)
	for k := range 1 + r.IntN(4) {
		if len(l) == 0 {
			break
		}
		switch i := r.IntN(len(l)); r.IntN(4) {
		case 0:
			l[i] = fmt.Sprintf("%s %d\n", tag, k)
		case 1:
			l[i] = ""
		case 2:
			l[i] += fmt.Sprintf("%s new %d\n", tag, k)
		case 3:
			if i == len(l)-1 {
				l[i] = strings.TrimSuffix(l[i], "\n")
			}
		}
	}
	return strings.Join(l, "")
}

func same(p string) string { return filepath.Base(p) }

func TestDecideAllAndNone(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		base := lines(r, r.IntN(30))
		old := strings.Join(base, "")
		s := New("c", []File{{Path: "/a", Kind: Edit, Old: old, New: vary(r, base, "x")}})
		all, err := s.Decide(Decisions{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Files[0].New != old && (all.Set.Files[0].New != s.Files[0].New || len(all.Rulings) != 0) {
			t.Fatalf("seed %d: accepting all gives %q", seed, all.Set.Files[0].New)
		}
		none, err := s.Decide(Decisions{Default: Reject})
		if err != nil || len(none.Set.Files) != 0 {
			t.Fatalf("seed %d: rejecting all leaves %v, %v", seed, none.Set.Files, err)
		}
		// Any subset: the accepted text holds exactly the accepted hunks, and they keep their ids.
		d := Decisions{Default: Reject, Hunks: map[string]Decision{}}
		for _, h := range s.Files[0].Hunks {
			if r.IntN(2) == 0 {
				d.Hunks[h.ID] = Decision{Kind: Accept}
			}
		}
		part, err := s.Decide(d)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Hunks) == 0 {
			continue
		}
		got := part.Set.Files[0]
		if len(got.Hunks) != len(d.Hunks) {
			t.Fatalf("seed %d: %d hunks accepted, %d left", seed, len(d.Hunks), len(got.Hunks))
		}
		for _, h := range got.Hunks {
			if _, ok := d.Hunks[h.ID]; !ok {
				t.Fatalf("seed %d: hunk %s was not accepted", seed, h.ID)
			}
		}
		// Undo of what was applied is the original.
		undo, err := part.Set.Undo("u", nil, func(string) (string, bool) { return got.New, true })
		if err != nil || undo.Files[0].New != old {
			t.Fatalf("seed %d: undo gives %q, %v, want %q", seed, undo.Files[0].New, err, old)
		}
	}
}

// Undoing one hunk after edits elsewhere takes back that hunk and keeps the edits.
func TestUndoOneHunkKeepsLaterEdits(t *testing.T) {
	old := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	new := "1\nTWO\n3\n4\n5\n6\n7\nEIGHT\n9\n"
	s := New("c", []File{{Path: "/a", Kind: Edit, Old: old, New: new}})
	now := "0\n1\nTWO\n3\n4\nfive\n6\n7\nEIGHT\n9\n"
	u, err := s.Undo("u", []string{"1.2"}, func(string) (string, bool) { return now, true })
	if err != nil {
		t.Fatal(err)
	}
	if want := "0\n1\nTWO\n3\n4\nfive\n6\n7\n8\n9\n"; u.Files[0].New != want || u.Files[0].Old != now {
		t.Errorf("got %q, want %q", u.Files[0].New, want)
	}
	redo, err := u.Undo("r", nil, func(string) (string, bool) { return u.Files[0].New, true })
	if err != nil || redo.Files[0].New != now {
		t.Errorf("undo of the undo gives %v, %v", redo, err)
	}
	_, err = s.Undo("u", []string{"1.2"}, func(string) (string, bool) { return strings.Replace(now, "EIGHT", "huit", 1), true })
	var c *ConflictError
	if !errors.As(err, &c) || c.Conflicts[0].HunkID != "1.2" || c.Conflicts[0].Theirs != "huit\n" {
		t.Errorf("changed lines: %v %+v", err, c)
	}
	if _, err = s.Undo("u", []string{"9.9"}, nil); err == nil {
		t.Error("an unknown hunk was undone")
	}
}

func TestUndoOfCreateDeleteAndRename(t *testing.T) {
	s := New("c", []File{
		{Path: "/new", Kind: Create, New: "x\n"},
		{Path: "/gone", Kind: Delete, Old: "y\n"},
		{Path: "/from", NewPath: "/to", Kind: Rename, Old: "a\nb\n", New: "a\nB\n"},
	})
	disk := map[string]string{"/new": "x\n", "/to": "a\nB\n"}
	now := func(p string) (string, bool) { t, ok := disk[p]; return t, ok }
	u, err := s.Undo("u", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []File{{Path: "/new", Kind: Delete, Old: "x\n"}, {Path: "/gone", Kind: Create, New: "y\n"},
		{Path: "/to", NewPath: "/from", Kind: Rename, Old: "a\nB\n", New: "a\nb\n"}}
	for i, f := range u.Files {
		w := want[i]
		if f.Path != w.Path || f.NewPath != w.NewPath || f.Kind != w.Kind || f.Old != w.Old || f.New != w.New {
			t.Errorf("member %d is %+v, want %+v", i, f, w)
		}
	}
	disk["/new"] = "x\nmine\n"
	var c *ConflictError
	if _, err := s.Undo("u", []string{"1.1"}, now); !errors.As(err, &c) {
		t.Errorf("a created file with later edits was to be deleted: %v", err)
	}
	disk["/from"] = "another"
	if _, err := s.Undo("u", []string{"3.0"}, now); !errors.As(err, &c) {
		t.Errorf("a rename back onto another file: %v", err)
	}
}

func TestPersonsOwnText(t *testing.T) {
	for _, c := range []struct{ name, old, new, text, want string }{
		{"final newline is added inside", "a\nb\nc\n", "a\nB\nc\n", "mine", "a\nmine\nc\n"},
		{"CRLF of the file", "a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n", "x\ny\n", "a\r\nx\r\ny\r\nc\r\n"},
		{"last line without newline stays so", "a\nb", "a\nB", "mine", "a\nmine"},
		{"last line with newline keeps it", "a\nb\n", "a\nB\n", "mine", "a\nmine\n"},
		{"emptied", "a\nb\nc\n", "a\nB\nc\n", "", "a\nc\n"},
	} {
		s := New("c", []File{{Path: "/a", Kind: Edit, Old: c.old, New: c.new}})
		d, err := s.Decide(Decisions{Hunks: map[string]Decision{"1.1": {Kind: Replace, NewText: c.text}}})
		if err != nil || d.Set.Files[0].New != c.want {
			t.Errorf("%s: %+v %v, want %q", c.name, d.Set.Files, err, c.want)
		}
	}
}

func TestRenameWithoutItsMove(t *testing.T) {
	s := New("c", []File{{Path: "/a", NewPath: "/b", Kind: Rename, Old: "1\n2\n", New: "1\nX\n"}})
	d, err := s.Decide(Decisions{Hunks: map[string]Decision{"1.0": {Kind: Reject}}})
	if err != nil || d.Set.Files[0].Kind != Edit || d.Set.Files[0].New != "1\nX\n" || d.Set.Files[0].NewPath != "" {
		t.Errorf("%+v %v", d.Set.Files, err)
	}
	d, _ = s.Decide(Decisions{Hunks: map[string]Decision{"1.1": {Kind: Reject}}})
	if f := d.Set.Files[0]; f.Kind != Rename || f.New != "1\n2\n" {
		t.Errorf("move without the edit: %+v", f)
	}
}

func TestEmptyFilesCanBeDecided(t *testing.T) {
	s := New("c", []File{{Path: "/a", Kind: Create}, {Path: "/b", Kind: Delete}})
	d, err := s.Decide(Decisions{Hunks: map[string]Decision{"2.0": {Kind: Reject}}})
	if err != nil || len(d.Set.Files) != 1 || d.Set.Files[0].Path != "/a" {
		t.Errorf("%+v %v", d.Set.Files, err)
	}
}

func TestAnswersForAnotherSetAreRefused(t *testing.T) {
	s := New("c", []File{{Path: "/a", Kind: Edit, Old: "a\n", New: "b\n"}})
	for _, d := range []Decisions{
		{Hunks: map[string]Decision{"7.1": {Kind: Accept}}},
		{Hunks: map[string]Decision{"1.1": {Kind: "maybe"}}},
		{Default: "yes"}, {Default: Replace},
	} {
		if _, err := s.Decide(d); err == nil {
			t.Errorf("%+v was taken", d)
		}
	}
}

func TestReport(t *testing.T) {
	s := New("c", []File{{Path: "/p/a.go", Kind: Edit, Old: "1\n2\n3\n4\n5\n", New: "1\nX\n3\nY\n5\n"}})
	d, err := s.Decide(Decisions{Comment: "careful", Hunks: map[string]Decision{
		"1.1": {Kind: Reject, Comment: "no"}, "1.2": {Kind: Replace, NewText: "Z\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `The user rejected 1 of 2 changes. These were NOT written; do not propose them again unchanged:
@@ a.go line 2 @@
-2
+X
The user changed 1 of 2 changes before accepting them (- as you proposed, + as it was written):
@@ a.go line 4 @@
-Y
+Z
The user's comments:
a.go line 2: no
The user said: careful`
	if got := d.Report(same); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if d, _ := s.Decide(Decisions{}); d.Report(same) != "" {
		t.Error("a plain yes is reported")
	}
}

// gitMerge is what git merge-file makes of three texts.
func gitMerge(t *testing.T, dir, base, ours, theirs string) (string, error) {
	t.Helper()
	for n, s := range map[string]string{"b": base, "o": ours, "t": theirs} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "merge-file", "-p", "--diff3", "o", "b", "t")
	cmd.Dir = dir
	out, err := cmd.Output()
	return string(out), err
}

// git merge-file is the judge: what it merges we merge to the same text, and never more than it does.
func TestMergeAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	clean, clash, evened := 0, 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		base := lines(r, 5+r.IntN(20))
		b, o, th := strings.Join(base, ""), vary(r, base, "ours"), vary(r, base, "theirs")
		text, err := gitMerge(t, dir, b, o, th)
		got, conflicts := Merge(b, o, th, true)
		if err != nil && len(conflicts) == 0 { // only where the last line's newline was all that git saw
			b, o, th := endingOf(b).plain(b), endingOf(o).plain(o), endingOf(th).plain(th)
			if text, err = gitMerge(t, dir, b, o, th); strings.TrimSuffix(text, "\n") == strings.TrimSuffix(got, "\n") {
				text = got
			}
			evened++
		}
		if (err != nil) != (len(conflicts) > 0) {
			t.Fatalf("seed %d: git says %v, we have conflicts %+v\nbase %q\nours %q\ntheirs %q", seed, err, conflicts, b, o, th)
		}
		if err == nil && got != text {
			t.Fatalf("seed %d: got %q, git %q", seed, got, text)
		}
		if err == nil {
			clean++
			// What merges strictly merges the same without; and Rebase keeps ids.
			if loose, c := Merge(b, o, th, false); len(c) > 0 || loose != got {
				t.Fatalf("seed %d: loose merge %q, %v", seed, loose, c)
			}
			f := New("c", []File{{Path: "/a", Kind: Edit, Old: b, New: o}}).Files[0]
			re, err := f.Rebase(th)
			if err != nil || re.New != got || re.Old != th {
				t.Fatalf("seed %d: rebase %v", seed, err)
			}
			ids := map[string]Hunk{}
			for _, h := range f.Hunks {
				ids[h.ID] = h
			}
			for _, h := range re.Hunks {
				if o, ok := ids[h.ID]; ok && o.NewText != h.NewText && o.OldText != h.OldText {
					t.Fatalf("seed %d: hunk %s became another: %q → %q", seed, h.ID, o.NewText, h.NewText)
				}
			}
		} else {
			clash++
		}
	}
	if clean < 20 || clash < 20 || evened == 0 {
		t.Fatalf("%d clean, %d conflicts, %d but for endings: the texts test nothing", clean, clash, evened)
	}
}

func TestLooseMergeTakesTouchingLines(t *testing.T) {
	got, c := Merge("a\nb\nc\n", "a\nB\nc\n", "A\nb\nC\n", false)
	if len(c) > 0 || got != "A\nB\nC\n" {
		t.Errorf("%q %v", got, c)
	}
	if _, c := Merge("a\nc\n", "a\nx\nc\n", "a\ny\nc\n", false); len(c) != 1 {
		t.Errorf("two insertions at one place: %v", c)
	}
}

func TestRebaseReportsTheHunk(t *testing.T) {
	f := New("c", []File{{Path: "/a", Kind: Edit, Old: "1\n2\n3\n4\n5\n6\n7\n", New: "1\nX\n3\n4\n5\nY\n7\n"}}).Files[0]
	_, err := f.Rebase("1\n2\n3\n4\n5\nsix\n7\n")
	var c *ConflictError
	if !errors.As(err, &c) || len(c.Conflicts) != 1 || c.Conflicts[0].HunkID != "1.2" {
		t.Fatalf("%+v", c)
	}
	if !strings.Contains(err.Error(), "line 6") {
		t.Errorf("error %q", err)
	}
}
