package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A walk over the processes serves what comes at once after it, but not where a Vim was started meanwhile.
func TestAVimThatStartsIsFound(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	text, err := os.ReadFile(sleep)
	must(t, err)
	vim := filepath.Join(t.TempDir(), "vim") // known by the name of its program
	must(t, os.WriteFile(vim, text, 0o700))

	var v vims
	now := time.Now()
	v.list(now)
	cmd := exec.Command(vim, "600")
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	pid := strconv.Itoa(cmd.Process.Pid)
	for _, later := range []time.Duration{0, vimStarts, -time.Hour} { // the last: the clock was put back
		if got := v.list(now.Add(later)); !slices.Contains(got, pid) {
			t.Errorf("after %s process %s is not among %q", later, pid, got)
		}
	}
	v.newest, v.found = "", nil // what a walk found is not kept for ever, as a process may become a Vim
	v.list(now)
	v.found = nil
	if got := v.list(now.Add(vimStarts)); !slices.Contains(got, pid) {
		t.Errorf("process %s is not among %q", pid, got)
	}
}
