package app

import (
	"sync"
	"time"
)

// Limits of the tree that a model is shown: entries of the listing, the time that a turn waits for it, and how long
// it is reused by sessions that begin after it (sub-agents begin by the dozen).
const (
	treeEntries = 120
	treeTimeout = 150 * time.Millisecond
	treeMaxAge  = time.Second
)

// recentTrees are the trees made last, by directory.
type recentTrees struct {
	mu  sync.Mutex
	dir map[string]*recentTree // guarded by mu
}

// recentTree is one of them. mu is held while it is made, so that sessions that begin together make it once.
type recentTree struct {
	mu   sync.Mutex
	text string    // guarded by mu
	made time.Time // guarded by mu
}
