package search

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// newest keeps the n newest of any number of files. It is safe for concurrent use.
type newest struct {
	n     int
	show  func(path string) bool // nil shows all; only asked about files that would be kept
	mu    sync.Mutex
	files []aged // guarded by mu; newest first, ties by path
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

func (t *newest) put(a aged) {
	t.mu.Lock()
	late := len(t.files) == t.n && a.compare(t.files[t.n-1]) >= 0
	t.mu.Unlock()
	if late || t.show != nil && !t.show(a.path) {
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
}
