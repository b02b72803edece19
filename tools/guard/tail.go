package guard

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Tail keeps the end of what a program says on standard error: when the program fails, its last line is the best reason to show.
// It is safe for concurrent use; the zero value is ready.
type Tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

const (
	maxTail = 16 << 10 // bytes that are kept
	maxLast = 300      // bytes of the last line that are shown
)

// Write keeps the last 16 KiB and never fails, so that the program is not stopped by a broken pipe.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxTail; over > 0 {
		// Moved to the front of the same memory: reslicing would keep all that was ever written.
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// Last is the last line that is not blank, at most 300 bytes of it, without bytes that are not UTF-8; "" for none. It may
// hold terminal sequences: whoever shows it makes it visible.
func (t *Tail) Last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(strings.ToValidUTF8(string(t.buf), ""))
	s = strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
	return shortened(s)
}

// errorLine matches lines in which programs name the reason of a failure; noise matches lines after it that look alike, of npm and Node.
var (
	errorLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:\w*error|panic|fatal|exception|cannot|not found|denied|failed)\b`)
	})
	noise = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)complete log of this run|^\s+at |^\s*(?:throw|code|errno|syscall)\b`)
	})
)

// Reason is the line that says best why the program failed: the last one that names an error, else Last. After it programs print how they
// are used, Node its version, npm where its log is.
func (t *Tail) Reason() string {
	t.mu.Lock()
	lines := strings.Split(strings.ToValidUTF8(string(t.buf), ""), "\n")
	t.mu.Unlock()
	for _, s := range slices.Backward(lines) {
		if errorLine().MatchString(s) && !noise().MatchString(s) {
			return shortened(strings.TrimSpace(s))
		}
	}
	return t.Last()
}

// shortened cuts a line at maxLast bytes.
func shortened(s string) string {
	if len(s) > maxLast {
		return strings.ToValidUTF8(s[:maxLast], "") + "…"
	}
	return s
}
