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

// One walk over the processes serves what comes at once after it, and no longer.
func TestAVimThatStartsIsFoundAfterAMoment(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	text, err := os.ReadFile(sleep)
	must(t, err)
	vim := filepath.Join(t.TempDir(), "vim") // known by the name of its program
	must(t, os.WriteFile(vim, text, 0o700))

	var v vims
	now := time.Now()
	before := v.list(now)
	cmd := exec.Command(vim, "600")
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	pid := strconv.Itoa(cmd.Process.Pid)
	if got := v.list(now.Add(vimStarts - 1)); !slices.Equal(got, before) {
		t.Errorf("a second walk at once: %q, %q before", got, before)
	}
	if got := v.list(now.Add(vimStarts)); !slices.Contains(got, pid) {
		t.Errorf("process %s is not among %q", pid, got)
	}
	if got := v.list(now.Add(-time.Hour)); !slices.Contains(got, pid) { // the clock was put back
		t.Errorf("process %s is not among %q", pid, got)
	}
}
