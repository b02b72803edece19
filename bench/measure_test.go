package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSamplesInterpolate(t *testing.T) {
	s := Samples{4, 1, 3, 2}
	if s.Min() != 1 || s.Median() != 2.5 || s.at(1) != 4 || s.Spread() != 100*(3.25-1.75)/2.5 {
		t.Errorf("min %v, median %v, max %v, spread %v", s.Min(), s.Median(), s.at(1), s.Spread())
	}
	if s[0] != 4 {
		t.Error("the samples were reordered")
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name         string
		ours, beside float64
		target       Target
		met          bool
		text         string
	}{
		{"at most, on the line", 20, 0, Target{AtMost: 20}, true, "met"},
		{"at most, over", 30, 0, Target{AtMost: 20}, false, "1.50 ×"},
		{"at least", 100, 0, Target{AtLeast: 100}, true, "met"},
		{"at least, half", 50, 0, Target{AtLeast: 100}, false, "2.00 ×"},
		{"ratio", 11, 10, Target{Ratio: 1.10}, true, "1.10 ×"},
		{"ratio, over", 12, 10, Target{Ratio: 1.10}, false, "1.20 ×"},
		{"over a limit", 5, 2, Target{Over: 3}, true, "(3.00 ms more"},
		{"over a limit, too much", 6, 2, Target{Over: 3}, false, "(4.00 ms more"},
		{"nothing promised", 6, 2, Target{}, true, "3.00 ×"},
	} {
		r := Row{Unit: "ms", Ours: Samples{c.ours}, Target: c.target}
		if c.beside > 0 {
			r.Beside = Samples{c.beside}
		}
		if met, text := r.Verdict(); met != c.met || !strings.Contains(text, c.text) || strings.Contains(text, "missed") == met {
			t.Errorf("%s: %v %q", c.name, met, text)
		}
	}
}

func TestInTurnsAlternates(t *testing.T) {
	var order strings.Builder
	got := inTurns(3, func() float64 { order.WriteByte('a'); return 1 }, func() float64 { order.WriteByte('b'); return 2 })
	if order.String() != "baabbaab" || len(got[0]) != 3 || got[1][2] != 2 {
		t.Errorf("%s %v", order.String(), got)
	}
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{1234567: "1,234,567", 12345: "12,345", 1234: "1234", 12.34: "12.3", 1.234: "1.23", 0.01234: "0.0123", 0: "0.00"} {
		if got := figure(v); got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
}

// The page has a section for each part that was ever measured, and names the others.
func TestThePageNamesPartsWithoutAResult(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(resultsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	all := map[string]*Result{}
	for _, p := range parts[1:] {
		all[p.name] = &Result{Rows: []Row{{What: "w", Unit: "ms", Ours: Samples{1, 2}}}}
	}
	if err := saveResults(all); err != nil {
		t.Fatal(err)
	}
	again := loadResults()
	if len(again) != len(all) || again[parts[1].name].Rows[0].Ours.Median() != 1.5 {
		t.Errorf("read back %v", again)
	}
	page := func() string {
		if err := writePage("page.md", again); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("page.md")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	heading := func(i int) string { return "\n## " + parts[i].title + "\n" }
	if now := page(); !strings.Contains(now, "\nNever measured so far: "+parts[0].name+".\n") || strings.Contains(now, heading(0)) || !strings.Contains(now, heading(1)) || !strings.Contains(now, heading(len(parts)-1)) {
		t.Error(now)
	}
	again[parts[0].name] = &Result{}
	again[parts[2].name].Machine = "another machine"
	if now := page(); strings.Count(now, ", on another machine\n") != 1 {
		t.Errorf("the machine of one part: %s", now)
	}
	if now := page(); strings.Contains(now, "Never measured") || !strings.Contains(now, heading(0)) {
		t.Error(now)
	}
}

// What Pillion holds in a step is what the agent waits for answers in it, and what the editor waits for its end; the agent's own time is not.
func TestHeldInAStep(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := strings.Join([]string{
		`100000 < {"id":6,"method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},"terminal":true}}}`,
		`1000000 < {"id":7,"method":"session/prompt"}`, `9000000 > {"id":1,"method":"session/request_permission"}`, `9500000 > {"id":2,"method":"fs/read_text_file"}`,
		`9600000 > {"id":3,"method":"fs/write_text_file"}`, `9900000 < {"id":3,"result":{}}`, // not offered: the agent does not wait for it
		`10000000 < {"id":1,"result":{}}`, `11000000 < {"id":2,"result":{}}`,
		`50000000 > {"method":"session/update","params":{"update":{"toolCallId":"a","status":"in_progress"}}}`,
		`60000000 > {"method":"session/update","params":{"update":{"toolCallId":"a","status":"completed"}}}`,
		`61000000 > {"method":"session/update","params":{"update":{"toolCallId":"a","status":"completed"}}}`,
		`80000000 > {"method":"session/update","params":{"update":{"toolCallId":"b","status":"failed"}}}`, `90000000 > {"id":7,"result":{}}`,
	}, "\n") + "\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The editor's first end is of a call of another session, before the agent's.
	got := heldIn(readTap(log), []int64{59_000_000, 60_250_000, 80_500_000})
	if want := (Samples{1 + 1.5 + 0.25, 0.5}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
