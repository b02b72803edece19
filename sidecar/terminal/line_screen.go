package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// lineScreen writes one thing after the other, as a program in a pipe does. On a terminal that can move its cursor a status
// line comes and goes at the end.
type lineScreen struct {
	out     io.Writer
	columns int
	color   bool
	raw     bool // the terminal is in raw mode while a question is open: it does not return to the first column by itself
	now     func() time.Time
	done    chan struct{} // closed when the status line's ticker has to end

	mu      sync.Mutex // guards what follows and the writing, which the ticker does too
	midLine bool       // the cursor is not at the start of a line
	// A status line is written without a line break, so that it can be erased in place.
	status   bool   // a status line is on the screen
	question string // the question on the screen, "" when there is none
	doing    activity
}

// newLineScreen starts the ticker of the status line where o.Live; close ends it.
func newLineScreen(o Options) *lineScreen {
	s := &lineScreen{out: o.Out, columns: o.Width, color: o.Color, now: o.Now, done: make(chan struct{})}
	_, s.raw = o.Keys.(TTY)
	if o.Live {
		go s.tick()
	}
	return s
}

// close erases the status line and ends its ticker. It may be called twice.
func (s *lineScreen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}

// width implements screen; it does not follow changes of the window.
func (s *lineScreen) width() int { return s.columns }

// print implements screen. A status line is erased first and drawn again by the ticker.
func (s *lineScreen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(text)
}

// write writes text that may end in mid-line. s.mu is held.
func (s *lineScreen) write(text string) {
	if text == "" {
		return
	}
	s.clear()
	if s.raw && s.question != "" {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	fmt.Fprint(s.out, text)
	// A style that ends behind the line break (paint) is not part of a line.
	s.midLine = !strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\x1b[0m")
}

// endLine implements screen.
func (s *lineScreen) endLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endOpenLine()
}

// endOpenLine is endLine for callers that hold s.mu.
func (s *lineScreen) endOpenLine() {
	if s.midLine {
		s.write("\n")
	}
}

// tail shows nothing: what was written cannot be taken back here.
func (s *lineScreen) tail(func(int) string) {}

// waitFor implements screen; the ticker draws the words once they have lasted a second.
func (s *lineScreen) waitFor(a activity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.what != "" && s.question == "" {
		s.endOpenLine() // the status never follows half a line
	}
	if a.what == "" {
		s.clear()
	}
	s.doing = a
}

// spends shows nothing: the figures are in the turn's last line.
func (s *lineScreen) spends(int, int, float64) {}

// ask implements screen. The cursor stays behind the question, where a typed line is echoed.
func (s *lineScreen) ask(question string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The keys of a question are added to it when they begin to count; only they are written then.
	if rest, more := strings.CutPrefix(question, s.question); more && s.question != "" {
		s.write(rest)
	} else {
		s.endOpenLine()
		s.write(question)
	}
	s.question = question
}

// answered implements screen. Without an echo it prints the answer, so that a key that was pressed in raw mode is
// seen.
func (s *lineScreen) answered(text string, echoed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.question = ""
	if echoed { // the terminal has shown the line, and its end
		s.midLine = false
		return
	}
	s.write(text)
	s.endOpenLine()
}

// askAgain repeats the question when something was printed below it meanwhile.
func (s *lineScreen) askAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.question != "" && !s.midLine {
		s.write(s.question)
	}
}

// clear takes the status line away. s.mu is held. The sequence is a carriage return and EL, which erases to the end
// of the line (ECMA-48).
func (s *lineScreen) clear() {
	if s.status {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.status = false
	}
}

// tick draws the status line, after a second of silence.
func (s *lineScreen) tick() {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		if waited := s.now().Sub(s.doing.since); s.doing.what != "" && waited >= time.Second && !s.midLine && s.question == "" {
			s.clear()
			text := fmt.Sprintf("%c %s  %s  (ctrl-c stops)", spinner[n%len(spinner)], s.doing.what, s.doing.clock(s.now()))
			// One column less than the screen: a full line would wrap, and clear could erase only its second half.
			fmt.Fprint(s.out, paint(s.color, dim, cut(text, s.columns-1)))
			s.status = true
		}
		s.mu.Unlock()
	}
}
