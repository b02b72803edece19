//go:build !unix

package terminal

import (
	"bufio"
	"context"
	"os"
	"strings"
)

// TTY reads keys a line at a time where there is no poll: the first letter of the line counts.
type TTY struct{ File *os.File }

// Key waits for a line that begins with one of keys.
func (k TTY) Key(ctx context.Context, keys string) (byte, error) {
	for {
		s, err := k.Line(ctx)
		if err != nil {
			return 'q', nil
		}
		if s != "" && strings.IndexByte(keys, s[0]) >= 0 {
			return s[0], nil
		}
	}
}

// Line reads a line.
func (k TTY) Line(ctx context.Context) (string, error) {
	s, err := bufio.NewReader(k.File).ReadString('\n')
	return strings.TrimRight(s, "\r\n"), err
}

// Suspend runs f.
func (k TTY) Suspend(f func() error) error { return f() }

// stop: there is no shell that could go on with a process.
func stop() {}
