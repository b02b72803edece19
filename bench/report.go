package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Result is one part as it was last measured.
type Result struct {
	Rows       []Row
	Failure    string
	Date       time.Time
	Took       time.Duration
	LoadBefore string // the kernel's 1-minute load, others' work included
	LoadAfter  string
	Commit     string
	Rounds     float64
}

func startResult(bin string) *Result {
	return &Result{Date: time.Now(), LoadBefore: load(), Commit: versionOf(bin)}
}

func (r *Result) finish() { r.LoadAfter, r.Took = load(), time.Since(r.Date) }

// resultsFile keeps what was measured, so that one part can be measured again without the others.
const resultsFile = ".cache/bench.json"

func loadResults() map[string]*Result {
	all := map[string]*Result{}
	if data, err := os.ReadFile(resultsFile); err == nil {
		_ = json.Unmarshal(data, &all) // a file of another shape: everything is measured anew
	}
	return all
}

func saveResults(all map[string]*Result) error {
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(resultsFile), 0o755); err != nil {
		return err
	}
	return os.WriteFile(resultsFile, data, 0o644)
}

// writePage writes the page of everything measured so far.
func writePage(path string, all map[string]*Result) error {
	var p strings.Builder
	fmt.Fprintf(&p, `# Benchmarks

Written by `+"`make bench`"+` (bench/), which measures the real binary beside peers and physical limits, in one run and in turns.
Figures are **min / median / p95**, ± half the width of the middle half; a target is judged by the median. "The limit" is
bench/limit: an agent of 250 lines that does what the wire demands and nothing else; it stores nothing, checks nothing,
asks no rules. Where a figure waits for the disk, the limit waits for the same disk.

Machine: %s.
`, machine())
	met, missed := 0, []string{}
	for _, part := range parts {
		if r := all[part.name]; r != nil {
			for _, row := range r.Rows {
				if row.Target == (Target{}) {
					continue
				}
				if ok, _ := row.Verdict(); ok {
					met++
				} else {
					missed = append(missed, row.What)
				}
			}
		}
	}
	fmt.Fprintf(&p, "\n%d of %d targets met.", met, met+len(missed))
	if len(missed) > 0 {
		fmt.Fprintf(&p, " Missed: %s.", strings.Join(missed, "; "))
	}
	p.WriteString("\n")
	if busy := busyParts(all); len(busy) > 0 {
		fmt.Fprintf(&p, "\nOther work kept the processors busy (load above the number of cores) during: %s. Ratios hold, the two being measured in turns;\nabsolute figures are pessimistic, their minima are nearer to a quiet machine.\n", strings.Join(busy, ", "))
	}
	for _, part := range parts {
		r := all[part.name]
		if r == nil {
			continue
		}
		fmt.Fprintf(&p, "\n## %s\n\n%s\n\n", part.title, strings.TrimSpace(part.how))
		p.WriteString("| what | ours | beside | target | |\n|---|---|---|---|---|\n")
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
			fmt.Fprintf(&p, "| %s, %s | %s | %s | %s | %s |\n", what, row.Unit, triple(row.Ours), beside, row.Target.text(row.Unit), verdict)
		}
		if r.Failure != "" {
			fmt.Fprintf(&p, "\n**Could not be measured to the end:** %s\n", r.Failure)
		}
		fmt.Fprintf(&p, "\n`go run ./bench -only %s`, %s, %s, load %s → %s", part.name, r.Date.UTC().Format("2006-01-02 15:04 MST"), r.Commit, r.LoadBefore, r.LoadAfter)
		if r.Rounds != 1 {
			fmt.Fprintf(&p, ", %g of the usual rounds", r.Rounds)
		}
		p.WriteString("\n")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(p.String()), 0o644)
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

// machine is what the figures depend on.
func machine() string {
	cpu := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
				break
			}
		}
	}
	s := fmt.Sprintf("%s, %d cores, %s/%s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	if out, err := exec.Command("uname", "-r").Output(); err == nil {
		s += " " + strings.TrimSpace(string(out))
	}
	for _, tool := range [][]string{{"go", "version"}, {"rg", "--version"}, {"git", "--version"}, {"gopls", "version"}} {
		if out, err := exec.Command(tool[0], tool[1:]...).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			if tool[0] == "gopls" {
				_, first, _ = strings.Cut(first, " ")
				first = "gopls " + first
			}
			s += "; " + strings.TrimSpace(strings.TrimPrefix(first, "go version "))
		}
	}
	return s
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return one
}

func versionOf(bin string) string {
	out, err := exec.Command(bin, "version").Output()
	if err != nil {
		return "unknown version"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}
