package app

import (
	"sync"
	"time"
)

// Limits of the file tree that a model is shown: entries, the time that a turn waits for it, and how long it is reused by sessions that
// start after it (sub-agents start by the dozen).
const (
	treeEntries = 120
	treeTimeout = 150 * time.Millisecond
	treeMaxAge  = time.Second
)

// recentTrees caches the last tree of each directory.
type recentTrees struct {
	mu  sync.Mutex
	dir map[string]*recentTree // guarded by mu
}

// recentTree is the cached tree of one directory. mu is held while the tree is made, so that sessions that start together make it once.
type recentTree struct {
	mu   sync.Mutex
	text string    // guarded by mu
	made time.Time // guarded by mu
}
