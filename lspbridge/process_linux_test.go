package lspbridge

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/guard"
)

// A sidecar that is killed with -9 takes its servers along.
func TestServersDieWithUs(t *testing.T) {
	if os.Getenv("PILLION_TEST_PARENT") != "" {
		p, err := startProcess(guard.Reason{}, []string{"sleep", "600"}, t.TempDir(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("child " + strconv.Itoa(p.pid) + "\n")
		<-p.exited
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServersDieWithUs$")
	cmd.Env = append(os.Environ(), "PILLION_TEST_PARENT=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := ""
	for s := bufio.NewScanner(out); pid == "" && s.Scan(); {
		pid, _ = strings.CutPrefix(s.Text(), "child ")
		pid = strings.TrimSpace(pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pid == "" {
		t.Fatal("the helper started nothing")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // nobody tells us of its death
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s lives on: %s", pid, b)
		}
	}
}

func TestProcessThatEndsAtOnce(t *testing.T) {
	p, err := startProcess(guard.Reason{}, []string{"sh", "-c", "echo one >&2; echo no such option >&2; exit 3"}, t.TempDir(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if got := p.endReason().Error(); got != "exit status 3: no such option" {
		t.Errorf("%q", got)
	}
	if _, err := startProcess(guard.Reason{}, []string{"/no/such/server"}, t.TempDir(), nil, nil); err == nil {
		t.Error("a program that is not there was started")
	}
}

// Children of the server go with it: they would keep its files and its memory.
func TestKillTakesTheGroup(t *testing.T) {
	p, err := startProcess(guard.Reason{}, []string{"sh", "-c", "sleep 600 & echo $!; wait"}, t.TempDir(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(p.stdout)
	s.Scan()
	pid := s.Text()
	p.kill()
	<-p.exited
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("grandchild %s lives on", pid)
		}
	}
}

// What a server leaves in a session of its own becomes our child, and does not stay a zombie.
func TestOrphansOfAServerAreReaped(t *testing.T) {
	p, err := startProcess(guard.Reason{}, []string{"sh", "-c", "setsid sleep 600 & wait"}, t.TempDir(), nil, guard.Start)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	var left []int
	for len(left) == 0 || unix.Kill(-left[0], 0) != nil { // until it leads a group of its own
		if left = descendants(p.pid); time.Now().After(deadline) {
			t.Fatal("it has not started")
		}
	}
	p.kill()
	<-p.exited
	reap(left)
	if err := unix.Kill(left[0], unix.SIGKILL); err != nil {
		t.Fatalf("it was killed with the server's group: %v", err)
	}
	for unix.Kill(left[0], 0) == nil { // also for a zombie
		if time.Now().After(deadline) {
			t.Fatal("it stays a zombie")
		}
	}
}
