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
	keptEnded     = 20                    // how many ended commands are kept for Look; reserve drops older ones
	gather        = 30 * time.Millisecond // how long Look, if it had to wait, collects further output
	inputLimit    = 5 * time.Second       // how long Input waits for the program to read
)

// Background runs commands that continue while the agent does other things. The zero value is ready. Close ends all commands and the
// processes that they started.
//
//	j, err := background.Start(run.Command{Text: "npm run dev", Dir: dir})
//	look, err := j.Look(ctx, 5*time.Second)
//	err = j.Input(ctx, "q\n", false)
//	j.Kill()
type Background struct {
	runner Runner

	mu       sync.Mutex
	jobs     []*BackgroundJob // guarded by mu; the oldest first
	next     int              // guarded by mu; the number in the last ID
	starting int              // guarded by mu; commands that are reserved and not in jobs yet
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
	done  chan struct{} // closed when the command has ended and how is set

	input     sync.Mutex // one writer at a time
	inputOver bool       // guarded by input

	mu   sync.Mutex
	seen int64 // guarded by mu; bytes of output that Look has returned
	told bool  // guarded by mu; Look has returned the end

	how Ending // set by watch until done is closed; afterwards guarded by mu, since Kill changes Left
}

// Ending is how a background command ended.
type Ending struct {
	Exit     int    // exit code; -1 when a signal ended it
	Signal   string // name of the signal that ended it
	TimedOut bool
	Left     int // number of processes that it left running
	Took     time.Duration
	Notes    []string // what else the model should know: what the sandbox or containment did
	Stopped  string   // which restriction of the sandbox may have made it fail; empty: none
}

// Look is what a command printed since the previous Look, and its state.
type Look struct {
	Output  Output
	Running bool
	Ending  Ending // set if Running is false
}

// Errors of Start and Input.
var (
	ErrBackgroundFull   = fmt.Errorf("%d commands run in the background already, which is the limit; end one first", MaxBackground)
	ErrBackgroundClosed = errors.New("the session has ended, so nothing is started any more")
	ErrBackgroundEnded  = errors.New("the command has ended; nothing reads the input")
	ErrInputClosed      = errors.New("the command's input is closed; nothing reads what is typed")
)

// Start starts a command. It ignores OnOutput and Stdin; Timeout, if set, ends the command. A start may take long, and Close must not
// wait for it, so Start reserves a place first and does not hold mu while the process starts. The error is ErrBackgroundFull,
// ErrBackgroundClosed, or says why the command could not be started.
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
	// Close was called after the reservation. It ends this job only if the runner had it already, so Kill makes sure.
	if err == nil && closed {
		j.Kill()
		return nil, ErrBackgroundClosed
	}
	return j, err
}

// reserve takes an id and a place for a command, and drops commands that ended long ago. An id is never used twice, so an old id cannot
// name another command.
func (b *Background) reserve() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", ErrBackgroundClosed
	}
	// Commands that are being started count as running, so that concurrent calls cannot exceed the limit.
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

// start starts a command whose input, a pipe or its terminal, stays open: a program that reads waits for Input and gets no EOF.
func (b *Background) start(id string, c Command) (*BackgroundJob, error) {
	c.OnOutput, c.Stdin = nil, nil
	var typed *os.File
	if !c.PTY {
		in, ours, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("no pipe for the command's input: %w", err)
		}
		defer in.Close() // then only the command holds the reading end, and writing fails once the command has ended
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

// watch waits for the end of the command and sets how. Until it closes done, nothing else uses how, so it needs no lock.
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
	j.stdin.Close() // on a pseudo-terminal this closes the output too, which has been read by now
	if box := j.Command.Sandbox; box != nil {
		j.how.Notes = box.Settle()
		if j.how.Exit >= 0 { // not ended by a signal
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

// Get returns the command with an id; nil if there is none, or if it ended so long ago that reserve has dropped it.
func (b *Background) Get(id string) *BackgroundJob {
	for _, j := range b.all() {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// List returns the commands that run, and those whose end no Look has returned yet, the oldest first.
func (b *Background) List() []*BackgroundJob {
	var out []*BackgroundJob
	for _, j := range b.all() {
		if j.Running() || !j.isTold() {
			out = append(out, j)
		}
	}
	return out
}

// all returns a copy of jobs, so that callers need not hold mu.
func (b *Background) all() []*BackgroundJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*BackgroundJob(nil), b.jobs...)
}

// Close ends all commands, and the processes that ended commands left running, and waits for them. Start fails afterwards.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.runner.Close()
}

// Done is closed when the command has ended.
func (j *BackgroundJob) Done() <-chan struct{} { return j.done }

// Ending returns how the command ended. It must not be called before Done is closed, because watch writes the value until then.
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

// isTold reports that a Look has returned the end of the command.
func (j *BackgroundJob) isTold() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told
}

// Look returns what the command printed since the previous Look. If wait is not 0, it first waits that long at most for new output or
// the end of the command. If ctx is done before that, it returns the error of ctx, and the next Look returns the same output. Long
// output is cut like that of Run. All callers share one position: what one Look has returned, no other returns.
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

// await waits for new output, the end of the command or the end of wait; it is false if ctx is done first. After the first new byte it
// waits for gather, since programs may print one line in several writes.
func (j *BackgroundJob) await(ctx context.Context, wait time.Duration) bool {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	var soon <-chan time.Time
	for {
		// The channel comes first: output that arrives before the call of fresh closes it, and so is not missed.
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

// lookedAt is how many bytes of the output Look has returned.
func (j *BackgroundJob) lookedAt() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen
}

// Input writes text to the command's input; with eof it then closes the input. If the program does not read all of it within
// inputLimit, the rest is not written. The error is ErrBackgroundEnded, ErrInputClosed, that of ctx, or says how many bytes
// were written.
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
		// A deadline in the past makes a blocked write return.
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
	if j.Command.PTY { // Ctrl+D: ends the input of the program that reads now; a later one can still read
		_, err := j.stdin.WriteString("\x04")
		return err
	}
	j.inputOver = true
	return j.stdin.Close()
}

// Kill ends the command and all processes that it started: TERM, then KILL after Grace. It returns when none is left that can be ended,
// and reports whether there were any.
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

// left is the number of processes that the command left running.
func (j *BackgroundJob) left() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.how.Left
}

// Line returns the command's text on one line, with control characters made visible.
func (j *BackgroundJob) Line() string { return visible.Text(strings.TrimSpace(j.Command.Text)) }
