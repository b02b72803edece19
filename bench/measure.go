package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Samples are measurements of one thing, in the unit of their row.
type Samples []float64

// at is the value below which a share q of the samples lies, interpolated; NaN without samples.
func (s Samples) at(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	pos := q * float64(len(sorted)-1)
	low := int(pos)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (pos-float64(low))*(sorted[low+1]-sorted[low])
}

// Min, Median and P95 of the samples.
func (s Samples) Min() float64    { return s.at(0) }
func (s Samples) Median() float64 { return s.at(0.5) }
func (s Samples) P95() float64    { return s.at(0.95) }

// Spread is the middle half's width in percent of the median: how much to trust it. It is 0 where the median is.
func (s Samples) Spread() float64 {
	if s.Median() == 0 {
		return 0
	}
	return 100 * (s.at(0.75) - s.at(0.25)) / s.Median()
}

// inTurns measures several things n times, each round in the opposite order of the one before, so that a machine that
// gets slower does so for all of them. One round before the first is thrown away.
func inTurns(n int, of ...func() float64) []Samples {
	out := make([]Samples, len(of))
	for round := -1; round < n; round++ {
		for k := range of {
			i := k
			if round%2 != 0 {
				i = len(of) - 1 - k
			}
			if v := of[i](); round >= 0 {
				out[i] = append(out[i], v)
			}
		}
	}
	return out
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed is how long f takes, in milliseconds.
func timed(f func()) float64 {
	began := time.Now()
	f()
	return ms(time.Since(began))
}

// Row is one line of the page.
type Row struct {
	What       string
	Unit       string // ms, MB, /s
	Ours       Samples
	Beside     Samples // the peer or the limit; nil: none
	BesideName string
	Target     Target
	Note       string
}

// Target is what an issue promised. Exactly one of the figures is set; the zero Target promises nothing.
type Target struct {
	AtMost  float64 // of our median
	AtLeast float64 // of our median
	Ratio   float64 // our median over the other's, at most
	Over    float64 // our median minus the other's, at most
}

func (t Target) text(unit string) string {
	switch {
	case t.AtMost > 0:
		return "≤ " + figure(t.AtMost) + " " + unit
	case t.AtLeast > 0:
		return "≥ " + figure(t.AtLeast) + " " + unit
	case t.Ratio > 0:
		return "≤ " + figure(t.Ratio) + " ×"
	case t.Over > 0:
		return "≤ " + figure(t.Over) + " " + unit + " more"
	}
	return ""
}

// Verdict says whether the promise is kept, and by how much.
func (r Row) Verdict() (met bool, text string) {
	ours, other := r.Ours.Median(), r.Beside.Median()
	share := func(have, want float64) (bool, string) {
		if have <= want {
			return true, "met"
		}
		return false, fmt.Sprintf("**missed**: %s ×", figure(have/want))
	}
	switch t := r.Target; {
	case t.AtMost > 0:
		return share(ours, t.AtMost)
	case t.AtLeast > 0:
		return share(t.AtLeast, ours)
	case t.Ratio > 0:
		met, text = share(ours/other, t.Ratio)
		if !met {
			text = "**missed**"
		}
		return met, text + fmt.Sprintf(" (%s ×)", figure(ours/other))
	case t.Over > 0:
		met, text = share(ours-other, t.Over)
		if !met {
			text = "**missed**"
		}
		return met, text + fmt.Sprintf(" (%s %s more)", figure(ours-other), r.Unit)
	}
	if len(r.Beside) > 0 {
		return true, figure(ours/other) + " ×"
	}
	return true, ""
}

// share is how much of the promise was used: 1 is all of it, more is missed.
func (r Row) share() float64 {
	ours, other := r.Ours.Median(), r.Beside.Median()
	switch t := r.Target; {
	case t.AtMost > 0:
		return ours / t.AtMost
	case t.AtLeast > 0:
		return t.AtLeast / ours
	case t.Ratio > 0:
		return ours / other / t.Ratio
	case t.Over > 0:
		return max(0, ours-other) / t.Over
	}
	return 0
}

// Line is the row on a terminal.
func (r Row) Line() string {
	s := fmt.Sprintf("%s: %s %s", r.What, triple(r.Ours), r.Unit)
	if len(r.Beside) > 0 {
		s += fmt.Sprintf("; %s %s", r.BesideName, triple(r.Beside))
	}
	if t := r.Target.text(r.Unit); t != "" {
		s += "; " + t
	}
	if _, v := r.Verdict(); v != "" {
		s += ": " + v
	}
	return s
}

// triple is min, median and p95, and how far the middle half spreads.
func triple(s Samples) string {
	if len(s) == 0 {
		return ""
	}
	if len(s) == 1 {
		return "**" + figure(s[0]) + "**"
	}
	return fmt.Sprintf("%s / **%s** / %s ±%.0f %%", figure(s.Min()), figure(s.Median()), figure(s.P95()), s.Spread()/2)
}

// figure writes a number with three digits that matter.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 10_000:
		digits := fmt.Sprintf("%.0f", v)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.1 || a == 0:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
