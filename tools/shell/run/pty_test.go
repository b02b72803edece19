//go:build unix

package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func terminal(t *testing.T, c TerminalCommand) *Terminal {
	t.Helper()
	ts := &Terminals{}
	t.Cleanup(ts.Close)
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	term, err := ts.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// until reads from the start until the text shows up.
func until(t *testing.T, term *Terminal, want string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all []byte
	for at := int64(0); !strings.Contains(string(all), want); {
		data, next, _, err := term.Read(ctx, at)
		if err != nil {
			t.Fatalf("%v before %q came: %q", err, want, all)
		}
		all, at = append(all, data...), next
	}
	return string(all)
}

func typeIn(t *testing.T, term *Terminal, text string) {
	t.Helper()
	if err := term.Input(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestTerminalIsATerminal(t *testing.T) {
	term := terminal(t, TerminalCommand{Text: "test -t 0 && test -t 1 && test -t 2 && stty size && ps -o tty= -p $$ >/dev/null; echo $TERM; exit 3", Rows: 33, Cols: 111})
	code, signal, err := term.Wait(t.Context())
	data, _ := term.Scrollback()
	if err != nil || code != 3 || signal != "" || string(data) != "33 111\r\nxterm-256color\r\n" {
		t.Errorf("%d %q %v: %q", code, signal, err, data)
	}
}

func TestTerminalTakesInputAndSizes(t *testing.T) {
	term := terminal(t, TerminalCommand{Text: "trap 'stty size' WINCH; echo ready; while read -r line; do echo got $line; done; echo end"})
	until(t, term, "ready\r\n")
	typeIn(t, term, "hello\n")
	until(t, term, "got hello\r\n")
	if err := term.Resize(50, 132); err != nil {
		t.Fatal(err)
	}
	typeIn(t, term, "again\n") // read continues after the signal
	until(t, term, "50 132\r\n")
	typeIn(t, term, "\x04") // end of input
	until(t, term, "end\r\n")
	if code, _, _ := term.Wait(t.Context()); code != 0 {
		t.Errorf("exit %d", code)
	}
	if err := term.Input(t.Context(), []byte("x")); !errors.Is(err, ErrTerminalEnded) {
		t.Errorf("input after the end: %v", err)
	}
	if err := term.Resize(1, 1); !errors.Is(err, ErrTerminalEnded) {
		t.Errorf("resize after the end: %v", err)
	}
}

func TestCtrlCReachesTheProgramInFront(t *testing.T) {
	term := terminal(t, TerminalCommand{Text: "echo up; sleep 1000; echo not reached"})
	until(t, term, "up\r\n")
	typeIn(t, term, "\x03")
	code, signal, err := term.Wait(t.Context())
	if err != nil || code == 0 || code == -1 && signal != "interrupt" {
		t.Errorf("%d %q %v", code, signal, err)
	}
	if data, _ := term.Scrollback(); strings.Contains(string(data), "not reached") {
		t.Errorf("%q", data)
	}
}

func TestAnInteractiveShell(t *testing.T) {
	home := t.TempDir()
	term := terminal(t, TerminalCommand{Shell: needBashShell(t), Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PS1=prompt> "}})
	typeIn(t, term, "case $- in *i*) echo inter$((42));; esac\n")
	until(t, term, "inter42\r\n")
	typeIn(t, term, "sleep 1000 &\n")
	typeIn(t, term, "echo pid=$! end$((1))\n")
	out := until(t, term, " end1\r\n")
	out = out[strings.LastIndex(out, "pid=")+4:]
	typeIn(t, term, "exit 5\n")
	if code, _, _ := term.Wait(t.Context()); code != 5 {
		t.Errorf("exit %d", code)
	}
	gone(t, firstNumber(t, out)) // what it left in the background ends with it
}

func needBashShell(t *testing.T) string {
	t.Helper()
	p, err := Detect("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	return p
}

func TestSeveralSubscribersSeeTheSame(t *testing.T) {
	term := terminal(t, TerminalCommand{Text: "read -r go; seq 1 2000"})
	var seen [4]bytes.Buffer
	var all sync.WaitGroup
	for i := range seen {
		all.Add(1)
		stop := term.Subscribe(0, func(data []byte, lost int64) {
			if lost > 0 {
				t.Errorf("%d bytes lost", lost)
			}
			seen[i].Write(data)
			if bytes.HasSuffix(seen[i].Bytes(), []byte("\r\n2000\r\n")) {
				all.Done()
			}
		})
		defer stop()
	}
	early := term.Subscribe(0, func([]byte, int64) {})
	early() // one that leaves disturbs nobody
	typeIn(t, term, "go\n")
	<-term.Done()
	data, next := term.Scrollback()
	if int64(len(data)) != next || !strings.HasSuffix(string(data), "\r\n1999\r\n2000\r\n") {
		t.Fatalf("%d bytes to %d, end %q", len(data), next, data[max(0, len(data)-20):])
	}
	all.Wait()
	for i := range seen {
		if !bytes.Equal(seen[i].Bytes(), data) {
			t.Errorf("subscriber %d saw %d of %d bytes", i, seen[i].Len(), len(data))
		}
	}
}

func TestAFloodKeepsTheLastTwoMegabytes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	term := terminal(t, TerminalCommand{Text: "stty -opost; yes 0123456789 | head -c 30000000; printf last"})
	slow := make(chan struct{})
	var got, lostAll int64
	whole := make(chan struct{})
	stop := term.Subscribe(0, func(data []byte, lost int64) {
		if got == 0 {
			<-slow // this one holds nobody up
		}
		got += int64(len(data))
		lostAll += lost
		if got+lostAll == 30000004 {
			close(whole)
		}
	})
	<-term.Done()
	close(slow)
	data, next := term.Scrollback()
	if next != 30000004 || len(data) != Scrollback || !bytes.HasSuffix(data, []byte("last")) {
		t.Errorf("%d bytes of %d, end %q", len(data), next, data[len(data)-8:])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	<-whole
	stop()
	if lostAll == 0 || got+lostAll != next {
		t.Errorf("the slow one got %d and was told of %d lost, of %d", got, lostAll, next)
	}
}

func TestInputNobodyReadsCanBeGivenUp(t *testing.T) {
	term := terminal(t, TerminalCommand{Text: "stty raw -echo; echo up; sleep 1000"})
	until(t, term, "up")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := term.Input(ctx, bytes.Repeat([]byte("x"), 1<<20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := term.Resize(10, 10); err != nil {
		t.Error(err)
	}
}

func TestKillEndsAllThatRunsInATerminal(t *testing.T) {
	for name, command := range map[string]string{
		"deaf":          "trap '' TERM HUP; echo $$ >pid; echo up; while :; do sleep 1; done",
		"own session":   "setsid sh -c 'echo $$ >pid; echo up; exec sleep 1000' & wait",
		"in background": "sleep 1000 & echo $! >pid; echo up; wait",
		"stopped":       "sh -c 'echo $$ >pid; echo up; kill -STOP $$' & wait",
		"closed all":    "echo up; exec <&- >&- 2>&-; echo $$ >pid; exec sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "own session" && runtime.GOOS != "linux" {
				t.Skip("needs /proc")
			}
			dir := t.TempDir()
			fifo := filepath.Join(dir, "pid")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			term := terminal(t, TerminalCommand{Text: command, Dir: dir})
			pid, err := os.ReadFile(fifo) // until it is there
			if err != nil {
				t.Fatal(err)
			}
			term.Kill()
			if !term.Ended() {
				t.Error("not ended")
			}
			gone(t, firstNumber(t, string(pid)))
		})
	}
}

func TestTerminalsEndWithTheirSession(t *testing.T) {
	ts := &Terminals{Max: 3}
	dir := t.TempDir()
	for range 3 {
		if _, err := ts.Start(TerminalCommand{Text: "echo up; sleep 1000", Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ts.Start(TerminalCommand{Text: "true", Dir: dir}); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a fourth one: %v", err)
	}
	list := ts.List()
	if len(list) != 3 || list[0].ID() != "term_1" || ts.Get("term_2") != list[1] {
		t.Fatalf("%v", list)
	}
	ts.Release("term_2")
	if ts.Get("term_2") != nil || len(ts.List()) != 2 {
		t.Error("released, but still there")
	}
	ts.Release("nonsense")
	ts.Close()
	for _, term := range list {
		if code, signal := term.Exit(); code != -1 && code < 128 || signal == "" && code == -1 {
			t.Errorf("%s ended with %d %q", term.ID(), code, signal)
		}
	}
	if _, err := ts.Start(TerminalCommand{Text: "true", Dir: dir}); err == nil {
		t.Error("started after the end")
	}
	if _, err := (&Terminals{}).Start(TerminalCommand{Text: "true", Dir: filepath.Join(dir, "no")}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
}
