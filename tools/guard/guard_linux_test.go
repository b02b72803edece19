package guard

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets the test program be what it tests: the watcher, and the program that dies.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		os.Exit(Main())
	}
	if shell = "/bin/sh"; os.Getenv("GUARD_TEST_SHELL") == "none" {
		shell = "/nowhere/sh"
	}
	if os.Getenv("GUARD_TEST") == "close" {
		Enable()
		started := false
		go func() { startAndWait() }() // prints the ids of the processes, then waits for ever
		for in := bufio.NewScanner(os.Stdin); !started && in.Scan(); {
			started = true
		}
		Close()
		os.Exit(0)
	}
	if os.Getenv("GUARD_TEST") == "start" {
		Enable()
		os.Exit(startAndWait())
	}
	os.Exit(m.Run())
}

// startAndWait starts one process of each kind, tells who they are, and waits to be killed.
func startAndWait() int {
	pids := func(cmd *exec.Cmd, start func(*exec.Cmd) error) bool {
		r, w, err := os.Pipe()
		if err != nil {
			return false
		}
		cmd.Stdout = w
		if start(cmd) != nil {
			return false
		}
		w.Close()
		for in, n := bufio.NewScanner(r), 0; n < 2 && in.Scan(); n++ {
			os.Stdout.WriteString(in.Text() + "\n")
		}
		return true
	}
	// The second is in a session of its own, without an environment, and its parent is gone.
	const script = `echo $$; (setsid env -i sh -c 'echo $$; exec sleep 600' &); exec sleep 600`
	f := NewFamily()
	one := exec.Command("sh", "-c", script)
	one.Env = append(os.Environ(), f.Env())
	if !pids(one, f.Start) || !pids(exec.Command("sh", "-c", script), Start) {
		return 1
	}
	os.Stdout.WriteString("ready\n")
	select {}
}

func TestNothingOutlivesAProgram(t *testing.T) {
	for _, how := range []string{"start", "close"} {
		for _, sh := range []string{"", "none"} {
			t.Run(how+" shell "+sh, func(t *testing.T) { ended(t, how, sh) })
		}
	}
}

// ended ends a program that has started processes, by a signal ("start") or by Close, with the shell that waits to clean up or without one.
func ended(t *testing.T, how, sh string) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "GUARD_TEST="+how, "GUARD_TEST_SHELL="+sh)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for in := bufio.NewScanner(out); in.Scan() && in.Text() != "ready"; {
		pid, err := strconv.Atoi(in.Text())
		if err != nil {
			t.Fatalf("it said %q", in.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 4 {
		_ = cmd.Process.Kill()
		t.Fatalf("%d of 4 processes started", len(pids))
	}
	for _, pid := range pids {
		if dead(strconv.Itoa(pid)) {
			t.Errorf("process %d ended by itself", pid)
		}
	}
	if how == "close" {
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	} else if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil && how == "close" {
		t.Fatal(err)
	}
	for _, pid := range pids {
		fd, err := pidfdOpen(pid)
		if err != nil {
			continue // gone
		}
		if !ends(fd, 2*time.Minute) {
			t.Errorf("process %d lives on", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// The shell hands on the marks that were told and not taken back, and is not marked itself.
func TestTheShellThatWaitsKeepsTheMarks(t *testing.T) {
	dir := t.TempDir()
	// In the place of this program stands one that writes down its arguments.
	into := filepath.Join(dir, "said")
	if err := os.WriteFile(filepath.Join(dir, "said.sh"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\" >"+into+".new && mv "+into+".new "+into+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Open(filepath.Join(dir, "said.sh"))
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	argv, real, err := watching()
	if err != nil || real == nil || argv[0] != "/bin/sh" {
		t.Fatal(argv, err)
	}
	real.Close()
	for in, want := range map[string]string{
		"":                         "<__guard><1 2>",
		"+7\n+17\n+77\n":           "<__guard><1 2><7><17><77>",
		"+7\n+17\n+77\n-17\n":      "<__guard><1 2><7><77>",
		"+7\n-7\n+8\n-9\n-8\n+8\n": "<__guard><1 2><8>",
		"+7\n.\n":                  "",                            // nothing is left: this program is not needed
		"+1\n+11\n+1 1\n-11":       "<__guard><1 2><1><11><1><1>", // a line that was cut off counts for nothing
	} {
		cmd := exec.Command(argv[0], append(argv[2:len(argv)-1:len(argv)-1], "1 2")...)
		cmd.Stdin, cmd.ExtraFiles = strings.NewReader(in), []*os.File{exe}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v %s", in, err, out)
		}
		got, _ := os.ReadFile(into)
		_ = os.Remove(into)
		if string(got) != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestAFamilyIsKnownByItsMarks(t *testing.T) {
	start := func(f *Family) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		cmd.Env = append(without(os.Environ()), f.Env())
		if err := f.Start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); f.Forget() })
		return cmd
	}
	one, two := NewFamily(), NewFamily()
	a, b := start(one), start(two)
	for _, x := range []struct {
		f    *Family
		pid  int
		want bool
	}{
		{one, a.Process.Pid, true}, {two, b.Process.Pid, true}, {one, b.Process.Pid, false}, {two, a.Process.Pid, false},
		{one, os.Getpid(), false}, {one, 1, false},
	} {
		if got := x.f.Has(x.pid); got != x.want {
			t.Errorf("family %s has process %d: %v", x.f.Env(), x.pid, got)
		}
	}
}

func TestACommandThatCannotStartSaysSo(t *testing.T) {
	f := NewFamily()
	err := f.Start(exec.Command("/nowhere/to/be/found"))
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("it said %v", err)
	}
	if noTrace.Load() {
		t.Error("a missing program was taken for a system without tracing")
	}
}

func pidfdOpen(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// ends waits for the end of a process.
func ends(fd int, limit time.Duration) bool {
	defer unix.Close(fd)
	for until := time.Now().Add(limit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(until).Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}
