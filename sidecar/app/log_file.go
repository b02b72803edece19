package app

import (
	"os"
	"path/filepath"
	"sync"
)

const maxLog = 8 << 20 // bytes of a log; with the one before it there are never more than twice as many

// logFile opens at the first write, so that a start that logs nothing touches nothing. When it has grown beyond max it
// is moved to .1, over the one before, and begun anew: at a start and while the process runs.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex
	f    *os.File // guarded by mu
	size int64    // guarded by mu
	err  error    // guarded by mu
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil && l.size > l.max {
		_ = l.f.Close()
		l.f = nil
	}
	if l.f == nil && l.err == nil {
		l.open()
	}
	if l.err != nil {
		return len(b), nil // no log is no reason to stop
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return n, err
}

// open moves what has grown too long away. Other processes may write to the same file: it is looked at anew, and they
// go on in the one that was moved until they notice by their own count. mu is held.
func (l *logFile) open() {
	if l.err = os.MkdirAll(filepath.Dir(l.path), 0o700); l.err != nil {
		return
	}
	info, err := os.Stat(l.path)
	if err == nil && info.Size() > l.max {
		_ = os.Rename(l.path, l.path+".1")
	}
	if l.f, l.err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); l.err != nil {
		return
	}
	l.size = 0
	if info, err := l.f.Stat(); err == nil {
		l.size = info.Size()
	}
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.f.Close()
		l.f = nil
	}
}
