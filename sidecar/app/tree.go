package app

import (
	"sync"
	"time"
)

// How much of the project's tree a model is shown, how long making it may take, and how long it is good for the
// sessions that begin after it: sub-agents begin by the dozen.
const (
	sketchEntries = 120
	sketchTime    = 150 * time.Millisecond
	sketchFresh   = time.Second
)

// sketches are the trees just made, by directory.
type sketches struct {
	mu  sync.Mutex
	dir map[string]*sketch // guarded by mu
}

type sketch struct {
	mu   sync.Mutex
	text string    // guarded by mu
	made time.Time // guarded by mu
}
