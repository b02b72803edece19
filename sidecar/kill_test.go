package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// texts are the files below dir by relative path.
func texts(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// killAfter waits until the program that was started has something in its journal, and delay longer, then kills it. It
// returns when the program has ended, which may be before.
func killAfter(cmd *exec.Cmd, journal string, delay time.Duration) {
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	look := time.NewTicker(200 * time.Microsecond) // looking without a pause takes the processor from what is to be killed
	defer look.Stop()
	for {
		if found, _ := filepath.Glob(journal); len(found) > 0 {
			break
		}
		select {
		case <-ended:
			return
		case <-look.C:
		}
	}
	select {
	case <-time.After(delay):
		_ = cmd.Process.Kill()
		<-ended
	case <-ended:
	}
}

// The whole program is killed while it applies a patch of twenty files; the next start ends what it left, says
// which way, and every file is old or every file is new. Package files does the same 200 times to the commit alone.
func TestKilledInTheMiddleOfAPatch(t *testing.T) {
	const runs, enough = 12, 3 // kills at most, and those that hit the commit
	home := atHome(t)
	journal := filepath.Join(home, "state", "pillion", "journal", "*.json")
	patch, old, now := "*** Begin Patch\n", map[string]string{}, map[string]string{}
	body := strings.Repeat("line\n", 2000)
	for i := range 20 {
		name, moved := fmt.Sprintf("f%d", i), fmt.Sprintf("sub/g%d", i)
		head := fmt.Sprintf("head %d\n", i)
		switch i % 4 {
		case 0:
			patch += "*** Add File: " + name + "\n+" + head
			now[name] = head
			continue
		case 1:
			patch += "*** Update File: " + name + "\n@@\n-" + head + "+new\n"
			now[name] = "new\n" + body
		case 2:
			patch += "*** Update File: " + name + "\n*** Move to: " + moved + "\n@@\n-" + head + "+new\n"
			now[moved] = "new\n" + body
		case 3:
			patch += "*** Delete File: " + name + "\n"
		}
		old[name] = head + body
	}
	line, err := json.Marshal(map[string]any{"tool": "apply_patch", "input": map[string]string{"patchText": patch + "*** End Patch"}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 2))
	outcomes := map[string]int{}
	hits := func() int { return outcomes["old after repair"] + outcomes["new after repair"] }
	for i := 0; i < runs && hits() < enough; i++ {
		dir := t.TempDir()
		for name, text := range old {
			put(t, filepath.Join(dir, name), text)
		}
		cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--approve", "all", "-C", dir)
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1")
		cmd.Stdin = bytes.NewReader(append(line, '\n'))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killAfter(cmd, journal, time.Duration(r.Int64N(int64(8*time.Millisecond))))
		torn := texts(t, dir)
		_, said := callTools(t, dir, `{"tool":"list","input":{}}`)
		got := texts(t, dir)
		what := "old"
		switch {
		case maps.Equal(got, now):
			what = "new"
		case !maps.Equal(got, old):
			t.Fatalf("run %d: neither old nor new after %q", i, said)
		}
		if !maps.Equal(torn, got) {
			what += " after repair"
			if !strings.Contains(said, "interrupted earlier: "+map[string]string{"old after repair": "rolled back", "new after repair": "finished"}[what]) {
				t.Errorf("run %d: %s, but it said %q", i, what, said)
			}
		}
		outcomes[what]++
	}
	t.Log(outcomes)
	if hits() == 0 {
		t.Errorf("none of %d kills hit the commit: %v", runs, outcomes)
	}
}
