//go:build unix

// Package scripts holds what builds, sets up and tests the project; its tests try the scripts that decide what `make test` says.
package scripts

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lanes prepares scripts/lanes.sh for a folder with this Makefile.
func lanes(t *testing.T, makefile string, lists ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("lanes.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), script, append([]string{filepath.Join(dir, "logs")}, lists...)...)
	cmd.Dir = dir
	return cmd
}

// Two lists wait for each other, so they run beside each other or not at all; one that fails ends there, the other goes on.
func TestListsOfTargetsRunSideBySide(t *testing.T) {
	cmd := lanes(t, `
first:
	@echo of-first; read x <one; echo $$x >two
second:
	@echo met >one; read x <two; echo $$x again
bad:
	@echo of-bad; exit 3
never:
	@echo of-never
last:
	@echo of-last
`, "first bad never", "second last")
	for _, pipe := range []string{"one", "two"} {
		if err := syscall.Mkfifo(filepath.Join(cmd.Dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v: a failure of one list is that of the run", err)
	}
	for _, want := range []string{"of-first\n== first: passed after", "met again\n== second: passed after", "of-bad\n", "== bad: FAILED after", "of-last\n== last: passed after", "lanes: FAILED: bad\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "never") {
		t.Errorf("a list went on after its failure:\n%s", out)
	}
	times, err := os.ReadFile(filepath.Join(cmd.Dir, "logs", "times.txt"))
	if n := strings.Count(string(times), "\n"); err != nil || n != 4 {
		t.Errorf("times of %d targets: %v\n%s", n, err, times)
	}
}

// What the lists started ends when the run is ended: nothing tests on behind a prompt that is back.
func TestAnInterruptEndsEveryList(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := lanes(t, `
first second:
	@mkfifo $@; echo $$PPID >>pids; bash -c 'echo $$$$ >>pids; echo up >ready; read x <$@ & wait'
`, "first", "second")
		path := filepath.Join(cmd.Dir, "ready")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		ready, err := os.OpenFile(path, os.O_RDWR, 0) // also to write, so that no writer finds it without a reader
		if err != nil {
			t.Fatal(err)
		}
		defer ready.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(ready, make([]byte, len("up\nup\n"))); err != nil {
			t.Fatal(err)
		}
		pids, err := os.ReadFile(filepath.Join(cmd.Dir, "pids"))
		if err != nil || len(strings.Fields(string(pids))) != 4 {
			t.Fatalf("%s %v", pids, err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%v: exit code %d", signal, code)
		}
		for _, pid := range strings.Fields(string(pids)) {
			end := time.Now().Add(time.Minute)
			for exec.Command("sh", "-c", `grep -q '^State:.[^Z]' "/proc/$0/status"`, pid).Run() == nil { // the kernel tells nobody
				if time.Now().After(end) {
					t.Fatalf("%v: %s goes on", signal, pid)
				}
			}
		}
	}
}
