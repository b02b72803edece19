package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// TerminalCommand is what to run in a terminal.
type TerminalCommand struct {
	Text       string       // a command line; empty: an interactive shell
	Shell      string       // path of the shell; empty: the one Detect finds
	Dir        string       // absolute, must exist
	Env        []string     // nil: the environment of this program, as personEnviron cleans it
	Rows, Cols int          // 0: 24 by 80
	Sandbox    *sandbox.Box // nil: none
	Title      string       // what a person sees; empty: the command line, or the shell's name
}

// Terminals are what a person can watch running: shells on pseudo-terminals, and the agent's commands (Attach). The zero
// value is ready. Close ends all with everything that runs in them.
//
//	t, err := terminals.Start(run.TerminalCommand{Dir: dir, Rows: 40, Cols: 120})
//	stop := t.Subscribe(0, func(data []byte, lost int64) { … })
//	err = t.Input(ctx, []byte("make\n"))
type Terminals struct {
	Max int // how many may run at once; 0: 32

	runner Runner
	mu     sync.Mutex
	open   map[string]*Terminal // guarded by mu; those that have not been forgotten
	next   int                  // guarded by mu
	closed bool                 // guarded by mu
}

// Terminal is one session. It is safe for concurrent use.
type Terminal struct {
	id    string
	info  TerminalInfo
	job   *job
	tty   *os.File // our end; nil for a command without a pseudo-terminal
	hand  Handles  // what can be done to such a command
	out   *ring
	lines lineEnds      // of a command without a pseudo-terminal
	done  chan struct{} // closed when the shell has ended and nothing of it is left
	all   *Terminals

	input sync.Mutex // one writer at a time
	ends  sync.Once
	size  sync.Mutex // no resizing after the end; the size is in info
	over  bool       // guarded by size

	exit   int    // set before done is closed
	signal string // set before done is closed
}

// ErrTerminalEnded is for input and resizing after the end.
var ErrTerminalEnded = errors.New("the terminal's program has ended")

// maxTerminals is the limit where Terminals.Max is 0. Each terminal costs a pseudo-terminal and up to Scrollback bytes.
const maxTerminals = 32

// reserve takes a place and a name for a terminal.
// The nil in open keeps the place until start has a Terminal to put there.
func (ts *Terminals) reserve() (string, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	limit := ts.Max
	if limit == 0 {
		limit = maxTerminals
	}
	running := 0
	for _, t := range ts.open {
		if t == nil || t.job != nil && !t.Ended() {
			running++
		}
	}
	switch {
	case ts.closed:
		return "", errors.New("the session has ended; no terminal can be started in it")
	case running >= limit:
		return "", fmt.Errorf("%d terminals are running, which is the limit; end one first", running)
	}
	if ts.open == nil {
		ts.open = map[string]*Terminal{}
	}
	ts.next++
	id := fmt.Sprintf("term_%d", ts.next)
	ts.open[id] = nil
	return id, nil
}

// Get finds a terminal; nil when there is none of that name.
func (ts *Terminals) Get(id string) *Terminal {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.open[id]
}

// List returns the terminals in the order they were started, ended ones that were not released included.
func (ts *Terminals) List() []*Terminal {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var out []*Terminal
	for _, t := range ts.open {
		if t != nil {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, byNumber)
	return out
}

// byNumber orders term_2 before term_10.
func byNumber(a, b *Terminal) int {
	return cmp.Or(cmp.Compare(len(a.id), len(b.id)), strings.Compare(a.id, b.id))
}

// Release ends a terminal and forgets it with its scrollback.
func (ts *Terminals) Release(id string) {
	t := ts.Get(id)
	if t == nil {
		return
	}
	t.Kill()
	ts.forget(id)
}

// forget takes a terminal, or the place that reserve has kept for one, out of the list.
func (ts *Terminals) forget(id string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.open, id)
}

// Close ends every terminal and waits for it. No other can be started.
func (ts *Terminals) Close() {
	ts.mu.Lock()
	ts.closed = true
	ts.mu.Unlock()
	var wg sync.WaitGroup
	for _, t := range ts.List() {
		if t.job != nil { // an attached command ends with its runner
			wg.Go(t.Kill)
		}
	}
	wg.Wait()
	ts.runner.Close()
}

// ID names the terminal among those of its session.
func (t *Terminal) ID() string { return t.id }

// Done is closed when the program has ended and nothing of it is left.
func (t *Terminal) Done() <-chan struct{} { return t.done }

// Ended reports whether Done is closed.
func (t *Terminal) Ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Exit is how the program ended, after Done: its exit code, or -1 and the signal's name.
func (t *Terminal) Exit() (code int, signal string) {
	if !t.Ended() {
		return -1, ""
	}
	return t.exit, t.signal
}

// Wait waits for the end.
func (t *Terminal) Wait(ctx context.Context) (code int, signal string, err error) {
	select {
	case <-t.done:
		return t.exit, t.signal, nil
	case <-ctx.Done():
		return -1, "", ctx.Err()
	}
}

const readChunk = 64 << 10 // bytes a subscriber gets at once

// Read waits for output from offset on (bytes since the start). lost counts bytes before it that the scrollback has
// given up. It ends with io.EOF.
// Each caller keeps its own offset; the one to pass next is returned, and is never smaller than offset.
func (t *Terminal) Read(ctx context.Context, offset int64) (data []byte, next, lost int64, err error) {
	return t.out.read(ctx, offset, readChunk)
}

// Scrollback returns what is kept, and the offset of what comes next.
func (t *Terminal) Scrollback() (data []byte, next int64) { return t.Kept(0) }

// Kept is Scrollback from an offset on.
// It returns at most Scrollback bytes, so a program that prints faster than this reads cannot keep it going.
func (t *Terminal) Kept(from int64) (data []byte, next int64) {
	next = from
	done, cancel := context.WithCancel(context.Background())
	cancel() // nothing is waited for
	for {
		part, n, lost, err := t.out.read(done, next, Scrollback)
		if err != nil {
			return data, n
		}
		if lost > 0 && data != nil { // overwritten while it was read: what came before makes no sense any more
			data = nil
		}
		data, next = append(data, part...), n
		if len(data) >= Scrollback {
			return data, next
		}
	}
}

// Subscribe calls f with all output from offset on, in order, from one goroutine, until stop is called or the end.
// A slow f misses output, and is told how many bytes. f must not call stop and wait.
// stop waits for a call of f that is under way: calling it from f would wait for itself.
func (t *Terminal) Subscribe(offset int64, f func(data []byte, lost int64)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			data, next, lost, err := t.Read(ctx, offset)
			if err != nil || ctx.Err() != nil {
				return
			}
			f(data, lost)
			offset = next
		}
	}()
	return func() { cancel(); <-done }
}

// Input types into the terminal. A program that does not read makes it wait until ctx ends.
func (t *Terminal) Input(ctx context.Context, data []byte) error {
	if t.tty == nil {
		return t.handInput(ctx, data)
	}
	t.input.Lock()
	defer t.input.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = t.tty.SetWriteDeadline(time.Unix(1, 0)) })
	defer func() {
		// The deadline was set, or is being set: without taking it back every later write would fail at once.
		if !stop() {
			_ = t.tty.SetWriteDeadline(time.Time{})
		}
	}()
	_, err := t.tty.Write(data)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case t.Ended(), errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return ErrTerminalEnded
	}
	return fmt.Errorf("input to %s: %w", t.id, err)
}

// maxSide keeps a size from overflowing the kernel's 16 bits.
// struct winsize holds unsigned shorts (TIOCSWINSZ(2const)).
const maxSide = 10_000

// clampSide is a number of rows or columns that the kernel takes; fallback where the editor did not say.
func clampSide(n, fallback int) uint16 {
	if n <= 0 {
		n = fallback
	}
	return uint16(min(n, maxSide))
}

// Kill ends the program and everything that runs in the terminal, and waits for it.
// For an attached command it waits for End, which Handles.Kill must lead to.
func (t *Terminal) Kill() {
	if t.job == nil {
		if !t.Ended() && t.hand.Kill != nil {
			t.hand.Kill()
			<-t.done
		}
		return
	}
	t.ends.Do(func() { t.all.runner.end(t.job) })
	<-t.done
}
