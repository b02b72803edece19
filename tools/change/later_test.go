package change

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What the person does to a file between an agent's change and its undo, and what is left then.
func TestUndoAfterLaterEdits(t *testing.T) {
	text := func(s ...string) string { return strings.Join(s, "\n") + "\n" }
	old := text("package p", "", "func a() {", "\tone()", "\ttwo()", "}", "", "func b() {", "\tthree()", "}")
	now := strings.Replace(strings.Replace(old, "two()", "TWO()", 1), "three()", "THREE()", 1)
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	a, b := "func a() {\n\tone()\n\tTWO()\n}\n", "func b() {\n\tTHREE()\n}\n"
	swapped := "package p\n\n" + b + "\n" + a
	for _, c := range []struct {
		name, old, new, later string
		hunks                 []string
		want                  string // empty: a conflict
	}{
		{"converted to CRLF", old, now, crlf(now), nil, crlf(old)},
		{"one hunk of a file converted to CRLF", old, now, crlf(now), []string{"1.2"}, crlf(strings.Replace(old, "two()", "TWO()", 1))},
		{"converted from CRLF", crlf(old), crlf(now), now, nil, old},
		{"CRLF and a line of their own", old, now, crlf("// mine\n" + now), nil, crlf("// mine\n" + old)},
		{"CRLF and the same line", old, now, crlf(strings.Replace(now, "TWO()", "TWO(1)", 1)), []string{"1.1"}, ""},
		{"mixed endings are lines", old, now, strings.Replace(now, "\n", "\r\n", 3), []string{"1.1"}, strings.Replace(strings.Replace(now, "TWO", "two", 1), "\n", "\r\n", 3)},
		{"the last line gets its newline", "a\nb", "a\nB", "a\nB\n", nil, "a\nb\n"},
		{"the last line loses its newline", "a\nb\n", "a\nB\n", "a\nB", nil, "a\nb"},
		{"the change gave the newline, and they took it", "a\nb", "a\nB\n", "a\nB", nil, "a\nb"},
		{"lines added after a last line that lost its newline", "a\nb\nx\n", "A\nb\nx\n", "A\nb\nx\ny\nz", nil, "a\nb\nx\ny\nz"},
		{"functions changed places", old, now, swapped, nil, strings.Replace(strings.Replace(swapped, "TWO", "two", 1), "THREE", "three", 1)},
		{"one of two that changed places", old, now, swapped, []string{"1.1"}, strings.Replace(swapped, "TWO", "two", 1)},
		{"moved and copied: which one is meant?", old, now, "package p\n\n" + b + "\n" + a + "\n" + a, []string{"1.1"}, ""},
		{"moved and changed", old, now, strings.Replace(swapped, "TWO()", "TWO(2)", 1), []string{"1.1"}, ""},
		{"deleted lines come back where their neighbours went", "a1\na2\ngone\nb1\nb2\nc1\nc2\nc3\nc4\n", "a1\na2\nb1\nb2\nc1\nc2\nc3\nc4\n", "c1\nc2\nc3\nc4\na1\na2\nb1\nb2\n", nil, "c1\nc2\nc3\nc4\na1\na2\ngone\nb1\nb2\n"},
		{"deleted lines, of whose neighbours only the next ones are there", "a1\na2\ngone\nb1\nb2\nc1\nc2\nc3\nc4\n", "a1\na2\nb1\nb2\nc1\nc2\nc3\nc4\n", "c1\nc2\nc3\nc4\nx1\na2\nb1\nx2\n", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New("c1", []File{{Path: "/p/a.go", Kind: Edit, Old: c.old, New: c.new}})
			u, err := s.Undo("u", c.hunks, func(string) (string, bool) { return c.later, true })
			var clash *ConflictError
			switch {
			case c.want == "" && !errors.As(err, &clash):
				t.Fatalf("want a conflict, got %v, %+v", err, u)
			case c.want == "":
			case err != nil:
				t.Fatal(err)
			case u.Files[0].New != c.want:
				t.Errorf("got %q\nwant %q", u.Files[0].New, c.want)
			}
		})
	}
}

// A proposal that waits while the person converts the file is what it was, in the file's new endings, and its hunks
// keep their names.
func TestRebaseOntoOtherEndings(t *testing.T) {
	old, now := "a\nb\nc\nd", "a\nB\nc\nD"
	f := New("c1", []File{{Path: "/p/a", Kind: Edit, Old: old, New: now}}).Files[0]
	r, err := f.Rebase("a\r\nb\r\nc\r\nd\r\n")
	if err != nil || r.New != "a\r\nB\r\nc\r\nD\r\n" {
		t.Fatalf("%q %v", r.New, err)
	}
	if len(r.Hunks) != 2 || r.Hunks[0].ID != f.Hunks[0].ID || r.Hunks[1].ID != f.Hunks[1].ID {
		t.Errorf("hunks %+v", r.Hunks)
	}
}

// What a file became is said; "line 1" would send a person looking.
func TestUndoSaysWhatBecameOfTheFile(t *testing.T) {
	for want, c := range map[string]struct {
		file   File
		now    string
		exists bool
	}{
		"not there any more":           {File{Path: "/p/a", Kind: Edit, Old: "a\n", New: "b\n"}, "", false},
		"so it is not deleted":         {File{Path: "/p/a", Kind: Create, New: "b\n"}, "b\nmine\n", true},
		"another file is in its place": {File{Path: "/p/a", Kind: Delete, Old: "b\n"}, "mine\n", true},
		"no text to merge":             {File{Path: "/p/a", Kind: Edit, Old: "a", New: "b", Binary: true}, "c", true},
	} {
		_, err := New("c1", []File{c.file}).Undo("u", nil, func(string) (string, bool) { return c.now, c.exists })
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "line 1") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// What one side adds after a line whose newline the other took is a line of its own.
func TestMergeGluesNothing(t *testing.T) {
	for _, strict := range []bool{true, false} {
		got, conflicts := Merge("a\nb\n", "a\nb\nc\n", "a\nb", strict)
		if len(conflicts) > 0 || got != "a\nb\nc" {
			t.Errorf("strict %v: %q %v", strict, got, conflicts)
		}
	}
}

// Looking for moved hunks takes time for each, and an editor waits, so that there is a limit.
func TestManyMovedHunks(t *testing.T) {
	// One block has the same place among the others before and after, so it is not looked for.
	for n, ok := range map[int]bool{maxFollowed + 1: true, maxFollowed + 2: false} {
		var old, now, later strings.Builder
		block := func(i int, value string) string { return fmt.Sprintf("name %d\n%s %d\nend %d\n", i, value, i, i) }
		for i := range n {
			old.WriteString(block(i, "before"))
			now.WriteString(block(i, "after"))
			later.WriteString(block(n-1-i, "after"))
		}
		u, err := New("c1", []File{{Path: "/p/a", Kind: Edit, Old: old.String(), New: now.String()}}).Undo("u", nil, func(string) (string, bool) { return later.String(), true })
		if (err == nil) != ok {
			t.Fatalf("%d hunks: %v", n, err)
		}
		if ok && u.Files[0].New != strings.ReplaceAll(later.String(), "after", "before") {
			t.Errorf("%d hunks: %q", n, u.Files[0].New)
		}
	}
}
