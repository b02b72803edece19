package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/files"
)

func TestReadLimits(t *testing.T) {
	b := newBench(t, nil)
	read := Read(b.env)
	many := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	for _, c := range []struct {
		name, text, input string
		want, wantNot     string
	}{
		{"exactly 2000 lines are all", many(2000, "x"), `{"filePath":"f"}`, "(End of file - total 2000 lines)", "continue"},
		{"2001 lines go on", many(2001, "x"), `{"filePath":"f"}`, "(Showing lines 1-2000 of 2001. Use offset=2001 to continue.)", "2001: x"},
		{"the rest", many(2001, "x"), `{"filePath":"f","offset":2001}`, "2001: x\n\n(End of file - total 2001 lines)", "2000: x"},
		{"limit above 2000", many(2500, "x"), `{"filePath":"f","limit":2400}`, "(Showing lines 1-2400 of 2500. Use offset=2401", ""},
		{"long line", strings.Repeat("ä", 2001) + "\n", `{"filePath":"f"}`, strings.Repeat("ä", 2000) + "... (line truncated to 2000 chars)\n", strings.Repeat("ä", 2001)},
		{"line of exactly 2000", strings.Repeat("ä", 2000) + "\n", `{"filePath":"f"}`, strings.Repeat("ä", 2000) + "\n", "truncated to"},
		{"50 KB", many(1000, strings.Repeat("x", 99)), `{"filePath":"f"}`, "(Output capped at 50 KB. Showing lines 1-512. Use offset=513 to continue.)", "513: x"},
		{"offset 0 is 1", "a\n", `{"filePath":"f","offset":0}`, "1: a", ""},
		{"blank lines count", "\n\n", `{"filePath":"f"}`, "1: \n2: \n\n(End of file - total 2 lines)", ""},
	} {
		b.put("f", c.text)
		r, err := b.call(read, c.input)
		if err != nil || !strings.Contains(r.Output, c.want) || c.wantNot != "" && strings.Contains(r.Output, c.wantNot) {
			t.Errorf("%s: %v\n%.300s … %s", c.name, err, r.Output, r.Output[max(0, len(r.Output)-200):])
		}
		if _, own := r.Metadata["truncated"]; !own || r.Metadata["outputPath"] != nil {
			t.Errorf("%s: capped once more: %v", c.name, r.Metadata)
		}
	}
}

// A big file is streamed: the same page, little memory, and known well enough to be edited.
func TestReadStreamsBigFiles(t *testing.T) {
	b := newBench(t, nil)
	line := strings.Repeat("0123456789", 10)
	n := (readWhole + 1<<20) / (len(line) + 1)
	p := b.put("f", strings.Repeat(line+"\n", n)+"last")
	r, err := b.call(Read(b.env), fmt.Sprintf(`{"filePath":"f","offset":%d}`, n))
	want := fmt.Sprintf("%d: %s\n%d: last\n\n(End of file - total %d lines)", n, line, n+1, n+1)
	if err != nil || !strings.Contains(r.Output, want) {
		t.Fatalf("%v\n%.400s", err, r.Output)
	}
	f, err := files.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.env.Tracker.Check(f); err != nil {
		t.Error(err)
	}
	// Not UTF-8 somewhere deep inside: still read, with its own encoding.
	b.put("g", strings.Repeat(line+"\n", n)+"caf\xe9\n")
	if r, err = b.call(Read(b.env), fmt.Sprintf(`{"filePath":"g","offset":%d}`, n+1)); err != nil || !strings.Contains(r.Output, "café") {
		t.Errorf("%v\n%.300s", err, r.Output)
	}
}

func TestReadOfOneGigabyteTakesLittleMemory(t *testing.T) {
	b := newBench(t, nil)
	f, err := os.Create(filepath.Join(b.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(strings.Repeat("a line of text\n", 5000))
	f.Truncate(1 << 30) // the rest is one line of NULs that takes no room on the disk
	f.Close()
	for _, input := range []string{`{"filePath":"f","limit":10}`, `{"filePath":"f","offset":4990,"limit":5}`} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := b.call(Read(b.env), input)
		runtime.ReadMemStats(&after)
		if err != nil || !strings.Contains(r.Output, ": a line of text\n") || !strings.Contains(r.Output, "Use offset=") {
			t.Errorf("%v\n%.500s", err, r.Output)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%d bytes", n)
		}
	}
	if _, err := b.call(Edit(b.env), `{"filePath":"f","oldString":"a","newString":"b"}`); kindOf(err) != "too_big" {
		t.Error(err)
	}
}

func TestReadWarmsTheServersAndFollows(t *testing.T) {
	b := newBench(t, nil)
	w := &warmBridge{}
	b.env.Bridge = w
	p := b.put("a.go", "package a\n")
	if _, err := b.call(Read(b.env), `{"filePath":"a.go","offset":1}`); err != nil {
		t.Fatal(err)
	}
	if w.warmed != p || b.updates[0].Locations[0].Path != p || b.updates[0].Locations[0].Line != 1 {
		t.Errorf("warmed %q, updates %+v", w.warmed, b.updates)
	}
}

type warmBridge struct {
	fakeBridge
	warmed string
}

func (w *warmBridge) Warm(p string) { w.warmed = p }

var _ Bridge = (*warmBridge)(nil)

// Long outputs that the model was pointed to be outside the project and are read without a question.
func TestReadOfSpilledOutput(t *testing.T) {
	b := newBench(t, nil)
	b.env.StateDir = t.TempDir()
	asked := 0
	b.host.Gate = countOutside{&asked}
	p := filepath.Join(b.env.StateDir, "tool-output", "x.txt")
	os.MkdirAll(filepath.Dir(p), 0o755)
	os.WriteFile(p, []byte("spilled\n"), 0o600)
	if r, err := b.call(Read(b.env), fmt.Sprintf(`{"filePath":%q}`, p)); err != nil || !strings.Contains(r.Output, "spilled") || asked != 0 {
		t.Errorf("%v, %d questions", err, asked)
	}
	os.WriteFile(filepath.Join(b.env.StateDir, "other"), nil, 0o600)
	b.call(Read(b.env), fmt.Sprintf(`{"filePath":%q}`, filepath.Join(b.env.StateDir, "other")))
	if asked != 1 {
		t.Errorf("the state folder itself: %d questions", asked)
	}
}
