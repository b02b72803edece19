package terminal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// liveScreen is the part of a terminal above a prompt that stays open (Composer). Any goroutine may write to it; the composer's
// program draws what has changed. It is the keyboard too: while the program runs no one else may read it.
type liveScreen struct {
	color bool
	now   func() time.Time
	// changed has an element when there is something to draw. Writers never wait for the program: it may be waiting for them.
	changed chan struct{}
	over    chan struct{} // closed when the program has ended

	mu         sync.Mutex // guards what follows
	lines      []string   // complete lines that are not on the screen yet
	open       string     // a line that is not complete
	unfinished func(int) string
	doing      activity
	in, out    int     // tokens of the turn
	cost       float64 // of the turn, in US dollars
	question   string  // what ask was given
	awaited    *awaited
	outside    *outside
	ended      bool // the program is to end
	columns    int  // of the terminal
}

// awaited is an answer that is waited for. Whoever asks makes it and reads the channels; the composer's focus writes
// to them.
type awaited struct {
	keys   string        // one of these keys; "": a line of text
	notice time.Duration // how long it must have been on the screen before keys count
	ready  chan struct{} // closed when keys begin to count
	key    chan byte     // has room for the answer
	line   chan string   // has room for the answer
}

// outside is something that needs the terminal for itself: an editor. The composer's program steps aside while it
// runs.
type outside struct {
	run  func() error
	done chan error // has room for the error
}

// newLiveScreen makes a screen of 80 columns, until the program has taken the first picture.
func newLiveScreen(color bool, now func() time.Time) *liveScreen {
	return &liveScreen{color: color, now: now, changed: make(chan struct{}, 1), over: make(chan struct{}), columns: 80}
}

// change changes the state and has it drawn. f runs under the lock and must not call back.
func (s *liveScreen) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // what is announced already includes this
	}
}

// print implements screen. Text without a line break stays in open until its line is complete: what went above the
// prompt cannot be changed any more.
func (s *liveScreen) print(text string) {
	if text == "" {
		return
	}
	s.change(func() {
		// The renderer measures a tab as nothing, and a line that is wider than it thinks breaks everything below it.
		lines := strings.Split(s.open+strings.ReplaceAll(text, "\t", "    "), "\n")
		s.lines = append(s.lines, lines[:len(lines)-1]...)
		s.open = lines[len(lines)-1]
	})
}

// endLine implements screen. A line that has no width, such as the end of a style alone, is dropped.
func (s *liveScreen) endLine() {
	s.change(func() {
		if ansi.StringWidth(s.open) > 0 {
			s.lines = append(s.lines, s.open)
		}
		s.open = ""
	})
}

// tail implements screen; the program calls render for each drawing, because the width may have changed.
func (s *liveScreen) tail(render func(int) string) { s.change(func() { s.unfinished = render }) }

// waitFor implements screen; the composer draws it with its spinner.
func (s *liveScreen) waitFor(a activity) { s.change(func() { s.doing = a }) }

// spends implements screen.
func (s *liveScreen) spends(input, output int, cost float64) {
	s.change(func() { s.in, s.out, s.cost = input, output, cost })
}

// ask implements screen.
func (s *liveScreen) ask(question string) { s.change(func() { s.question = question }) }

// askAgain does nothing: the question stays below what is printed.
func (s *liveScreen) askAgain() {}

// answered leaves the question with its answer among the lines above.
func (s *liveScreen) answered(text string, _ bool) {
	s.change(func() {
		if s.question != "" {
			s.lines = append(s.lines, strings.Split(s.question+Clean(text), "\n")...)
		}
		s.question = ""
	})
}

// resized takes over the width of the terminal, at once: what is printed from now on is wrapped for it, and cannot be wrapped again.
func (s *liveScreen) resized(columns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.columns = columns
}

// width implements screen.
func (s *liveScreen) width() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns
}

// close does nothing: the conversation ends the composer.
func (s *liveScreen) close() {}

// Key implements Keys; see focus for which keys count. The composer's foot says when Enter is needed.
func (s *liveScreen) Key(ctx context.Context, keys string, notice time.Duration, ready func(enter bool)) (byte, error) {
	a := s.await(keys, notice)
	defer s.forget(a)
	for quiet := a.ready; ; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.over: // the conversation was ended, which is not a yes
			return 'q', nil
		case <-quiet:
			quiet = nil
			ready(false)
		case k := <-a.key:
			return k, nil
		}
	}
}

// Line implements Keys.
func (s *liveScreen) Line(ctx context.Context) (string, error) {
	a := s.await("", quiet)
	defer s.forget(a)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-s.over:
		return "", nil
	case text := <-a.line:
		return text, nil
	}
}

// Discard implements Keys: there is nothing to forget, because what was typed is in the prompt.
func (s *liveScreen) Discard() {}

// Suspend implements Keys. It returns when f has ended, with its error, or with context.Canceled when the
// conversation ends first.
func (s *liveScreen) Suspend(f func() error) error {
	o := &outside{f, make(chan error, 1)}
	s.change(func() { s.outside = o })
	select {
	case err := <-o.done:
		return err
	case <-s.over:
		return context.Canceled
	}
}

// await makes the question that the keys go to; the caller must call forget. The channels have room for one answer,
// so that the program never waits for the question.
func (s *liveScreen) await(keys string, notice time.Duration) *awaited {
	a := &awaited{keys: keys, notice: notice, ready: make(chan struct{}), key: make(chan byte, 1), line: make(chan string, 1)}
	s.change(func() { s.awaited = a })
	return a
}

// forget takes a question away, unless a later one has taken its place.
func (s *liveScreen) forget(a *awaited) {
	s.change(func() {
		if s.awaited == a {
			s.awaited = nil
		}
	})
}

// picture is what the composer draws of a liveScreen at one moment.
type picture struct {
	lines    []string // to go above, for good
	tail     string
	working  activity
	spent    string
	question string
	awaited  *awaited
	outside  *outside
	ended    bool
}

// take is the picture now; its lines and the outside program are handed over. A caller that drops the picture loses
// these lines.
func (s *liveScreen) take(columns int) picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := picture{lines: s.lines, working: s.doing, spent: spending(s.in, s.out, s.cost), question: s.question, awaited: s.awaited, outside: s.outside, ended: s.ended}
	p.tail = s.open
	if s.unfinished != nil {
		p.tail = s.unfinished(columns)
	}
	s.lines, s.outside = nil, nil
	return p
}

// spending words tokens and US dollars; empty when nothing was spent.
func spending(in, out int, cost float64) string {
	if in+out == 0 {
		return ""
	}
	s := fmt.Sprintf("%s in, %s out", thousands(in), thousands(out))
	if cost > 0 {
		s += fmt.Sprintf(" · $%.4f", cost)
	}
	return s
}

// thousands is a number of tokens in at most four characters and a k.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	if n < 100_000 {
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%dk", n/1000)
}
