package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two processes write to one log, which rotates while they run: it stays small, and the newest lines are there.
func TestTheLogRotatesWhileItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "pillion.log")
	const limit, line = 10_000, 100
	a, b := &logFile{path: path, max: limit}, &logFile{path: path, max: limit}
	defer a.close()
	defer b.close()
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a log before anything was logged")
	}
	for i := range 1000 {
		for name, l := range map[string]*logFile{"a": a, "b": b} {
			if _, err := fmt.Fprintf(l, "%s%4d %s\n", name, i, strings.Repeat("x", line-7)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := ""
	for _, p := range []string{path + ".1", path} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 3*limit || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes, %v", p, info.Size(), info.Mode())
		}
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	if !strings.Contains(all, "a 999 ") || !strings.Contains(all, "b 999 ") || strings.Contains(all, "a   0 ") {
		t.Error("the newest lines are missing, or the oldest are still there")
	}
}
