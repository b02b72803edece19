package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

const (
	// MaxBackground is how many commands may run in the background at once.
	MaxBackground = 20
	keptEnded     = 20                    // ended commands whose output can still be looked at; older ones are forgotten by reserve
	gather        = 30 * time.Millisecond // how long a look that had to wait lets more output come
	inputLimit    = 5 * time.Second       // how long a program may take to read its input
)

// Background runs commands that continue while the agent does other things. The zero value is ready; Close ends all of
// them with everything they started.
//
//	j, err := background.Start(run.Command{Text: "npm run dev", Dir: dir})
//	look, err := j.Look(ctx, 5*time.Second)
//	err = j.Input(ctx, "q\n", false)
//	j.Kill()
type Background struct {
	runner Runner

	mu       sync.Mutex
	jobs     []*BackgroundJob // guarded by mu; the oldest first
	next     int              // guarded by mu
	starting int              // guarded by mu
	closed   bool             // guarded by mu
}

// BackgroundJob is one command in the background. It is safe for concurrent use.
type BackgroundJob struct {
	ID      string // bg_1
	Command Command
	Started time.Time

	all   *Background
	job   *job
	out   *collector
	stdin *os.File
	done  chan struct{} // ended, and how is known

	input     sync.Mutex // one writer at a time
	inputOver bool       // guarded by input

	mu   sync.Mutex
	seen int64 // guarded by mu; bytes of output that were looked at
	told bool  // guarded by mu; its end was looked at

	how Ending // set before done is closed; Left is guarded by mu afterwards
}

// Ending is how a background command ended.
type Ending struct {
	Exit     int    // exit code; -1 when a signal ended it
	Signal   string // name of the signal that ended it
	TimedOut bool
	Left     int // processes it left running
	Took     time.Duration
	Notes    []string // what the sandbox did afterwards
	Stopped  string   // which restriction of the sandbox may have made it fail
}

// Look is what is new of a command since the one before.
type Look struct {
	Output  Output
	Running bool
	Ending  Ending // when it does not run any more
}

// Errors of Start and Input.
var (
	ErrBackgroundFull   = fmt.Errorf("%d commands run in the background already, which is the limit; end one first", MaxBackground)
	ErrBackgroundClosed = errors.New("the session has ended, so nothing is started any more")
	ErrBackgroundEnded  = errors.New("the command has ended; nothing reads the input")
	ErrInputClosed      = errors.New("the command's input is closed; nothing reads what is typed")
)

// Start starts a command. Its Timeout, when set, ends it; OnOutput and Stdin are not used.
// The place is reserved before the process starts, and mu is free while it does: a start may take long, and Close
// must not wait for it. Errors are ErrBackgroundFull, ErrBackgroundClosed, or those of a command that cannot be started.
func (b *Background) Start(c Command) (*BackgroundJob, error) {
	id, err := b.reserve()
	if err != nil {
		return nil, err
	}
	j, err := b.start(id, c)
	b.mu.Lock()
	b.starting--
	if err == nil {
		b.jobs = append(b.jobs, j)
	}
	closed := b.closed
	b.mu.Unlock()
	// Close ran between the reservation and here and did not know of the job.
	if err == nil && closed {
		j.Kill()
		return nil, ErrBackgroundClosed
	}
	return j, err
}

// reserve takes an id and a place, and forgets those that ended long ago.
// An id is never given twice, so an old one cannot mean another command.
func (b *Background) reserve() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", ErrBackgroundClosed
	}
	// Those being started count as running, so that 20 calls at the same moment cannot become 40.
	running, ended := b.starting, 0
	for _, j := range b.jobs {
		if j.Running() {
			running++
		} else {
			ended++
		}
	}
	if running >= MaxBackground {
		return "", ErrBackgroundFull
	}
	kept := make([]*BackgroundJob, 0, len(b.jobs)+1)
	for _, j := range b.jobs {
		if ended > keptEnded && !j.Running() {
			ended--
			continue
		}
		kept = append(kept, j)
	}
	b.jobs = kept
	b.starting++
	b.next++
	return "bg_" + strconv.Itoa(b.next), nil
}

// start gives the command a pipe, or its terminal, as an input that stays open: a program that reads must wait, not see the end.
func (b *Background) start(id string, c Command) (*BackgroundJob, error) {
	c.OnOutput, c.Stdin = nil, nil
	var typed *os.File
	if !c.PTY {
		in, ours, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("no pipe for the command's input: %w", err)
		}
		defer in.Close() // only the command holds it then, so that writing fails once the command has ended
		c.Stdin, typed = in, ours
	}
	j, out, err := b.runner.start(c)
	if err != nil {
		if typed != nil {
			typed.Close()
		}
		return nil, err
	}
	if c.Stdin = nil; c.PTY {
		typed = j.hand
	}
	x := &BackgroundJob{ID: id, Command: c, Started: time.Now(), all: b, job: j, out: out, stdin: typed, done: make(chan struct{})}
	b.runner.wg.Go(x.watch)
	return x, nil
}

// watch waits for the end of the command and finds out how it ended. It is the only writer of how until done is closed, which
// is why it holds no lock.
func (j *BackgroundJob) watch() {
	var limit <-chan time.Time
	if j.Command.Timeout > 0 {
		t := time.NewTimer(j.Command.Timeout)
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-j.job.done:
	case <-limit:
		j.how.TimedOut = true
		j.all.runner.end(j.job)
	}
	j.out.settle(false)
	j.how.Took = time.Since(j.Started)
	j.how.Exit, j.how.Signal = exitOf(j.job.cmd.ProcessState)
	j.how.Left = j.all.runner.leave(j.job)
	j.stdin.Close() // of a pseudo-terminal too: what was printed has been read
	if box := j.Command.Sandbox; box != nil {
		j.how.Notes = box.Settle()
		if j.how.Exit >= 0 { // not ended by us
			out := Outcome{Exit: j.how.Exit, Output: j.out.result()}.ForSandbox()
			j.how.Stopped = box.Stopped(out)
			if passed := box.Passed(out); passed != "" {
				j.how.Notes = append(j.how.Notes, passed)
			}
		}
	}
	if j.job.cell != nil && j.how.Exit > 0 {
		out := Outcome{Exit: j.how.Exit, Output: j.out.result()}
		if place := j.job.cell.contained.Blamed(out.ForSandbox()); place != "" {
			j.how.Notes = append(j.how.Notes, "This command ran contained, since nobody was asked: it could read the project and the system only, and failed at "+place+".")
		}
	}
	close(j.done)
}

// Get finds a command by its id; nil when there is none, or it was forgotten long after its end.
func (b *Background) Get(id string) *BackgroundJob {
	for _, j := range b.all() {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// List gives the commands that run, and those whose end no Look has returned, the oldest first.
func (b *Background) List() []*BackgroundJob {
	var out []*BackgroundJob
	for _, j := range b.all() {
		if j.Running() || !j.isTold() {
			out = append(out, j)
		}
	}
	return out
}

// all is a copy, so that callers look at jobs without holding mu.
func (b *Background) all() []*BackgroundJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*BackgroundJob(nil), b.jobs...)
}

// Close ends everything, also what ended commands left running, and waits for it. Nothing starts afterwards.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.runner.Close()
}

// Done is closed when the command has ended.
func (j *BackgroundJob) Done() <-chan struct{} { return j.done }

// Ending is how the command ended. It may be called only after Done is closed: before, watch writes what this reads.
func (j *BackgroundJob) Ending() Ending {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.how
}

// Running reports whether the command has not ended.
func (j *BackgroundJob) Running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// isTold reports that Look has returned the end to some caller.
func (j *BackgroundJob) isTold() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told
}

// Look gives what was printed since the look before, after waiting for something new or the end. When ctx ends first
// it returns its error, and nothing counts as looked at.
// The output is cut like that of Run. Looks of several callers share one place: what one has seen the other does not get.
func (j *BackgroundJob) Look(ctx context.Context, wait time.Duration) (Look, error) {
	if wait > 0 && !j.await(ctx, wait) {
		return Look{}, ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	l := Look{Running: j.Running()}
	l.Output, j.seen = j.out.since(j.seen, !l.Running)
	if !l.Running {
		l.Ending, j.told = j.how, true
	}
	return l, nil
}

// await waits for new output or the end; false when ctx ended.
// After the first new byte it continues for gather, since programs print a line in several writes.
func (j *BackgroundJob) await(ctx context.Context, wait time.Duration) bool {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	var soon <-chan time.Time
	for {
		// Taken before fresh is asked: output that comes between the two closes this channel and is not missed.
		more := j.out.more()
		if soon == nil && j.out.fresh(j.lookedAt()) > 0 {
			soon = time.After(min(gather, wait))
		}
		select {
		case <-more:
		case <-soon:
			return true
		case <-j.done:
			return true
		case <-limit.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// lookedAt counts bytes from the start of the output.
func (j *BackgroundJob) lookedAt() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen
}

// Input types text into the command, and with eof closes its input then. What the program does not read within some
// seconds is not typed; the error says how much was.
// Errors are ErrBackgroundEnded, ErrInputClosed, that of ctx, or one that says how many bytes were typed.
func (j *BackgroundJob) Input(ctx context.Context, text string, eof bool) error {
	j.input.Lock()
	defer j.input.Unlock()
	switch {
	case !j.Running():
		return ErrBackgroundEnded
	case j.inputOver:
		return ErrInputClosed
	}
	if text != "" {
		_ = j.stdin.SetWriteDeadline(time.Now().Add(inputLimit))
		// A deadline in the past ends a write that waits for the program to read.
		stop := context.AfterFunc(ctx, func() { _ = j.stdin.SetWriteDeadline(time.Unix(1, 0)) })
		n, err := j.stdin.WriteString(text)
		stop()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the command reads no input now: it took %d of %d bytes in %v; the rest was not typed", n, len(text), inputLimit)
		case errors.Is(err, syscall.EPIPE):
			return ErrInputClosed
		case errors.Is(err, os.ErrClosed):
			return ErrBackgroundEnded
		default:
			return fmt.Errorf("after %d of %d bytes: %w", n, len(text), err)
		}
	}
	if !eof {
		return nil
	}
	if j.Command.PTY { // the key that means the end of input; what reads next may continue
		_, err := j.stdin.WriteString("\x04")
		return err
	}
	j.inputOver = true
	return j.stdin.Close()
}

// Kill ends the command and all it started: TERM, then KILL after Grace. It reports whether there was anything to end.
// It returns when nothing is left that can be ended.
func (j *BackgroundJob) Kill() bool {
	if !j.Running() && j.left() == 0 {
		return false
	}
	j.all.runner.end(j.job)
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	j.how.Left = 0
	return true
}

// left counts processes that outlived the command.
func (j *BackgroundJob) left() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.how.Left
}

// Line is the command's text in one line.
func (j *BackgroundJob) Line() string { return visible.Text(strings.TrimSpace(j.Command.Text)) }
