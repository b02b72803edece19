package search

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// newest keeps the n newest of any number of files. It is safe for concurrent use.
type newest struct {
	n     int
	show  func(path string) bool // nil shows all; only asked about files that would be kept
	mu    sync.Mutex
	files []aged               // guarded by mu; newest first, ties by path
	last  atomic.Pointer[aged] // the oldest of files once there are n; most files are older and need no lock
}

type aged struct {
	path string
	time time.Time
}

func (a aged) compare(b aged) int {
	return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.path, b.path))
}

// add looks up the file's time. One that is gone since is left out.
func (t *newest) add(path string) {
	if at, err := modTime(path); err == nil {
		t.put(aged{path, at})
	}
}

// late reports whether a file of that time comes too late, whatever its path is.
func (t *newest) late(at time.Time) bool {
	last := t.last.Load()
	return last != nil && at.Before(last.time)
}

func (t *newest) put(a aged) {
	if last := t.last.Load(); last != nil && a.compare(*last) >= 0 || t.show != nil && !t.show(a.path) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := slices.BinarySearchFunc(t.files, a, aged.compare)
	if i == t.n {
		return
	}
	t.files = slices.Insert(t.files, i, a)
	t.files = t.files[:min(len(t.files), t.n)]
	if len(t.files) == t.n {
		last := t.files[t.n-1]
		t.last.Store(&last)
	}
}
