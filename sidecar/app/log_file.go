package app

import (
	"os"
	"path/filepath"
	"sync"
)

// maxLog is the size in bytes at which a log is rotated; with the previous one, logs take about twice as much.
const maxLog = 8 << 20

// logFile is a log that the first write opens, so that a start that logs nothing touches no file. A log larger than max bytes is renamed to
// .1, replacing the previous one, and a fresh one is begun. err is kept, so that a log that cannot be opened is not retried at every line.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex
	f    *os.File // guarded by mu
	size int64    // guarded by mu
	err  error    // guarded by mu
}

// Write implements io.Writer. It reports success even if the log cannot be opened: a full disk must not stop the agent.
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
		return len(b), nil
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return n, err
}

// open opens the file, after renaming one that is too large. Several processes write to one file (O_APPEND); the others continue in the
// renamed file until their own count exceeds max. The caller holds mu.
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

// close closes the file; a later write opens it again.
func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.f.Close()
		l.f = nil
	}
}
