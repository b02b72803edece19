package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Plots are SVG of a few KB. Their greys and colours stand on white and on black alike; where a reader's program says which
// it is, the text follows.
const plotStyle = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#6e7781}
.strong{fill:#57606a;font-weight:600}.small{font-size:11px}
.grid{stroke:#8b949e;stroke-opacity:.28}.axis{stroke:#8b949e;stroke-opacity:.8}
.ours{stroke:#2f81f7;fill:#2f81f7}.other{stroke:#8b949e;fill:#8b949e}.over{stroke:#db6d28;fill:#db6d28}
.line{fill:none;stroke-width:2}.dash{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){text{fill:#9198a1}.strong{fill:#d1d7e0}}
</style>`

// plotFolder is beside the page.
func plotFolder(page string) string { return filepath.Join(filepath.Dir(page), "images", "bench") }

// plot is a picture that is being drawn.
type plot struct {
	strings.Builder
	width, height int
}

func newPlot(width, height int, title string) *plot {
	p := &plot{width: width, height: height}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>%s</title>%s`, width, height, width, height, html.EscapeString(title), plotStyle)
	return p
}

func (p *plot) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(p, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (p *plot) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(p, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(s))
}

func (p *plot) save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(p.String()+"</svg>\n"), 0o644)
}

// decades are the powers of ten around values, both ends included; values of 0 and less do not count.
func decades(values []float64) (low, high int) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			least, most = min(least, v), max(most, v)
		}
	}
	if math.IsInf(least, 1) {
		return 0, 1
	}
	low, high = int(math.Floor(math.Log10(least))), int(math.Ceil(math.Log10(most)))
	return low, max(high, low+1)
}

// power writes a power of ten as a person reads it.
func power(e int) string {
	if e >= 0 {
		return figure(math.Pow10(e))
	}
	return fmt.Sprintf("%.*f", -e, math.Pow10(e))
}

// plotShares shows for each promise how much of it was used: a dot each on a logarithmic axis with a line at the promise.
func plotShares(path string, rows []promise) error {
	const left, right, top, step = 330.0, 70.0, 40.0, 20.0
	p := newPlot(860, int(top+step*float64(len(rows))+30), "how much of each promise was used")
	var values []float64
	for _, r := range rows {
		values = append(values, r.share)
	}
	low, high := decades(append(values, 0.1, 1))
	x := func(v float64) float64 {
		share := (math.Log10(max(v, math.Pow10(low))) - float64(low)) / float64(high-low)
		return left + share*(float64(p.width)-left-right)
	}
	bottom := top + step*float64(len(rows))
	p.text("small", "start", 8, 18, "measured as a share of what was promised; left of the line is better")
	for e := low; e <= high; e++ {
		class := "grid"
		if e == 0 {
			class = "axis"
		}
		p.line(class, x(math.Pow10(e)), top-6, x(math.Pow10(e)), bottom)
		p.text("small", "middle", x(math.Pow10(e)), bottom+16, power(e)+" ×")
	}
	for i, r := range rows {
		y := top + step*float64(i) + step/2
		class := "ours"
		if !r.met {
			class = "over"
		}
		p.text("", "end", left-12, y+4, shorten(r.row.What, 52))
		p.line(class, x(math.Pow10(low)), y, x(r.share), y)
		fmt.Fprintf(p, `<circle class="%s" cx="%.1f" cy="%.1f" r="4"/>`, class, x(r.share), y)
		p.text("small", "start", x(r.share)+9, y+4, figure(r.share))
	}
	return p.save(path)
}

// plotBeside shows us and one peer, two bars a row, on a logarithmic axis each row shares.
func plotBeside(path, peer string, rows []Row) error {
	const left, right, top, step = 300.0, 90.0, 44.0, 40.0
	p := newPlot(860, int(top+step*float64(len(rows))+30), "Pillion beside "+peer)
	var values []float64
	for _, r := range rows {
		values = append(values, r.Ours.Median(), r.Beside.Median())
	}
	low, high := decades(values)
	x := func(v float64) float64 {
		return left + (math.Log10(max(v, math.Pow10(low)))-float64(low))/float64(high-low)*(float64(p.width)-left-right)
	}
	bottom := top + step*float64(len(rows))
	p.text("strong", "start", left, 18, "Pillion")
	fmt.Fprintf(p, `<rect class="ours" x="%.1f" y="9" width="10" height="10"/>`, left-16)
	fmt.Fprintf(p, `<rect class="other" x="%.1f" y="9" width="10" height="10"/>`, left+74)
	p.text("strong", "start", left+90, 18, peer)
	for e := low; e <= high; e++ {
		p.line("grid", x(math.Pow10(e)), top-6, x(math.Pow10(e)), bottom)
		p.text("small", "middle", x(math.Pow10(e)), bottom+16, power(e))
	}
	for i, r := range rows {
		y := top + step*float64(i)
		p.text("", "end", left-12, y+20, shorten(r.What+", "+r.Unit, 46))
		for k, s := range []Samples{r.Ours, r.Beside} {
			v := s.Median()
			fmt.Fprintf(p, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="11" rx="2"/>`, []string{"ours", "other"}[k], left, y+float64(4+15*k), max(1, x(v)-left))
			p.text("small", "start", x(v)+6, y+float64(14+15*k), figure(v))
		}
	}
	return p.save(path)
}

// plotCurves shows how things grow with a size: both axes logarithmic, a panel for each unit, the peer dashed.
func plotCurves(path, axis string, curves []Curve) error {
	const panel, left, top, bottom = 250.0, 60.0, 44.0, 40.0
	const across = 3
	rows := (len(curves) + across - 1) / across
	width := 900.0
	each := width / across
	p := newPlot(int(width), int(float64(rows)*panel), "growth with "+axis)
	for i, c := range curves {
		ox, oy := float64(i%across)*each, float64(i/across)*panel
		var values, sizes []float64
		for k := range c.Sizes {
			sizes = append(sizes, float64(c.Sizes[k]))
			values = append(values, c.Ours[k].at(0.05), c.Ours[k].P95())
			if k < len(c.Beside) {
				values = append(values, c.Beside[k].at(0.05), c.Beside[k].P95())
			}
		}
		low, high := decades(values)
		xl, xh := decades(sizes)
		x := func(v float64) float64 {
			return ox + left + (math.Log10(v)-float64(xl))/float64(xh-xl)*(each-left-24)
		}
		y := func(v float64) float64 {
			return oy + panel - bottom - (math.Log10(max(v, math.Pow10(low)))-float64(low))/float64(high-low)*(panel-top-bottom)
		}
		p.text("strong", "start", ox+12, oy+18, shorten(c.What, 38))
		note := fmt.Sprintf("%s, exponent %s", c.Unit, exponentText(exponent(c.Sizes, c.Ours)))
		if len(c.Beside) > 0 {
			note += fmt.Sprintf("; dashed: %s, %s", c.BesideName, exponentText(exponent(c.Sizes, c.Beside)))
		}
		p.text("small", "start", ox+12, oy+34, note)
		for e := low; e <= high; e++ {
			p.line("grid", ox+left, y(math.Pow10(e)), ox+each-24, y(math.Pow10(e)))
			p.text("small", "end", ox+left-6, y(math.Pow10(e))+4, power(e))
		}
		for e := xl; e <= xh; e++ {
			p.text("small", "middle", x(math.Pow10(e)), oy+panel-bottom+16, power(e))
		}
		p.line("axis", ox+left, oy+panel-bottom, ox+each-24, oy+panel-bottom)
		for k, series := range [][]Samples{c.Beside, c.Ours} {
			class := []string{"other", "ours"}[k]
			var at []string
			for j, s := range series {
				v := s.Median()
				at = append(at, fmt.Sprintf("%.1f,%.1f", x(float64(c.Sizes[j])), y(v)))
				fmt.Fprintf(p, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"/>`, class, x(float64(c.Sizes[j])), y(v))
				if lo, hi := s.at(0.05), s.P95(); len(s) > 1 {
					p.line(class, x(float64(c.Sizes[j])), y(lo), x(float64(c.Sizes[j])), y(hi))
				}
			}
			if len(at) > 1 {
				dash := []string{" dash", ""}[k]
				fmt.Fprintf(p, `<polyline class="%s line%s" style="fill:none" points="%s"/>`, class, dash, strings.Join(at, " "))
			}
		}
	}
	return p.save(path)
}

// shorten cuts a text that a plot has no room for.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
