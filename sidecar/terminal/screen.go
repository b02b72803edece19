package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// screen is where a Terminal shows things: line after line (lineScreen), or above a prompt that stays open (liveScreen). Its
// methods are safe for concurrent use.
type screen interface {
	// print adds text. It may end in mid-line; what is printed next continues that line.
	print(text string)
	// endLine ends a line that is open.
	endLine()
	// tail shows the end of an answer that is not complete and may still look different; the next call replaces it. render makes
	// it for a number of columns, from any goroutine; nil: there is none.
	tail(render func(width int) string)
	// waitFor names what the person waits for; the zero activity is nothing.
	waitFor(activity)
	// spends gives the turn's tokens and US dollars so far.
	spends(input, output int, cost float64)
	// ask shows a question below everything else. A longer text replaces the beginning of itself.
	ask(question string)
	// askAgain shows the question again below what was printed meanwhile.
	askAgain()
	// answered takes the question away. echoed: the terminal itself has shown the answer.
	answered(text string, echoed bool)
	// width is the number of columns.
	width() int
	// close ends what the screen has started; nothing is printed after it.
	close()
}

// activity is what the person waits for.
type activity struct {
	what  string    // safe to print; "" is nothing
	since time.Time // when it began
	until time.Time // when it ends, where that is known
	turn  time.Time // when the turn began; zero: not in a turn
}

// clock is how long it has lasted, or how long it will where that is known. The rest is rounded up, so that it ends
// with 1s and not with 0s.
func (a activity) clock(now time.Time) string {
	if left := a.until.Sub(now); left > 0 {
		return fmt.Sprintf("%ds left", int((left + time.Second - 1).Seconds()))
	}
	return elapsed(now.Sub(a.since))
}

// elapsed words a duration in whole seconds: 5s, 2m05s.
func elapsed(d time.Duration) string {
	s := int(d.Seconds())
	if s < 60 {
		return fmt.Sprintf("%ds", s)
	}
	return fmt.Sprintf("%dm%02ds", s/60, s%60)
}

// spinner has one character for each drawing, in turn.
var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// ANSI styles. Only the sixteen colours that a terminal's theme defines are used, so that text is readable on every one.
const (
	bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	strike    = "9"
	red       = "31"
	green     = "32"
	yellow    = "33"
	blue      = "34"
	magenta   = "35"
	cyan      = "36"
)

// paint is a text in a style, an SGR parameter list such as "1;31" (ECMA-48). The text must be clean.
func paint(color bool, style, s string) string {
	if !color || style == "" || s == "" {
		return s
	}
	// a style ends at the line's end, so that a pager or a scroll-back never bleeds
	return "\x1b[" + style + "m" + strings.ReplaceAll(s, "\n", "\x1b[0m\n\x1b["+style+"m") + "\x1b[0m"
}

// Clean makes text from a model, a file or a command safe to print: control characters (escape sequences, carriage
// returns, bidirectional overrides) become visible instead of acting on the terminal.
func Clean(s string) string {
	if strings.IndexFunc(s, unsafe) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unsafe(r):
			b.WriteRune(r)
		case r == '\r':
			b.WriteString("␍")
		case r < 0x20:
			b.WriteRune(0x2400 + r) // Unicode's pictures of control characters
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return strings.ReplaceAll(b.String(), "␍\n", "\n") // a CRLF line end is not a surprise
}

// unsafe reports whether a character must not be printed as it is. RuneError stands for bytes that are not UTF-8,
// which a terminal in another encoding may act on.
func unsafe(r rune) bool {
	return visible.Acts(r) || r == utf8.RuneError
}

// cut shortens to n columns, counting a rune as one. A character of two columns makes the result wider than n, which
// is why it is used for words beside others and not for layout. n below 8 counts as 8.
func cut(s string, n int) string {
	if n < 8 {
		n = 8
	}
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
