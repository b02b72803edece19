package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result is one part as it was last measured.
type Result struct {
	Rows       []Row
	Curves     []Curve
	Table      string // Markdown, beside the rows; empty without one
	Failure    string
	Missing    string // what was not there to be measured, and how to get it
	Date       time.Time
	Took       time.Duration
	LoadBefore string // the kernel's 1-minute load, others' work included
	LoadAfter  string
	Commit     string
	Machine    string // as machine describes it
	Rounds     float64
}

func startResult(bin string) *Result {
	return &Result{Date: time.Now(), LoadBefore: load(), Commit: versionOf(bin), Machine: machine()}
}

func (r *Result) finish() { r.LoadAfter, r.Took = load(), time.Since(r.Date) }

// resultsFile keeps every round of what was measured, in the repository: one part can be measured again on any machine without the others
// vanishing from the page, and a figure of the page can be recomputed.
const resultsFile = "bench/results.json"

func loadResults() map[string]*Result {
	all := map[string]*Result{}
	if data, err := os.ReadFile(resultsFile); err == nil {
		_ = json.Unmarshal(data, &all) // a file of another shape: everything is measured again
	}
	return all
}

// saveResults writes one line a part, so that a part measured again is one line of a diff.
func saveResults(all map[string]*Result) error {
	var lines []string
	for _, part := range parts {
		r := all[part.name]
		if r == nil {
			continue
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%q: %s", part.name, data))
	}
	return os.WriteFile(resultsFile, []byte("{\n"+strings.Join(lines, ",\n")+"\n}\n"), 0o644)
}

// promise is a row that was promised, with how much of the promise was used: 1 is all of it, more is missed.
type promise struct {
	part  string
	row   Row
	met   bool
	share float64
	text  string
}

// promises are all rows that were promised, in the order of the page.
func promises(all map[string]*Result) []promise {
	var out []promise
	for _, part := range parts {
		r := all[part.name]
		if r == nil {
			continue
		}
		for _, row := range r.Rows {
			if row.Target == (Target{}) {
				continue
			}
			met, text := row.Verdict()
			out = append(out, promise{part.name, row, met, row.share(), text})
		}
	}
	return out
}

// reasons say why a promise was missed, where that is known. A row's name begins with the key.
var reasons = []struct{ what, why string }{
	{"20 sessions, read and edit: own CPU", "every event of every session is stored, each edit is journalled and fsynced, and its diff is made; the limit does none of it"},
	{"memory after 2,000 steps", "for speed the heap may take 32 MB before it is collected (sidecar/heap.go), and what was collected goes back to the system over minutes"},
	{"JavaScript host and first tool", "most of it is Node itself: see the row's peer, an empty script"},
}

func reasonOf(p promise) string {
	for _, r := range reasons {
		if strings.HasPrefix(p.row.What, r.what) {
			return r.why
		}
	}
	return ""
}

// neverMeasured are the parts without a result.
func neverMeasured(all map[string]*Result) []string {
	var out []string
	for _, part := range parts {
		if all[part.name] == nil {
			out = append(out, part.name)
		}
	}
	return out
}

// mostUsed is the machine on which most of the parts were measured, the first by its name of several.
func mostUsed(all map[string]*Result) (most string) {
	count := map[string]int{}
	for _, r := range all {
		count[r.Machine]++
	}
	for _, m := range slices.Sorted(maps.Keys(count)) {
		if count[m] > count[most] {
			most = m
		}
	}
	return most
}

// writePage writes the page of everything measured so far, and its plots beside it. It names the parts that never were.
func writePage(path string, all map[string]*Result) error {
	var p strings.Builder
	usual := mostUsed(all)
	fmt.Fprintf(&p, `# Benchmarks

Written by `+"`make bench`"+` (bench/), which measures the real binary beside peers and physical limits, in one run and in turns.
Figures are **min / median / p95**, ± half the width of the middle half; a promise is judged by the median. "The limit" is
bench/limit: an agent of 250 lines that does what the wire demands and nothing else; it stores nothing, checks nothing,
asks no rules. Where a figure waits for the disk, the limit waits for the same disk.

Machine, but for the parts that name another: %s.
`, usual)
	if busy := busyParts(all); len(busy) > 0 {
		fmt.Fprintf(&p, "\nOther work kept the processors busy (load above the number of cores) during: %s. Ratios hold, the two being measured in turns;\nabsolute figures are pessimistic, their minima are nearer to a quiet machine.\n", strings.Join(busy, ", "))
	}
	if missing := neverMeasured(all); len(missing) > 0 {
		fmt.Fprintf(&p, "\nNever measured so far: %s.\n", strings.Join(missing, ", "))
	}
	if r := all["peers"]; r != nil && len(r.Rows) > 0 {
		fmt.Fprintf(&p, "\n## In five figures\n\n%s", peersTable(r))
	}
	images := plotFolder(path)
	if err := writePromises(&p, images, promises(all)); err != nil {
		return err
	}
	for _, part := range parts {
		if r := all[part.name]; r != nil {
			if err := writePart(&p, images, part, r, usual); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(p.String()), 0o644)
}

// writePromises writes what was promised and what became of it.
func writePromises(p *strings.Builder, images string, rows []promise) error {
	met := 0
	for _, r := range rows {
		if r.met {
			met++
		}
	}
	fmt.Fprintf(p, "\n## What was promised\n\n%d of %d promises met.\n", met, len(rows))
	if len(rows) == 0 {
		return nil
	}
	if err := plotShares(filepath.Join(images, "promises.svg"), rows); err != nil {
		return err
	}
	p.WriteString("\n![How much of each promise was used](images/bench/promises.svg)\n\n| what | promised | measured | |\n|---|---|---|---|\n")
	for _, r := range rows {
		text := r.text
		if why := reasonOf(r); !r.met && why != "" {
			text += ": " + why
		}
		measured := figure(r.row.Ours.Median()) + " " + r.row.Unit
		if r.row.Target.Ratio > 0 || r.row.Target.Over > 0 {
			measured += "; " + r.row.BesideName + ": " + figure(r.row.Beside.Median())
		}
		fmt.Fprintf(p, "| %s | %s | %s | %s |\n", r.row.What, r.row.Target.text(r.row.Unit), measured, text)
	}
	return nil
}

func writePart(p *strings.Builder, images string, part part, r *Result, usual string) error {
	fmt.Fprintf(p, "\n## %s\n\n%s\n", part.title, strings.TrimSpace(part.how))
	if len(r.Rows) > 0 {
		p.WriteString("\n| what | ours | beside | promised | |\n|---|---|---|---|---|\n")
	}
	for _, row := range r.Rows {
		beside := ""
		if len(row.Beside) > 0 {
			beside = row.BesideName + ": " + triple(row.Beside)
		}
		_, verdict := row.Verdict()
		what := row.What
		if row.Note != "" {
			what += " (" + row.Note + ")"
		}
		fmt.Fprintf(p, "| %s, %s | %s | %s | %s | %s |\n", what, row.Unit, triple(row.Ours), beside, row.Target.text(row.Unit), verdict)
	}
	if part.name == "opencode" && len(r.Rows) > 0 {
		if err := plotBeside(filepath.Join(images, "opencode.svg"), r.Rows[0].BesideName, r.Rows); err != nil {
			return err
		}
		p.WriteString("\n![Pillion beside OpenCode](images/bench/opencode.svg)\n")
	}
	for _, axis := range axes(r.Curves) {
		var of []Curve
		for _, c := range r.Curves {
			if c.Axis == axis {
				of = append(of, c)
			}
		}
		curveTable(p, axis, of)
		file := strings.ReplaceAll(axis, " ", "-") + ".svg" // a blank would end the address of the picture
		if err := plotCurves(filepath.Join(images, file), axis, of); err != nil {
			return err
		}
		fmt.Fprintf(p, "\n![Growth with %s](images/bench/%s)\n", axis, file)
	}
	if r.Table != "" {
		fmt.Fprintf(p, "\n%s", r.Table)
	}
	if part.after != "" && r.Failure == "" && len(r.Rows)+len(r.Curves) > 0 {
		fmt.Fprintf(p, "\n%s\n", part.after)
	}
	if r.Missing != "" {
		fmt.Fprintf(p, "\nNot measured: %s\n", r.Missing)
	}
	if r.Failure != "" {
		fmt.Fprintf(p, "\n**Could not be measured to the end:** %s\n", r.Failure)
	}
	fmt.Fprintf(p, "\n`go run ./bench -only %s`, %s, %s, load %s → %s, %.0f s", part.name, r.Date.UTC().Format("2006-01-02 15:04 MST"), r.Commit, r.LoadBefore, r.LoadAfter, r.Took.Seconds())
	if r.Rounds != 1 {
		fmt.Fprintf(p, ", %g of the usual rounds", r.Rounds)
	}
	if r.Machine != usual {
		p.WriteString(", on " + r.Machine)
	}
	p.WriteString("\n")
	return nil
}

// busyParts are the parts during which more wanted to run than there are cores.
func busyParts(all map[string]*Result) []string {
	var out []string
	for _, part := range parts {
		if r := all[part.name]; r != nil {
			if l, err := strconv.ParseFloat(r.LoadBefore, 64); err == nil && l > float64(runtime.NumCPU())+1 {
				out = append(out, part.name)
			}
		}
	}
	return out
}
