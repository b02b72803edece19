package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// TerminalInfo is what there is to say of a terminal besides its output.
type TerminalInfo struct {
	Title, Command, Dir string
	Call                string // the tool call whose command it is; empty: the person's own
	Rows, Cols          int
	PTY                 bool // programs in it see a terminal
}

// Handles are what can be done to an attached command, which belongs to another runner: this package never ends or
// feeds it itself. Kill must lead to End.
type Handles struct {
	Input func(ctx context.Context, data []byte) error // nil: its input is empty
	Kill  func()
}

// keptAttached is how many ended commands can still be looked at; their output is in the conversation too.
const keptAttached = 8

// ErrNoInput is for typing into a command that reads nothing.
var ErrNoInput = errors.New("the command has no input: it was not started with one")

// Attach lets a command that runs elsewhere be watched as a terminal: Write takes its output, End its end. It is nil
// when the session has ended; a nil Terminal takes both and does nothing.
// Attached commands do not count against Max: they run whether somebody watches or not.
func (ts *Terminals) Attach(info TerminalInfo, h Handles) *Terminal {
	if ts == nil {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return nil
	}
	if ts.open == nil {
		ts.open = map[string]*Terminal{}
	}
	ts.next++
	t := &Terminal{id: fmt.Sprintf("term_%d", ts.next), info: info, hand: h, out: newRing(Scrollback), done: make(chan struct{}), all: ts}
	ts.open[t.id] = t
	return t
}

// Write takes output as it was printed. Lines end as on a terminal, which a pipe does not see to.
// A terminal emulator given bare LFs would draw each line further to the right.
func (t *Terminal) Write(p []byte) (int, error) {
	if t == nil {
		return len(p), nil
	}
	n := len(p)
	if !t.info.PTY {
		t.lines.Lock()
		defer t.lines.Unlock()
		p = t.lines.end(p)
	}
	_, _ = t.out.Write(p) // a ring takes everything
	return n, nil
}

// lineEnds turns LF into CRLF in a stream. A flood of short lines goes through it, so it is one pass over a buffer that is kept: two
// calls of bytes.ReplaceAll took 16 times as long as the pipe itself.
type lineEnds struct {
	sync.Mutex
	buf []byte // guarded by the lock, as cr
	cr  bool   // the last byte was a CR: an LF that follows needs none
}

// end returns p with its lines ended; the bytes are valid until the next call.
func (l *lineEnds) end(p []byte) []byte {
	// At worst every byte is an LF.
	if cap(l.buf) < 2*len(p) {
		l.buf = make([]byte, 0, 2*len(p))
	}
	out := l.buf[:2*len(p)]
	k, last := 0, byte(0)
	if l.cr {
		last = '\r'
	}
	for _, c := range p {
		if c == '\n' && last != '\r' {
			out[k] = '\r'
			k++
		}
		out[k] = c
		k++
		last = c
	}
	l.cr = last == '\r'
	return out[:k]
}

// End says how an attached command ended: its exit code, or -1 and the signal's name or another word.
// Only the first call counts. exit and signal are written before done is closed, which is what lets Exit read them unlocked.
func (t *Terminal) End(code int, signal string) {
	if t == nil {
		return
	}
	t.size.Lock()
	ended := t.over
	t.over = true
	t.size.Unlock()
	if ended {
		return
	}
	t.exit, t.signal = code, signal
	t.out.end()
	close(t.done)
	t.all.dropEnded()
}

// dropEnded forgets the attached commands that ended long ago.
// The ids grow, so the oldest come first. The person's own terminals stay until Release.
func (ts *Terminals) dropEnded() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var ended []*Terminal
	for _, t := range ts.open {
		if t != nil && t.job == nil && t.Ended() {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, byNumber)
	for len(ended) > keptAttached {
		delete(ts.open, ended[0].id)
		ended = ended[1:]
	}
}

// Info is what is known of the terminal now.
func (t *Terminal) Info() TerminalInfo {
	t.size.Lock()
	defer t.size.Unlock()
	return t.info
}

// Printed is how many bytes have come so far.
// It only grows, also when the scrollback drops the beginning.
func (t *Terminal) Printed() int64 {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	return t.out.total
}

// handInput types into an attached command through its handle.
func (t *Terminal) handInput(ctx context.Context, data []byte) error {
	switch {
	case t.Ended():
		return ErrTerminalEnded
	case t.hand.Input == nil:
		return ErrNoInput
	}
	return t.hand.Input(ctx, data)
}
