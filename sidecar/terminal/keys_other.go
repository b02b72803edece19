//go:build !unix

package terminal

import (
	"bufio"
	"context"
	"os"
	"strings"
	"time"
)

// TTY reads keys a line at a time where there is no poll: a line of one letter counts.
type TTY struct{ File *os.File }

// Key waits for a line that is one of keys; Enter ends it. A line cannot be read with a limit, so ctx is not looked
// at, and an error such as the end of the input is not a yes.
func (k TTY) Key(ctx context.Context, keys string, _ time.Duration, ready func(enter bool)) (byte, error) {
	k.Discard()
	ready(true)
	for {
		s, err := k.Line(ctx)
		if err != nil {
			return 'q', nil
		}
		if len(s) == 1 && strings.IndexByte(keys, s[0]) >= 0 {
			return s[0], nil
		}
	}
}

// Line reads a line.
func (k TTY) Line(ctx context.Context) (string, error) {
	s, err := bufio.NewReader(k.File).ReadString('\n')
	return strings.TrimRight(s, "\r\n"), err
}

// Suspend runs f; the terminal is always in its ordinary mode.
func (k TTY) Suspend(f func() error) error { return f() }

// stop does nothing: there is no job control that could continue a process.
func stop() {}
