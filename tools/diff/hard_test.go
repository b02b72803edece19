package diff

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Inputs without lines that occur once give the search nothing to hold on to; it must still end soon and be right.
func TestHardInputsEndSoon(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	gen := func(n, distinct int, f func(i int) int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint(f(i)%distinct, "\n")
		}
		return out
	}
	random := func(int) int { return r.IntN(1 << 20) }
	index := func(i int) int { return i }
	for _, c := range []struct {
		name string
		a, b []string
	}{
		{"two kinds of lines, random", gen(100_000, 2, random), gen(100_000, 2, random)},
		{"a hundred kinds, random", gen(100_000, 100, random), gen(100_000, 100, random)},
		{"all the same, another number", gen(200_000, 1, index), gen(150_000, 1, index)},
		{"periodic against shifted period", gen(100_000, 50, index), gen(100_000, 51, index)},
		{"reversed", gen(100_000, 1<<20, index), gen(100_000, 1<<20, func(i int) int { return 99_999 - i })},
		{"doubled lines, shuffled", gen(100_000, 50_000, index), gen(100_000, 50_000, random)},
	} {
		start := cpuTime()
		edits := Strings(c.a, c.b)
		took := cpuTime() - start
		t.Log(c.name, len(edits), "edits", took.Round(time.Millisecond))
		if took > 5*time.Second { // an order above the budget
			t.Errorf("%s took %v", c.name, took)
		}
		var sb strings.Builder
		at := 0
		for _, e := range edits {
			sb.WriteString(strings.Join(c.a[at:e.A0], "") + strings.Join(c.b[e.B0:e.B1], ""))
			at = e.A1
		}
		sb.WriteString(strings.Join(c.a[at:], ""))
		if sb.String() != strings.Join(c.b, "") {
			t.Errorf("%s: wrong script", c.name)
		}
	}
}
