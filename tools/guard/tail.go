package guard

import (
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
	if len(s) > maxLast {
		s = strings.ToValidUTF8(s[:maxLast], "") + "…"
	}
	return s
}
