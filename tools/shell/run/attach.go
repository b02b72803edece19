package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
)

// TerminalInfo describes a terminal.
type TerminalInfo struct {
	Title, Command, Dir string
	Call                string // id of the tool call that runs the command; empty: the user's own terminal
	Rows, Cols          int
	PTY                 bool // false: the program's output is a pipe
}

// Handles are the functions that control an attached command. Another runner started it, so a Terminal neither ends it nor writes to
// its input in any other way. Kill must lead to a call of Terminal.End.
type Handles struct {
	Input func(ctx context.Context, data []byte) error // nil: the command has no input
	Kill  func()
}

// keptAttached is how many ended attached commands are kept. The output of older ones is still in the conversation.
const keptAttached = 8

// ErrNoInput is the error of Input for an attached command without an input.
var ErrNoInput = errors.New("the command has no input: it was not started with one")

// Attach adds a terminal in which users can watch a command that another runner has started. The caller passes the command's output to
// Write and calls End at its end. If the session has ended, Attach returns nil, and Write and End of a nil Terminal do nothing.
// Attached commands do not count against Max, because they run whether they are watched or not.
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
	if !info.PTY {
		t.out.lines = new(lineEnds)
	}
	ts.open[t.id] = t
	return t
}

// Write adds output of an attached command. Output from a pipe has lines that end in LF; readers get CRLF, since a terminal emulator would
// start each line where the one before ended.
func (t *Terminal) Write(p []byte) (int, error) {
	if t == nil {
		return len(p), nil
	}
	return t.out.Write(p) // Write of a ring never fails
}

// lineEnds turns LF into CRLF in a stream.
type lineEnds struct {
	cr bool // the last byte of the stream so far is a CR, so a following LF needs no other
}

// add appends p to out with CRLF for each LF.
func (l *lineEnds) add(out, p []byte) []byte {
	last := byte(0)
	if l.cr {
		last = '\r'
	}
	for _, c := range p {
		if c == '\n' && last != '\r' {
			out = append(out, '\r')
		}
		out = append(out, c)
		last = c
	}
	l.cr = last == '\r'
	return out
}

// length is how many bytes add would append. It counts several bytes at a time.
func (l *lineEnds) length(p []byte) int {
	if len(p) == 0 {
		return 0
	}
	n := len(p) + bytes.Count(p, []byte{'\n'})
	if bytes.IndexByte(p, '\r') >= 0 {
		n -= bytes.Count(p, []byte("\r\n"))
	}
	if l.cr && p[0] == '\n' {
		n--
	}
	l.cr = p[len(p)-1] == '\r'
	return n
}

// End ends the terminal of an attached command: code is its exit code, or -1, and signal then the name of the signal or another reason.
// Only the first call has an effect. End sets exit and signal before it closes done, so Exit reads them without a lock.
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

// dropEnded forgets ended attached commands until keptAttached of them are left, those with the lowest ids first. The user's own
// terminals stay until Release.
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

// Info returns the terminal's description, with its current size.
func (t *Terminal) Info() TerminalInfo {
	t.size.Lock()
	defer t.size.Unlock()
	return t.info
}

// Printed is how many bytes of output there were so far, including those that the scrollback does not hold any more.
func (t *Terminal) Printed() int64 {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	t.out.convert()
	return t.out.total
}

// handInput is Input for an attached command. It calls Handles.Input.
func (t *Terminal) handInput(ctx context.Context, data []byte) error {
	switch {
	case t.Ended():
		return ErrTerminalEnded
	case t.hand.Input == nil:
		return ErrNoInput
	}
	return t.hand.Input(ctx, data)
}
