package guard

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// role is what this test program is when it is started again: a host starts a child as Pillion does, a child starts a grandchild.
const role = "PILLION_TEST_ROLE"

func init() {
	next := map[string]string{"host": "child", "child": "grandchild"}
	me := os.Getenv(role)
	if me == "" {
		return
	}
	if next[me] != "" {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout = append(os.Environ(), role+"="+next[me]), os.Stdout
		begin := (*exec.Cmd).Start
		if me == "host" {
			begin = Start
		}
		if err := begin(cmd); err != nil {
			fmt.Println("cannot start:", err)
		}
	}
	fmt.Println(os.Getpid())
	killed := make(chan os.Signal, 1)
	signal.Notify(killed)
	<-killed
}

// started starts this program in a role and returns handles of count processes, which have printed their ids.
func started(t *testing.T, begin func(*exec.Cmd) error, me string, count int) (*exec.Cmd, []windows.Handle) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+me)
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = theirs
	if err := begin(cmd); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); out.Close() })
	var all []windows.Handle
	for lines := bufio.NewScanner(out); len(all) < count && lines.Scan(); {
		var pid uint32
		if _, err := fmt.Sscan(strings.TrimSpace(lines.Text()), &pid); err != nil {
			t.Fatalf("%q", lines.Text())
		}
		h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = windows.CloseHandle(h) })
		all = append(all, h)
	}
	if len(all) != count {
		t.Fatalf("%d of %d processes printed their id", len(all), count)
	}
	return cmd, all
}

// allEnd waits ten seconds for each process.
func allEnd(t *testing.T, all []windows.Handle) {
	t.Helper()
	for _, h := range all {
		if how, err := windows.WaitForSingleObject(h, 10_000); how != windows.WAIT_OBJECT_0 {
			t.Errorf("a process still runs: %#x %v", how, err)
		}
	}
}

func TestWindowsEndsAllWhenTheProgramIsKilled(t *testing.T) {
	host, all := started(t, (*exec.Cmd).Start, "host", 3)
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	allEnd(t, all)
}

func TestWindowsFamilyIsCountedAndKilled(t *testing.T) {
	other, stays := started(t, Start, "grandchild", 1)
	f := NewFamily()
	_, all := started(t, f.Start, "child", 2)
	if n := f.Left(); n != 2 {
		t.Errorf("%d processes are left", n)
	}
	f.Kill()
	allEnd(t, all)
	if n := f.Left(); n != 0 {
		t.Errorf("%d processes are left after Kill", n)
	}
	f.Forget()
	f.Kill() // of a job that is closed
	if how, _ := windows.WaitForSingleObject(stays[0], 0); how != uint32(windows.WAIT_TIMEOUT) {
		t.Errorf("a process outside of the family ended: %#x", how)
	}
	KillGroup(other)
	allEnd(t, stays)
}
