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

// TerminalCommand describes a terminal to start.
type TerminalCommand struct {
	Text       string       // a command line; empty: an interactive shell
	Shell      string       // path of the shell; empty: the one Detect finds
	Dir        string       // absolute, must exist
	Env        []string     // nil: that of this process, changed by personEnviron
	Rows, Cols int          // 0: 24 by 80
	Sandbox    *sandbox.Box // nil: none
	Title      string       // shown to people; empty: the command line, or the shell's name
}

// Terminals are the terminals that a user can watch: shells on pseudo-terminals (Start), and commands of the agent (Attach). The zero
// value is ready. Close ends the shells with all processes that run in them.
//
//	t, err := terminals.Start(run.TerminalCommand{Dir: dir, Rows: 40, Cols: 120})
//	stop := t.Subscribe(0, func(data []byte, lost int64) { … })
//	err = t.Input(ctx, []byte("make\n"))
type Terminals struct {
	Max int // how many shells may run at once; 0: maxTerminals

	runner Runner
	mu     sync.Mutex
	open   map[string]*Terminal // guarded by mu; by id, ended ones included until they are forgotten; nil: being started
	next   int                  // guarded by mu; the number in the last id
	closed bool                 // guarded by mu
}

// Terminal is one terminal, of a shell or of an attached command. It is safe for concurrent use.
type Terminal struct {
	id   string
	info TerminalInfo
	job  *job
	tty  *os.File // Pillion's end of the pseudo-terminal; nil for an attached command
	hand Handles  // of an attached command
	out  *ring
	done chan struct{} // closed when the shell and all its processes have ended
	all  *Terminals

	input sync.Mutex // one writer at a time
	ends  sync.Once
	size  sync.Mutex // guards over, and the size in info
	over  bool       // guarded by size; the program has ended, so Resize fails

	exit   int    // set before done is closed
	signal string // set before done is closed
}

// ErrTerminalEnded is the error of Input and Resize after the program has ended.
var ErrTerminalEnded = errors.New("the terminal's program has ended")

// maxTerminals is the limit where Terminals.Max is 0. Each terminal costs a pseudo-terminal and up to Scrollback bytes.
const maxTerminals = 32

// reserve takes a place and an id for a terminal. A nil in open holds the place until Start puts a Terminal there.
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

// Get returns the terminal with an id; nil if there is none.
func (ts *Terminals) Get(id string) *Terminal {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.open[id]
}

// List returns the terminals in the order in which they were started, including ended ones that are not forgotten yet.
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

// Release ends a terminal and forgets it, with its output.
func (ts *Terminals) Release(id string) {
	t := ts.Get(id)
	if t == nil {
		return
	}
	t.Kill()
	ts.forget(id)
}

// forget removes a terminal, or the place that reserve took for one, from open.
func (ts *Terminals) forget(id string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.open, id)
}

// Close ends every shell and waits for it. Afterwards Start fails, and Attach returns nil.
func (ts *Terminals) Close() {
	ts.mu.Lock()
	ts.closed = true
	ts.mu.Unlock()
	var wg sync.WaitGroup
	for _, t := range ts.List() {
		if t.job != nil { // attached commands are ended by their own runner
			wg.Go(t.Kill)
		}
	}
	wg.Wait()
	ts.runner.Close()
}

// ID is the terminal's id, unique in its Terminals.
func (t *Terminal) ID() string { return t.id }

// Done is closed when the program and all its processes have ended.
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

// Exit returns how the program ended: its exit code, or -1 and the name of a signal. Before Done is closed it returns -1 and "".
func (t *Terminal) Exit() (code int, signal string) {
	if !t.Ended() {
		return -1, ""
	}
	return t.exit, t.signal
}

// Wait waits until Done is closed and returns what Exit returns; or the error of ctx.
func (t *Terminal) Wait(ctx context.Context) (code int, signal string, err error) {
	select {
	case <-t.done:
		return t.exit, t.signal, nil
	case <-ctx.Done():
		return -1, "", ctx.Err()
	}
}

const readChunk = 64 << 10 // most bytes that Read returns

// Read waits for output from offset on, which counts bytes since the start. It returns the offset for the next call, and how many bytes
// after offset are lost, because the scrollback does not hold them any more. The error is io.EOF at the end, or that of ctx.
func (t *Terminal) Read(ctx context.Context, offset int64) (data []byte, next, lost int64, err error) {
	return t.out.read(ctx, offset, readChunk)
}

// Scrollback returns the output that is kept, and the offset after it.
func (t *Terminal) Scrollback() (data []byte, next int64) { return t.Kept(0) }

// Kept returns the kept output from an offset on, and the offset after it. It stops after about Scrollback bytes, so that a program
// which prints faster than Kept reads cannot keep it busy forever.
func (t *Terminal) Kept(from int64) (data []byte, next int64) {
	next = from
	done, cancel := context.WithCancel(context.Background())
	cancel() // so that read does not wait for more output
	for {
		part, n, lost, err := t.out.read(done, next, Scrollback)
		if err != nil {
			return data, n
		}
		if lost > 0 && data != nil { // the ring has overwritten what follows data, so data would not join what comes next
			data = nil
		}
		data, next = append(data, part...), n
		if len(data) >= Scrollback {
			return data, next
		}
	}
}

// Subscribe calls f with all output from offset on, in order and from one goroutine, until stop is called or the output ends. A slow f
// loses output; lost says how many bytes. stop waits until a running call of f has returned, so f must not call stop.
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

// Input writes to the terminal's input. If the program does not read, it waits until ctx is done. The error is ErrTerminalEnded,
// ErrNoInput, that of ctx, or that of the write.
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
		// If ctx is done, the deadline is or will be set. Unless it is cleared, every later write fails at once.
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

// maxSide is the most rows or columns of a terminal. The kernel keeps them in 16 bits (struct winsize, TIOCSWINSZ(2const)).
const maxSide = 10_000

// clampSide limits a number of rows or columns to maxSide. If n is not positive, it is fallback.
func clampSide(n, fallback int) uint16 {
	if n <= 0 {
		n = fallback
	}
	return uint16(min(n, maxSide))
}

// Kill ends the program and all processes that run in the terminal, and waits for them. For an attached command it calls Handles.Kill
// and waits for End.
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
