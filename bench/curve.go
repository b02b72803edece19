package main

import (
	"fmt"
	"math"
	"strings"
)

// Curve is how one thing grows with a size.
type Curve struct {
	What, Unit string
	Axis       string // what grows: files, messages, lines, deltas
	Sizes      []int
	Ours       []Samples // one for each size
	Beside     []Samples // the same of a peer; nil: none
	BesideName string
}

// curves measures several things at several sizes; open prepares a size and gives what is measured there.
type measured struct {
	what, unit string
	ours, peer Samples
	peerName   string
}

// grow adds one size to the curves of an axis.
func (b *bench) grow(axis string, size int, all ...measured) {
	for _, m := range all {
		i := -1
		for k := range b.curves {
			if b.curves[k].Axis == axis && b.curves[k].What == m.what {
				i = k
			}
		}
		if i < 0 {
			b.curves = append(b.curves, Curve{What: m.what, Unit: m.unit, Axis: axis, BesideName: m.peerName})
			i = len(b.curves) - 1
		}
		c := &b.curves[i]
		c.Sizes = append(c.Sizes, size)
		c.Ours = append(c.Ours, m.ours)
		line := fmt.Sprintf("  %s, %d %s: %s %s", m.what, size, axis, triple(m.ours), m.unit)
		if len(m.peer) > 0 {
			c.Beside = append(c.Beside, m.peer)
			line += fmt.Sprintf("; %s %s", m.peerName, triple(m.peer))
		}
		fmt.Println(line)
	}
}

// exponent is the slope of the least squares through the medians, both axes logarithmic: 0 does not grow, 1 is
// proportional, 2 the square. NaN where there are fewer than two sizes or a median is 0.
func exponent(sizes []int, samples []Samples) float64 {
	n := min(len(sizes), len(samples))
	if n < 2 {
		return math.NaN()
	}
	var sx, sy, sxx, sxy float64
	for i := range n {
		x, y := math.Log(float64(sizes[i])), math.Log(samples[i].Median())
		if math.IsInf(y, 0) || math.IsNaN(y) {
			return math.NaN()
		}
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (float64(n)*sxy - sx*sy) / (float64(n)*sxx - sx*sx)
}

func exponentText(e float64) string {
	if math.IsNaN(e) {
		return "–"
	}
	return strings.Replace(fmt.Sprintf("%.2f", e), "-0.00", "0.00", 1)
}

// axes are the curves' axes in the order of their measurement.
func axes(curves []Curve) []string {
	var out []string
	for _, c := range curves {
		if len(out) == 0 || out[len(out)-1] != c.Axis {
			out = append(out, c.Axis)
		}
	}
	return out
}

// curveTable writes the curves of an axis: a column a size, medians and spread, then the exponents.
func curveTable(p *strings.Builder, axis string, curves []Curve) {
	first := true
	for _, c := range curves {
		if c.Axis != axis {
			continue
		}
		if first {
			p.WriteString("\n| with " + axis)
			for _, s := range c.Sizes {
				fmt.Fprintf(p, " | %s", figure(float64(s)))
			}
			p.WriteString(" | exponent |\n|---" + strings.Repeat("|---", len(c.Sizes)) + "|---|\n")
			first = false
		}
		curveRow(p, c.What+", "+c.Unit, c.Sizes, c.Ours)
		if len(c.Beside) > 0 {
			curveRow(p, "– beside: "+c.BesideName, c.Sizes, c.Beside)
		}
	}
}

func curveRow(p *strings.Builder, what string, sizes []int, samples []Samples) {
	fmt.Fprintf(p, "| %s", what)
	for _, s := range samples {
		fmt.Fprintf(p, " | **%s** ±%.0f %%", figure(s.Median()), s.Spread()/2)
	}
	fmt.Fprintf(p, " | %s |\n", exponentText(exponent(sizes, samples)))
}
