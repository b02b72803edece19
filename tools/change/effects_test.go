package change

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A proposal of a model compiler: each hunk may define a name, use one, or hold a mistake of its own. Effects must find what the
// definitions say, for random proposals; nothing in it knows about the model.
func TestEffectsFindWhatHunksDependOn(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(maxEffects-1)
		uses := make([]int, n) // the hunk whose definition a hunk uses; itself: none
		wrong := make([]bool, n)
		fixes := make([]bool, n)
		var open []string
		for i := range n {
			open = append(open, fmt.Sprintf("1.%d", i+1))
			uses[i] = i
			if r.IntN(2) == 0 {
				uses[i] = r.IntN(n)
			}
			wrong[i], fixes[i] = r.IntN(4) == 0, r.IntN(4) == 0
		}
		check := func(rejected ...string) *Verdict {
			v := &Verdict{Certainty: Fresh}
			in := func(i int) bool { return !slices.Contains(rejected, open[i]) }
			for i := range n {
				// lines move with what is rejected before them
				at := func(m string) Problem { return Problem{Path: "/a", Line: 10*i - len(rejected), Message: m} }
				if in(i) && uses[i] != i && !in(uses[i]) {
					v.Introduced = append(v.Introduced, at(fmt.Sprintf("%d is not defined", uses[i])))
				}
				if in(i) && wrong[i] {
					v.Introduced = append(v.Introduced, at("wrong"))
				}
				if in(i) && fixes[i] {
					v.Fixed = append(v.Fixed, at("old mistake"))
				}
			}
			return v
		}
		got := effects(check(), open, true, check)
		for i, id := range open {
			e := got[id]
			var needs []string
			if uses[i] != i {
				needs = []string{open[uses[i]]}
			}
			users := 0
			for j := range n {
				if j != i && uses[j] == i {
					users++
				}
			}
			if !slices.Equal(e.Needs, needs) || len(e.IfRejected) != users || len(e.Introduces) != count(wrong[i]) || len(e.Fixes) != count(fixes[i]) {
				t.Fatalf("seed %d, hunk %s of %v: needs %v, want %v; %+v", seed, id, uses, e.Needs, needs, e)
			}
		}
		for id, e := range effects(check(), open, false, check) {
			if e.Needs != nil {
				t.Fatalf("%s needs %v, and pairs were not asked for", id, e.Needs)
			}
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Where a verdict is missing nothing is said, not even of the hunks that were looked at.
func TestEffectsAreAllOrNothing(t *testing.T) {
	fresh, wrong := &Verdict{Certainty: Fresh}, &Verdict{Certainty: Fresh, Introduced: []Problem{{Message: "x"}}}
	lines := func(n int, text string) (s string) {
		for range n {
			s += text + "\n-\n"
		}
		return s
	}
	for name, c := range map[string]struct {
		whole *Verdict
		hunks int
		check func(*Set) *Verdict
	}{
		"no verdict":     {nil, 3, func(*Set) *Verdict { return fresh }},
		"pending":        {&Verdict{Certainty: Pending}, 3, func(*Set) *Verdict { return fresh }},
		"one hunk":       {fresh, 1, func(*Set) *Verdict { return fresh }},
		"too many":       {fresh, maxEffects + 1, func(*Set) *Verdict { return wrong }},
		"one is missing": {fresh, 3, func(s *Set) *Verdict { return map[bool]*Verdict{true: wrong}[strings.HasPrefix(s.Files[0].New, "old")] }},
		"a pair is missing": {fresh, 3, func(s *Set) *Verdict {
			if strings.Count(s.Files[0].New, "old") > 1 {
				return nil
			}
			return wrong
		}},
	} {
		set := New("c", []File{{Path: "/a", Kind: Edit, Old: lines(c.hunks, "old"), New: lines(c.hunks, "new")}})
		var open []string
		for _, h := range set.Files[0].Hunks {
			open = append(open, h.ID)
		}
		if got := set.Effects(Decisions{}, open, c.whole, c.check); len(open) != c.hunks || got != nil {
			t.Errorf("%s: %v %v", name, open, got)
		}
	}
}

func ExampleSet_Effects() {
	// Hunk 1 renames a function, hunk 2 its call: each is broken without the other.
	set := New("rename", []File{{Path: "/p/a.go", Kind: Edit, Old: "func Old() {}\n\n\nOld()\n", New: "func New() {}\n\n\nNew()\n"}})
	check := func(part *Set) *Verdict {
		v := &Verdict{Certainty: Fresh}
		for _, name := range []string{"Old", "New"} {
			if text := part.Files[0].New; strings.Contains(text, "\n"+name) && !strings.Contains(text, "func "+name) {
				v.Introduced = append(v.Introduced, Problem{Path: "/p/a.go", Line: 4, Message: "undefined: " + name})
			}
		}
		return v
	}
	hunks := set.Files[0].Hunks
	effects := set.Effects(Decisions{}, []string{hunks[0].ID, hunks[1].ID}, check(set), check)
	for i, h := range hunks {
		fmt.Printf("hunk %d needs %v; if rejected: %s\n", i+1, effects[h.ID].Needs, effects[h.ID].IfRejected[0].Message)
	}
	// Output:
	// hunk 1 needs [1.2]; if rejected: undefined: New
	// hunk 2 needs [1.1]; if rejected: undefined: Old
}

// After a rejection no hunk is said to need another: the problems of the rejected one's partners are in every verdict.
func TestNothingIsNeededAfterARejection(t *testing.T) {
	set := New("c", []File{{Path: "/a", Kind: Edit, Old: "a\n-\nb\n-\nc\n", New: "x\n-\ny\n-\nz\n"}})
	check := func(part *Set) *Verdict {
		v := &Verdict{Certainty: Fresh}
		if x, y := strings.HasPrefix(part.Files[0].New, "x"), strings.Contains(part.Files[0].New, "y"); x != y {
			v.Introduced = []Problem{{Path: "/a", Message: "not both"}}
		}
		return v
	}
	needs := func(d Decisions) int {
		e := set.Effects(d, []string{"1.1", "1.2"}, &Verdict{Certainty: Fresh}, check)
		return len(e["1.1"].Needs) + len(e["1.2"].Needs)
	}
	if a, b, c := needs(Decisions{}), needs(Decisions{}.Rejecting("1.3")), needs(Decisions{Default: Reject, Hunks: map[string]Decision{"1.1": {Kind: Accept}, "1.2": {Kind: Accept}}}); a != 2 || b != 0 || c != 0 {
		t.Errorf("%d needs, %d after a rejection, %d where rejecting is the default", a, b, c)
	}
}

// A problem that occurs twice and once is missing once.
func TestMissingCounts(t *testing.T) {
	x, y := Problem{Path: "/a", Message: "x"}, Problem{Path: "/a", Message: "y"}
	if got := missing([]Problem{x, {Path: "/a", Line: 7, Message: "x"}, y}, []Problem{x}); !reflect.DeepEqual(got, []Problem{{Path: "/a", Line: 7, Message: "x"}, y}) {
		t.Error(got)
	}
}

// Each check costs the language servers time while a person waits: a pair is checked once, and only where the rejection of one of the two
// breaks something.
func TestEffectsChecksNoMoreThanItNeeds(t *testing.T) {
	for broken, want := range map[string]int{"": 3, "b": 3 + 2} {
		n := 0
		got := effects(&Verdict{Certainty: Fresh}, []string{"a", "b", "c"}, true, func(rejected ...string) *Verdict {
			n++
			v := &Verdict{Certainty: Fresh}
			for _, id := range rejected {
				if id == broken {
					v.Introduced = []Problem{{Path: "/p/a.go", Message: "undefined"}}
				}
			}
			return v
		})
		if n != want {
			t.Errorf("%q breaks something: %d checks, want %d", broken, n, want)
		}
		if broken != "" && (len(got) != 1 || len(got[broken].IfRejected) != 1) {
			t.Errorf("%+v", got)
		}
	}
}
