package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// ANSI styles.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (t *Terminal) paint(style, s string) string { return paint(t.Color, style, s) }

func paint(color bool, style, s string) string {
	if !color || style == "" || s == "" {
		return s
	}
	// a style ends at the line's end, so that a pager or a scroll-back never bleeds
	return "\x1b[" + style + "m" + strings.ReplaceAll(s, "\n", "\x1b[0m\n\x1b["+style+"m") + "\x1b[0m"
}

// print writes text that may end in mid-line. Callers hold mu.
func (t *Terminal) print(s string) {
	if s == "" {
		return
	}
	t.clear()
	fmt.Fprint(t.Out, s)
	t.midLine = !strings.HasSuffix(s, "\n") && !strings.HasSuffix(s, "\n\x1b[0m")
}

func (t *Terminal) line(s string) { t.print(s + "\n") }

func (t *Terminal) newline() {
	if t.midLine {
		t.print("\n")
	}
	t.thinking = false
}

// again repeats the question when something was printed below it meanwhile.
func (t *Terminal) again() {
	if t.prompt != "" && !t.midLine {
		t.print(t.prompt)
	}
}

// wait names what the person waits for; the status line shows it after a second of silence.
func (t *Terminal) wait(what string) {
	if t.waiting != what || what == "" {
		t.since, t.until = t.Now(), time.Time{}
	}
	t.waiting = what
}

func (t *Terminal) clear() {
	if t.status {
		fmt.Fprint(t.Out, "\r\x1b[K")
		t.status = false
	}
}

func (t *Terminal) tick() {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for n := 0; ; n++ {
		select {
		case <-t.done:
			return
		case <-ticker.C:
		}
		t.mu.Lock()
		if waited := t.Now().Sub(t.since); t.waiting != "" && waited >= time.Second && !t.midLine && t.prompt == "" {
			t.clear()
			text := fmt.Sprintf("%c %s  %s  (ctrl-c stops)", frames[n%len(frames)], Clean(t.rel(t.waiting)), t.clock(waited))
			fmt.Fprint(t.Out, t.paint(dim, cut(text, t.Width-1)))
			t.status = true
		}
		t.mu.Unlock()
	}
}

// clock is how long it has lasted, or how long it will where that is known.
func (t *Terminal) clock(waited time.Duration) string {
	if left := t.until.Sub(t.Now()); left > 0 {
		return fmt.Sprintf("%ds left", int((left + time.Second - 1).Seconds()))
	}
	return fmt.Sprintf("%ds", int(waited.Seconds()))
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
	return strings.ReplaceAll(b.String(), "␍\n", "\n") // a CRLF line end is no surprise
}

func unsafe(r rune) bool {
	return visible.Acts(r) || r == utf8.RuneError
}

// cut shortens to n columns, counting a rune as one.
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
