package search

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// newest keeps the n newest of any number of files, and how many there were. It is safe for concurrent use.
type newest struct {
	n     int
	mu    sync.Mutex
	files []aged // guarded by mu; newest first, ties by path
	total int    // guarded by mu
}

type aged struct {
	path string
	time time.Time
}

func (a aged) compare(b aged) int {
	return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.path, b.path))
}

// add looks up the file's time. One that is gone since is not counted.
func (t *newest) add(path string) {
	if at, err := modTime(path); err == nil {
		t.put(aged{path, at})
	}
}

func (t *newest) put(a aged) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total++
	if len(t.files) == t.n && a.compare(t.files[t.n-1]) >= 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(t.files, a, aged.compare)
	t.files = slices.Insert(t.files, i, a)
	t.files = t.files[:min(len(t.files), t.n)]
}
