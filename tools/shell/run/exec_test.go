//go:build unix

package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func run(t *testing.T, c Command) Outcome {
	t.Helper()
	r := &Runner{}
	t.Cleanup(r.Close)
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	out, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, command, want string
		exit                int
	}{
		{"output", "echo hi", "hi\n", 0},
		{"exit code", "exit 3", "", 3},
		{"not found", "nosuchprogram_x 2>/dev/null", "", 127},
		{"both outputs in order", "for i in 1 2 3; do echo o$i; echo e$i >&2; done", "o1\ne1\no2\ne2\no3\ne3\n", 0},
		{"no input", "cat; echo done", "done\n", 0},
		{"colours", `printf '\033[31mred\033[0m\n'`, "red\n", 0},
		{"progress", `printf '10%%\r50%%\r100%%\n'`, "100%\n", 0},
		{"crlf", `printf 'a\r\nb\r\n'`, "a\nb\n", 0},
		{"title sequence", `printf '\033]0;title\007x'`, "x", 0},
		{"backspaces", `printf 'abc\b\bX'`, "aX", 0},
		{"not utf-8", `printf 'a\377b'`, "a\uFFFDb", 0},
		{"nul", `printf 'a\000b'`, "ab", 0},
		{"no functions from the environment", "ls() { echo mine; }; type -t true", "builtin\n", 0},
		{"syntax error", "echo 'x", "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := run(t, Command{Text: c.command})
			if c.name == "syntax error" {
				out.Output.Head = ""
			}
			if out.Output.Head != c.want || out.Exit != c.exit || out.Output.Truncated || out.Left != 0 {
				t.Errorf("%+v", out)
			}
		})
	}
}

func TestRunTellsTheSignal(t *testing.T) {
	if out := run(t, Command{Text: "kill -SEGV $$"}); out.Exit != -1 || out.Signal != "segmentation fault" {
		t.Errorf("%+v", out)
	}
}

func TestRunEnvironment(t *testing.T) {
	env := Environ([]string{"A=1", "BASH_ENV=/x", "BASH_FUNC_ls%%=() { echo mine; }", "CDPATH=/", "PATH=" + os.Getenv("PATH")})
	out := run(t, Command{Text: `echo "$A|$BASH_ENV|$CDPATH|$PILLION"; type -t ls`, Env: env})
	if out.Output.Head != "1||/|1\nfile\n" && out.Output.Head != "1|||1\nfile\n" {
		t.Errorf("%q", out.Output.Head)
	}
}

func TestRunReturnsWhenTheShellExits(t *testing.T) {
	r := &Runner{}
	out, err := r.Run(t.Context(), Command{Text: "sleep 100 & echo $!; echo bg", Dir: t.TempDir()})
	if err != nil || out.Left != 1 || !strings.HasSuffix(out.Output.Head, "bg\n") || out.Took > 50*time.Second {
		t.Fatalf("%+v, %v", out, err)
	}
	r.Close()
	gone(t, firstNumber(t, out.Output.Head))
}

func firstNumber(t *testing.T, s string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.Fields(s)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone fails when a process is alive. A zombie counts as alive: nobody would ever remove it.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // a killed process takes a moment to be reaped
		if syscall.Kill(pid, 0) != nil {
			return
		}
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	t.Errorf("process %d is still there: %s", pid, stat)
}

func TestTimeoutLeavesNothing(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed (util-linux)")
	}
	for name, command := range map[string]string{
		"child":                    "sleep 1000 & echo $! >pid; wait",
		"forked twice":             "(sleep 1000 & echo $! >pid) & wait; sleep 1000",
		"own session":              "setsid sh -c 'echo $$ >pid; exec sleep 1000' & wait",
		"own session and orphaned": "setsid -f sh -c 'echo $$ >pid; exec sleep 1000'; sleep 1000",
		"empty environment":        "env -i setsid -f /bin/sh -c 'echo $$ >pid; exec /bin/sleep 1000'; sleep 1000",
		"deaf to TERM":             "trap '' TERM; (trap '' TERM; echo $BASHPID >pid; while :; do sleep 1; done) & while :; do sleep 1; done",
		"closed outputs":           "exec >&- 2>&- </dev/null; echo $$ >pid; sleep 1000",
		"stopped":                  "sh -c 'echo $$ >pid; kill -STOP $$' & wait",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "empty environment" && runtime.GOOS != "linux" {
				t.Skip("needs /proc")
			}
			dir := t.TempDir()
			var data []byte
			for timeout := 300 * time.Millisecond; len(data) == 0 && !t.Failed(); timeout *= 3 { // a busy machine may not get as far
				out := run(t, Command{Text: command, Dir: dir, Timeout: timeout})
				if !out.TimedOut || out.Exit != -1 {
					t.Errorf("%+v", out)
				}
				var err error
				if data, err = os.ReadFile(filepath.Join(dir, "pid")); err != nil && timeout > 20*time.Second {
					t.Fatal(err)
				}
			}
			gone(t, firstNumber(t, string(data)))
		})
	}
}

func TestCancelReturnsAtOnceAndLeavesNothing(t *testing.T) {
	var took time.Duration
	for range 20 { // a busy machine may be slower than the time that Run must not wait for
		if took = cancelDeaf(t); took <= Grace {
			return
		}
	}
	t.Errorf("a canceled command that ignores SIGTERM returned after %v each time", took)
}

// cancelDeaf cancels a command that ignores SIGTERM and returns how long Run took to return after that.
func cancelDeaf(t *testing.T) time.Duration {
	t.Helper()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "ready")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &Runner{}
	ended := make(chan Outcome)
	go func() {
		out, _ := r.Run(ctx, Command{Text: "trap '' TERM; echo $$ >ready; echo part; while :; do sleep 1; done", Dir: dir})
		ended <- out
	}()
	data, err := os.ReadFile(fifo) // until the shell is there
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cancel()
	out := <-ended
	took := time.Since(began)
	if !out.Canceled {
		t.Errorf("%+v", out)
	}
	r.Close()
	gone(t, firstNumber(t, string(data)))
	return took
}

func TestLongOutputKeepsHeadAndTailAndTheWholeInAFile(t *testing.T) {
	spill := t.TempDir()
	out := run(t, Command{Text: "seq 1 100000", SpillDir: spill}).Output
	if !out.Truncated || !strings.HasPrefix(out.Head, "1\n2\n") || !strings.HasSuffix(out.Tail, "99999\n100000\n") {
		t.Errorf("head %.20q tail %.20q", out.Head, out.Tail)
	}
	if len(out.Head)+len(out.Tail) > maxWhole || int64(len(out.Head)+len(out.Tail))+out.Cut != out.Bytes {
		t.Errorf("%d + %d + %d cut of %d", len(out.Head), len(out.Tail), out.Cut, out.Bytes)
	}
	whole, err := os.ReadFile(out.Path)
	if err != nil || int64(len(whole)) != out.Bytes || !strings.HasPrefix(string(whole), "1\n2\n") {
		t.Errorf("file of %d bytes, %v", len(whole), err)
	}
}

func TestManyShortLinesAreCutToo(t *testing.T) {
	out := run(t, Command{Text: "yes | head -n 5000", SpillDir: t.TempDir()}).Output
	if n := strings.Count(out.Head+out.Tail, "\n"); !out.Truncated || n > maxLines || n < maxLines-10 {
		t.Errorf("%d lines, truncated %v", n, out.Truncated)
	}
	if whole, err := os.ReadFile(out.Path); err != nil || len(whole) != 10000 {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
}

func TestOneVeryLongLineIsCutInside(t *testing.T) {
	out := run(t, Command{Text: "head -c 200000 /dev/zero | tr '\\0' x", SpillDir: t.TempDir()}).Output
	if len(out.Head) < headSize || len(out.Tail) == 0 || !out.Truncated {
		t.Errorf("head %d tail %d", len(out.Head), len(out.Tail))
	}
}

func TestAFullDiskIsSaidAndTheCommandGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, Command{Text: "seq 1 100000", SpillDir: filepath.Join(file, "no")})
	if out.Exit != 0 || out.Output.SpillErr == "" || out.Output.Path != "" || !strings.HasSuffix(out.Output.Tail, "100000\n") {
		t.Errorf("%d %q %q", out.Exit, out.Output.SpillErr, out.Output.Path)
	}
}

func TestMemoryStaysBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size := int64(300) // MB
	if os.Getenv("PILLION_SOAK") != "" {
		size = 1024
	}
	out := run(t, Command{Text: fmt.Sprintf("yes | head -c %dM", size)})
	runtime.ReadMemStats(&after)
	if out.Output.Bytes != size<<20 {
		t.Errorf("%d bytes", out.Output.Bytes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("allocated %d MB", grown>>20)
	}
}

func TestLiveOutput(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen []string
	out := run(t, Command{Text: "echo first; cat go >/dev/null; seq 1 20000", Dir: dir, OnOutput: func(s string) {
		if len(seen) == 0 && strings.Contains(s, "first") {
			go os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
		}
		seen = append(seen, s)
	}})
	if out.Exit != 0 || len(seen) < 2 || seen[0] != "first\n" {
		t.Fatalf("%d updates, exit %d", len(seen), out.Exit)
	}
	if last := seen[len(seen)-1]; len(last) > LiveOutput || !strings.HasPrefix(last, "...\n\n") || !strings.HasSuffix(last, "20000\n") {
		t.Errorf("last update has %d bytes", len(last))
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	r := &Runner{}
	dir := t.TempDir()
	for name, c := range map[string]Command{
		"does not exist": {Text: "ls", Dir: filepath.Join(dir, "gone")},
		"not a dir":      {Text: "ls", Dir: "/dev/null"},
		"cannot be star": {Text: "ls", Dir: dir, Shell: "/nosuch/bash"},
	} {
		if _, err := r.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Detect("nosuchshell_x"); err == nil || !strings.Contains(err.Error(), "configured") {
		t.Errorf("%v", err)
	}
}

func BenchmarkRun(b *testing.B) {
	r := &Runner{}
	dir := b.TempDir()
	for b.Loop() {
		if _, err := r.Run(b.Context(), Command{Text: "true", Dir: dir}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBashAlone(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bash", "-c", "true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
