package change

import (
	"fmt"
	"strings"
	"testing"
)

// R8: several edits of one file are one review, against the text before the turn, and hunks keep their ids.
func TestR8SeveralEditsOfAFileAreOneReview(t *testing.T) {
	base := each("a", "b", "c", "d", "e", "f", "g", "h")
	set := func(id, old, new string) Part {
		return Part{id, New(id, []File{{Path: "/p/x", Kind: Edit, Old: old, New: new}}).Files[0]}
	}
	one := set("s1", base, strings.Replace(base, "b\n", "B\n", 1))
	first := Sum([]Part{one}, one.File.New)
	if len(first.Hunks) != 1 || first.Hunks[0].ID != "s1/1.1" {
		t.Fatalf("%+v", first.Hunks)
	}
	mine := strings.Replace(one.File.New, "h\n", "mine\n", 1) // the person types in between
	mine = "top\n" + mine
	two := set("s2", mine, strings.Replace(strings.Replace(mine, "B\n", "BB\n", 1), "f\n", "", 1))
	sum := Sum([]Part{one, two}, two.File.New)
	if want := each("a", "BB", "c", "d", "e", "g", "h"); sum.Text != want || sum.Base != base || sum.Kind != Edit {
		t.Errorf("text %q, want %q", sum.Text, want)
	}
	if len(sum.Hunks) != 2 {
		t.Fatalf("%+v", sum.Hunks)
	}
	h := sum.Hunks[0]
	if h.ID != "s1/1.1" || h.OldStart != 2 || h.NewStart != 3 || h.NewLines != 1 || len(h.Members) != 2 || h.Members[1].Set != "s2" {
		t.Errorf("first %+v", h)
	}
	if h = sum.Hunks[1]; h.ID != "s2/1.2" || h.OldStart != 6 || h.OldLines != 1 || h.NewLines != 0 || h.NewStart != 6 || len(h.Members) != 1 {
		t.Errorf("second %+v", h)
	}
	if back := Sum([]Part{one, set("s3", one.File.New, base)}, base); back.Kind != "" || len(back.Hunks) != 0 {
		t.Errorf("there and back: %+v", back)
	}
}

func TestSumOfKinds(t *testing.T) {
	part := func(id string, f File) Part { return Part{id, New(id, []File{f}).Files[0]} }
	for _, c := range []struct {
		name  string
		parts []Part
		now   string
		kind  Kind
		path  string
		hunks int
	}{
		{"made and edited", []Part{part("1", File{Path: "/x", Kind: Create, New: "a\n"}), part("2", File{Path: "/x", Kind: Edit, Old: "a\n", New: "b\n"})}, "b\n", Create, "/x", 1},
		{"made and gone", []Part{part("1", File{Path: "/x", Kind: Create, New: "a\n"}), part("2", File{Path: "/x", Kind: Delete, Old: "a\n"})}, "", "", "/x", 0},
		{"gone and made again", []Part{part("1", File{Path: "/x", Kind: Delete, Old: "a\n"}), part("2", File{Path: "/x", Kind: Create, New: "b\n"})}, "b\n", Edit, "/x", 1},
		{"moved and edited", []Part{part("1", File{Path: "/x", NewPath: "/y", Kind: Rename, Old: "a\n", New: "a\n"}), part("2", File{Path: "/y", Kind: Edit, Old: "a\n", New: "b\n"})}, "b\n", Rename, "/x", 2},
		{"binary", []Part{part("1", File{Path: "/x", Kind: Edit, Old: "\x00a", New: "\x00b", Binary: true})}, "\x00b", Edit, "/x", 1},
	} {
		got := Sum(c.parts, c.now)
		if got.Kind != c.kind || got.Path != c.path || len(got.Hunks) != c.hunks {
			t.Errorf("%s: %+v", c.name, got)
		}
		for _, h := range got.Hunks {
			if len(h.Members) == 0 {
				t.Errorf("%s: hunk %+v of nobody", c.name, h)
			}
		}
	}
}

func each(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// Editors name hunks by their ids, so they differ, also where one hunk of a part has become many in the sum.
func TestHunksOfASumHaveTheirOwnIDs(t *testing.T) {
	var base, all, half []string
	for i := range 60 {
		base, all, half = append(base, fmt.Sprint("old ", i)), append(all, fmt.Sprint("new ", i)), append(half, fmt.Sprint([]string{"new ", "old "}[i%2], i))
	}
	parts := []Part{
		{"s1", New("s1", []File{{Path: "/p/x", Kind: Edit, Old: each(base...), New: each(all...)}}).Files[0]},
		{"s2", New("s2", []File{{Path: "/p/x", Kind: Edit, Old: each(all...), New: each(half...)}}).Files[0]},
	}
	sum := Sum(parts, each(half...))
	seen := map[string]bool{}
	for _, h := range sum.Hunks {
		if seen[h.ID] {
			t.Errorf("two hunks are %s", h.ID)
		}
		seen[h.ID] = true
	}
	if len(sum.Hunks) != 30 || !seen["s1/1.1"] {
		t.Errorf("%d hunks: %v", len(sum.Hunks), seen)
	}
}
