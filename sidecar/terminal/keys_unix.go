//go:build unix

package terminal

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// TTY reads keys from a terminal. Between questions the terminal stays in its ordinary mode, so that Ctrl-C is a
// signal and output looks as always. It reads the file without a buffer of its own: what is left unread belongs to
// the shell, or to the editor that Suspend runs.
type TTY struct{ File *os.File }

// poll(2) does not know of contexts, so this is also the longest that a cancelled question stays.
const pollMillis = 100 // how often a waiting question looks at its context

// wait returns true when a byte can be read, false when limit has passed. No limit waits until the context ends.
func (k TTY) wait(ctx context.Context, limit time.Duration) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(k.File.Fd()), Events: unix.POLLIN}}
	end := time.Now().Add(limit)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		rest := pollMillis
		if limit > 0 {
			// Rounded up: poll with 0 would spin for the last millisecond.
			left := int(time.Until(end).Milliseconds()) + 1
			if left <= 0 || time.Now().After(end) {
				left = 0
			}
			rest = min(rest, left)
		}
		n, err := unix.Poll(fds, rest)
		// A signal, such as a change of the window's size, interrupts poll; the wait continues.
		if err != nil && err != unix.EINTR {
			return false, err
		}
		if n > 0 {
			return true, nil
		}
		if limit > 0 && !time.Now().Before(end) {
			return false, nil
		}
	}
}

// read takes what was typed at once: one byte for a key, more for a paste or a sequence. Bytes belong together while
// each comes within burst of the one before. over: the terminal is gone.
func (k TTY) read(ctx context.Context) (typed []byte, over bool, err error) {
	buf := make([]byte, 256)
	for {
		n, err := k.File.Read(buf)
		if err != nil && err != io.EOF {
			return typed, false, err
		}
		if n == 0 {
			return typed, true, nil
		}
		typed = append(typed, buf[:n]...)
		more, err := k.wait(ctx, burst)
		if err != nil || !more {
			return typed, false, err
		}
	}
}

// Key waits for one of keys in raw mode, in which no line is edited, nothing is echoed and Ctrl-C is a byte. The mode
// is restored on every way out; otherwise the shell would be unusable.
func (k TTY) Key(ctx context.Context, keys string, notice time.Duration, ready func(enter bool)) (byte, error) {
	old, err := term.MakeRaw(int(k.File.Fd()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = term.Restore(int(k.File.Fd()), old) }()
	came := time.Now()
	// What is there already was typed ahead.
	ahead, err := k.wait(ctx, time.Millisecond)
	if err != nil {
		return 0, err
	}
	p := prose{keys: keys, notice: notice, came: came, typing: ahead, stale: ahead}
	for {
		some, err := k.wait(ctx, p.limit())
		if err != nil {
			return 0, err
		}
		if !some {
			if answer := p.rest(); answer != 0 {
				return answer, nil
			}
			ready(p.typing)
			continue
		}
		typed, over, err := k.read(ctx)
		switch {
		case err != nil:
			return 0, err
		case over, bytes.ContainsAny(typed, "\x03\x04"): // Ctrl-C, Ctrl-D
			return 'q', nil
		case bytes.IndexByte(typed, ctrlZ) >= 0:
			_ = term.Restore(int(k.File.Fd()), old)
			stop()
			return ctrlZ, nil
		}
		if answer := p.press(typed); answer != 0 {
			return answer, nil
		}
	}
}

// Discard implements Keys. It returns at once after Ctrl-C or Ctrl-D, and where the terminal is gone.
func (k TTY) Discard() {
	old, err := term.MakeRaw(int(k.File.Fd())) // what is waiting for the end of its line can be read in raw mode only
	if err != nil {
		return
	}
	defer func() { _ = term.Restore(int(k.File.Fd()), old) }()
	for {
		if some, err := k.wait(context.Background(), quiet); !some || err != nil {
			return
		}
		if typed, over, err := k.read(context.Background()); over || err != nil || bytes.ContainsAny(typed, "\x03\x04") {
			return
		}
	}
}

// stop does what Ctrl-Z does outside of raw mode: the shell has the terminal until it gives it back. It returns then, or
// soon where there is no shell that could.
func stop() {
	back := make(chan os.Signal, 1)
	signal.Notify(back, unix.SIGCONT)
	defer signal.Stop(back)
	// 0 is the own process group (kill(2)): the shell must see the whole job stop.
	if unix.Kill(0, unix.SIGTSTP) != nil {
		return
	}
	select {
	case <-back:
	case <-time.After(100 * time.Millisecond): // POSIX drops SIGTSTP for an orphaned process group, such as one without a shell: no SIGCONT will come
	}
}

// Line reads a line in the terminal's own line editing. io.EOF: Ctrl-D at its beginning. It reads byte by byte, so
// that what follows the line is left for the next reader.
func (k TTY) Line(ctx context.Context) (string, error) {
	var line []byte
	buf := make([]byte, 1)
	for {
		if _, err := k.wait(ctx, 0); err != nil {
			return "", err
		}
		n, err := k.File.Read(buf)
		if n == 0 || err != nil {
			if (err == io.EOF || err == nil) && len(line) > 0 {
				return string(line), nil
			}
			if err == nil {
				err = io.EOF
			}
			return "", err
		}
		if buf[0] == '\n' {
			return string(line), nil
		}
		line = append(line, buf[0])
	}
}

// Suspend runs f with the terminal in the mode it had: between questions that is the ordinary one.
func (k TTY) Suspend(f func() error) error { return f() }
