package change

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The agent proposes and the person types, before and after each decision; hunks are accepted, rejected and rewritten at
// random. Then every hunk that was applied is taken back by itself, those of a set in any order: what is left is what the
// person wrote, byte for byte.
func TestTakingEveryDecidedHunkBackLeavesThePersonsText(t *testing.T) {
	const path, slots = "/f", 8
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		end := []string{"\n", "\r\n"}[r.IntN(2)]
		// What the person and the agent write lies apart, so that no merge has to guess.
		var mine, orig [slots]string
		for i := range slots {
			mine[i], orig[i] = fmt.Sprint("person ", i), fmt.Sprint("orig ", i)
		}
		lines := func(theirs func(i int) string) string {
			var sb strings.Builder
			for i := range slots {
				sb.WriteString(mine[i] + end + "--" + end + theirs(i) + end + "==" + end)
			}
			return sb.String()
		}
		text := lines(func(i int) string { return orig[i] })
		types := func() { // the person, in their own lines
			i := r.IntN(slots)
			was := mine[i]
			mine[i] = fmt.Sprint("person ", i, " ", r.IntN(1000))
			for range r.IntN(3) {
				mine[i] += end + fmt.Sprint("ü more ", r.Uint32()) // no line twice, which could be matched another way
			}
			text = strings.Replace(text, was+end+"--", mine[i]+end+"--", 1)
		}
		var applied []*Set
		for n := range 6 {
			next := text
			for range 1 + r.IntN(4) {
				from := strings.Split(next, end+"--"+end)
				i := 1 + r.IntN(slots)
				_, rest, _ := strings.Cut(from[i], end+"==")
				from[i] = fmt.Sprint("agent ", r.IntN(1000)) + end + "==" + rest
				next = strings.Join(from, end+"--"+end)
			}
			set := New(fmt.Sprint("s", n), []File{{Path: path, Kind: Edit, Old: text, New: next}})
			if len(set.Files) == 0 {
				continue
			}
			for range r.IntN(3) { // while it waits for them
				types()
			}
			moved, err := set.Files[0].Rebase(text)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			set.Files[0] = moved
			d := Decisions{Default: Reject, Hunks: map[string]Decision{}}
			for _, h := range moved.Hunks {
				d.Hunks[h.ID] = []Decision{{Kind: Accept}, {Kind: Reject}, {Kind: Replace, NewText: fmt.Sprint("edited ", r.IntN(1000), end)}}[r.IntN(3)]
			}
			decided, err := set.Decide(d)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if len(decided.Set.Files) > 0 {
				text = decided.Set.Files[0].New
				applied = append(applied, decided.Set)
			}
			types()
		}
		for k := len(applied) - 1; k >= 0; k-- {
			hunks := applied[k].Files[0].Hunks
			for _, i := range r.Perm(len(hunks)) {
				back, err := applied[k].Undo("u", []string{hunks[i].ID}, func(string) (string, bool) { return text, true })
				if err != nil {
					t.Fatalf("seed %d: set %d, hunk %s: %v", seed, k, hunks[i].ID, err)
				}
				if len(back.Files) > 0 {
					text = back.Files[0].New
				}
				if r.IntN(4) == 0 {
					types()
				}
			}
		}
		if want := lines(func(i int) string { return orig[i] }); text != want {
			t.Fatalf("seed %d: left is\n%q\nwant\n%q", seed, text, want)
		}
	}
}
