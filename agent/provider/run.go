package provider

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// progress says how much of an answer has been read. run decides by it how long it still waits.
type progress int

const (
	more     progress = iota // the answer is not complete
	finished                 // the answer is complete; usage may follow, for which run waits finishGrace
	done                     // the closing event: nothing after it counts
)

// answer turns one stream's events into ours. It holds the state of one answer, so an adapter makes a new one for each Stream.
type answer interface {
	// event takes one event's data, which it must not keep. A syntax error is errBadEvent.
	event(data []byte) (progress, error)
	// end is called once, after done or at the end of the stream, to emit what closes the answer. It returns errCut
	// when the answer is not whole.
	end() error
}

var (
	errBadEvent = errors.New("an event of the stream is not JSON")
	errCut      = errors.New("the stream ended before the answer did")
	errIdle     = errors.New("the stream went silent")
	errLate     = errors.New("the stream did not begin")
)

// strayDone reports the [DONE] of Chat Completions, which gateways send at the end of other formats as well.
func strayDone(data []byte) bool { return len(data) > 0 && data[0] == '[' }

// finishGrace is how long run waits for the usage after the answer itself is complete. Without it the cost of the answer is unknown,
// which is not a reason to let a person wait longer.
const finishGrace = 5 * time.Second

// emitError marks an error of the caller's emit, which goes back as it is.
type emitError struct{ err error }

func (e emitError) Error() string { return e.err.Error() }
func (e emitError) Unwrap() error { return e.err }

// emitter calls emit and marks its errors, so that fail gives them back as they are.
type emitter struct {
	emit func(Event) error
}

// longPiece is the size in bytes above which a piece of an answer is passed on in smaller ones. Some servers send an answer in one piece,
// and everything behind emit works while pieces come.
const longPiece = 256 << 10

func (e *emitter) send(ev Event) error {
	if ev.Type == EventText || ev.Type == EventThinking {
		for len(ev.Text) > longPiece {
			n := longPiece
			for n > longPiece-utf8.UTFMax && !utf8.RuneStart(ev.Text[n]) {
				n--
			}
			first := ev
			first.Text, first.Signature = ev.Text[:n], ""
			if err := e.emit(first); err != nil {
				return emitError{err}
			}
			ev.Text = ev.Text[n:]
		}
	}
	if err := e.emit(ev); err != nil {
		return emitError{err}
	}
	return nil
}

// run opens a stream and feeds its events to a. open makes the request and returns the response, whose body run closes.
// run returns an *Error, or the error of emit; nil only after a.end has accepted the answer as complete.
func (b *base) run(ctx context.Context, model string, open func(context.Context) (*http.Response, error), a answer) error {
	// The cause of the cancellation tells fail whether the person cancelled or one of run's own limits was reached.
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watched{wait: b.cfg.Idle}
	idle := time.AfterFunc(b.cfg.First, func() {
		if w.began.Load() {
			cancel(errIdle)
		} else {
			cancel(errLate)
		}
	})
	resp, err := open(ctx)
	if err != nil {
		idle.Stop()
		// fail comes before cancel: afterwards ctx would look as if the person had cancelled.
		err = b.fail(ctx, model, err)
		cancel(nil)
		return err
	}
	w.r, w.idle = resp.Body, idle
	clean := false // the closing event was read: the connection can be reused
	defer func() {
		idle.Stop()
		if clean {
			drain(resp.Body, cancel)
			return
		}
		cancel(nil)
		_ = resp.Body.Close()
	}()
	events := newSSEReader(w)
	defer events.close()
	next := events.next
	// The first byte of the body counts more than its Content-Type: proxies and small servers send streams labelled as JSON or as pages,
	// and JSON labelled as streams. A body that is JSON comes from a server that does not stream, or is a failure with status 200.
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch first := events.first(); {
	case first == '{', first == '[':
		next = newJSONValues(events, first).next
	case first == '<':
		return b.fail(ctx, model, errNoAPI)
	}
	state, none := more, true
	for {
		data, last, err := next()
		if err != nil {
			if none && kind == "text/html" && ctx.Err() == nil {
				return b.fail(ctx, model, errNoAPI)
			}
			// After the answer is complete only its usage was missing: going without it is not a failure.
			if ctx.Err() != nil && !(state == finished && context.Cause(ctx) == errIdle) {
				return b.fail(ctx, model, err)
			}
			// The stream ended without a closing event. The adapter knows whether the answer was whole all the same.
			end := a.end()
			if end == errCut && err != io.EOF {
				end = cutBy(err)
			}
			return b.fail(ctx, model, end)
		}
		none = false
		p, err := a.event(data)
		if err != nil {
			if errors.Is(err, errBadEvent) && last {
				err = a.end() // the cut went through this event
			}
			return b.fail(ctx, model, err)
		}
		if p == done {
			clean = true
			return b.fail(ctx, model, a.end())
		}
		// Only the first finished event starts the grace period: later ones must not prolong it.
		if p == finished && state == more {
			state = finished
			w.wait = finishGrace
			idle.Reset(finishGrace)
		}
	}
}

// watched is the response body; each read restarts the idle timer. began tells a stream that went silent from one that never began: the
// limits differ (Config.Idle and First), and so do the messages for the person.
type watched struct {
	r    io.Reader
	idle *time.Timer
	wait time.Duration

	began atomic.Bool
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.began.Store(true)
	// During the grace period keep-alives must not restart the timer, or a server that sends them for ever would hold the answer open.
	if w.wait != finishGrace {
		w.idle.Reset(w.wait)
	}
	return n, err
}

var draining atomic.Int32 // streams whose connection is being kept for the next request

// drain reads the few bytes after the closing event, so that the connection can be reused for the next step. It works in the background
// and gives up after 200 ms or 16 KiB, on a server that keeps sending.
func drain(body io.ReadCloser, cancel context.CancelCauseFunc) {
	// 16 is as many idle connections as sharedTransport keeps for one host; a connection beyond that would be closed anyway.
	if draining.Add(1) > 16 {
		draining.Add(-1)
		cancel(nil)
		_ = body.Close()
		return
	}
	go func() {
		defer draining.Add(-1)
		giveUp := time.AfterFunc(200*time.Millisecond, func() { cancel(nil) })
		defer giveUp.Stop()
		_, _ = io.CopyN(io.Discard, body, 16<<10)
		_ = body.Close()
		cancel(nil)
	}()
}
