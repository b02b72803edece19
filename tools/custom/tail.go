package custom

import (
	"strings"
	"sync"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

const maxTail = 16 << 10 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// last is the last line that says something.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(strings.ToValidUTF8(string(t.buf), ""))
	return cut(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), 300)
}

// cut shortens a text to n bytes at a character's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
