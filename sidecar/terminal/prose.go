package terminal

import (
	"strings"
	"time"
	"unicode/utf8"
)

// prose tells an answer from a sentence, at one question whose keys are read from a terminal without a prompt (TTY). It has no clock of its own
// but time.Now: its owner waits as long as limit says and calls rest, or press with what was typed before that.
type prose struct {
	keys   string
	notice time.Duration // how long the question must have been on the screen
	came   time.Time     // when it appeared

	rested bool      // the keyboard has been quiet since the last key, and the question was there long enough
	held   byte      // answers unless another key follows soon (see lone); 0: none
	typing bool      // somebody types: a line of one key answers, not the key alone
	stale  bool      // the line was not begun at the question, or holds more than is in it
	line   string    // at most two keys of the line, while typing
	last   time.Time // the last key
}

// limit is how long nothing must be typed before rest is to be called; 0 is for ever.
func (p *prose) limit() time.Duration {
	switch {
	case p.held != 0:
		return lone
	case !p.rested:
		return max(quiet, p.notice-time.Since(p.came))
	}
	return 0
}

// rest returns the key that answers because no other followed, or 0: keys count from now on.
func (p *prose) rest() byte {
	p.rested = true
	return p.held
}

// press takes what was typed at once, and returns the key that answers, or 0.
func (p *prose) press(typed []byte) byte {
	held, rested, gap := p.held, p.rested, time.Since(p.last)
	p.held, p.rested, p.last = 0, false, time.Now()
	single := utf8.RuneCount(typed) == 1
	enter := single && (typed[0] == '\r' || typed[0] == '\n')
	switch {
	case typed[0] == '\x1b': // the sequence of a key, which types nothing
		return 0
	case p.typing:
	case enter:
		return held
	case held != 0, !single, gap < lone: // what began as an answer, or as nothing, goes on as a sentence; a paste is one too
		p.typing, p.stale = true, true
	case time.Since(p.came) < p.notice:
		p.typing = true
	default:
		if rested && len(typed) == 1 && strings.Contains(p.keys, string(typed)) {
			p.held = typed[0]
		}
		return 0
	}
	return p.insert(typed, enter)
}

// insert adds to the line. Enter after it answers; one that comes with other keys is part of a paste.
func (p *prose) insert(typed []byte, enter bool) byte {
	switch {
	case enter:
		line, stale := p.line, p.stale
		p.line, p.stale = "", false
		if !stale && len(line) == 1 && strings.Contains(p.keys, line) && time.Since(p.came) >= p.notice {
			return line[0]
		}
	case len(typed) > 1:
		end := strings.LastIndexAny(string(typed), "\r\n")
		p.line, p.stale = "", p.stale && end < 0 || end < len(typed)-1
	case typed[0] == 0x7f || typed[0] == '\b': // backspace
		p.line = p.line[:max(len(p.line)-1, 0)]
	case len(p.line) == 2:
		p.stale = true // backspaces are counted no further
	default:
		p.line += string(typed)
	}
	return 0
}
