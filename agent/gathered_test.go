package agent

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestGatheredIsWhatWasAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var g gathered
		var want strings.Builder
		for range r.IntN(40) {
			piece := strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN([]int{3, 600, 3 << 20}[r.IntN(3)]))
			g.add(piece)
			want.WriteString(piece)
			if r.IntN(8) == 0 { // joined in between, and what was returned stays as it is
				before := g.bytes()
				copied := string(before)
				g.add("x")
				want.WriteString("x")
				if string(before) != copied {
					t.Fatal("a joined text changed")
				}
			}
		}
		if g.String() != want.String() || string(g.bytes()) != want.String() || g.n != want.Len() {
			t.Fatalf("%d bytes, want %d", g.n, want.Len())
		}
	}
	var g gathered
	given := make([]byte, 1, 10)
	g.set(given)
	g.add("y")
	if given[:2][1] != 0 {
		t.Error("wrote into a slice that was given")
	}
}

func TestGatheredIsBlank(t *testing.T) {
	var g gathered
	if !g.isBlank() {
		t.Error("empty")
	}
	g.add(strings.Repeat(" ", 2*firstChunk))
	if g.add("\n\t"); !g.isBlank() {
		t.Error("white space")
	}
	if g.add("x"); g.isBlank() {
		t.Error("a letter")
	}
}
