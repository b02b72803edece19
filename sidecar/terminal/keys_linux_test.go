package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// At a question Ctrl-Z gives the terminal back to the shell, and fg asks the question again.
func TestAQuestionCanBeLeftWithCtrlZ(t *testing.T) {
	if os.Getenv("PILLION_TEST_KEY") != "" { // in a process of its own
		k, err := New(Options{Out: os.Stdout, Keys: TTY{os.Stdin}}).asks.key(context.Background(), "Sure", "yn")
		fmt.Printf("got %c %v\n", k, err)
		return
	}
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	cmd := exec.Command(bash, "--norc", "-c", `set -m; "$1" -test.run '^TestAQuestionCanBeLeftWithCtrlZ$'; echo "left with $?"; fg`, "bash", os.Args[0])
	cmd.Env = append(os.Environ(), "PILLION_TEST_KEY=1")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tty.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var seen []byte
	until := func(want string) {
		t.Helper()
		buf := make([]byte, 4096)
		for !bytes.Contains(seen, []byte(want)) {
			n, err := tty.Read(buf)
			seen = append(seen, buf[:n]...)
			if err != nil {
				t.Fatalf("%v, no %q in %q", err, want, seen)
			}
		}
		seen = seen[bytes.Index(seen, []byte(want))+len(want):]
	}
	raw := func() { // the question is written before its keys are read
		t.Helper()
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for {
			mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if mode.Lflag&unix.ICANON == 0 {
				return
			}
			<-look.C
		}
	}
	until("Sure [y,n]? ")
	raw()
	if _, err := tty.Write([]byte{ctrlZ}); err != nil {
		t.Fatal(err)
	}
	until("left with 148")
	until("Sure [y,n]? ")
	raw()
	if _, err := tty.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	until("got y <nil>")
}
