//go:build unix

package terminal

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// TTY reads keys from a terminal. Between questions the terminal stays in its ordinary mode, so that Ctrl-C is a
// signal and output looks as always.
type TTY struct{ File *os.File }

const pollMillis = 100 // how often a waiting question looks at its context

// wait returns when a byte can be read or the context ends.
func (k TTY) wait(ctx context.Context) error {
	fds := []unix.PollFd{{Fd: int32(k.File.Fd()), Events: unix.POLLIN}}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Poll(fds, pollMillis)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

// Key waits for one of keys in raw mode.
func (k TTY) Key(ctx context.Context, keys string) (byte, error) {
	old, err := term.MakeRaw(int(k.File.Fd()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = term.Restore(int(k.File.Fd()), old) }()
	buf := make([]byte, 1)
	for {
		if err := k.wait(ctx); err != nil {
			return 0, err
		}
		n, err := k.File.Read(buf)
		if err != nil || n == 0 {
			if err == nil || err == io.EOF {
				return 'q', nil
			}
			return 0, err
		}
		switch b := buf[0]; {
		case b == 3 || b == 4: // Ctrl-C, Ctrl-D
			return 'q', nil
		case b == ctrlZ:
			_ = term.Restore(int(k.File.Fd()), old)
			stop()
			return b, nil
		case strings.IndexByte(keys, b) >= 0:
			return b, nil
		}
	}
}

// stop does what Ctrl-Z does outside of raw mode: the shell has the terminal until it gives it back. It returns then, or
// soon where there is no shell that could.
func stop() {
	back := make(chan os.Signal, 1)
	signal.Notify(back, unix.SIGCONT)
	defer signal.Stop(back)
	if unix.Kill(0, unix.SIGTSTP) != nil {
		return
	}
	select {
	case <-back:
	case <-time.After(100 * time.Millisecond): // nobody can go on with a group of processes without a shell, so it was not stopped
	}
}

// Line reads a line in the terminal's own line editing.
func (k TTY) Line(ctx context.Context) (string, error) {
	var line []byte
	buf := make([]byte, 1)
	for {
		if err := k.wait(ctx); err != nil {
			return "", err
		}
		n, err := k.File.Read(buf)
		if n == 0 || err != nil {
			if err == io.EOF || err == nil {
				return string(line), nil
			}
			return "", err
		}
		if buf[0] == '\n' {
			return string(line), nil
		}
		line = append(line, buf[0])
	}
}

// Suspend runs f with the terminal in the mode it had.
func (k TTY) Suspend(f func() error) error { return f() }
