package app

import (
	"context"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/search"
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

// sketch is the project's tree, so that a model knows what there is before it looks.
func (a *App) sketch(ctx context.Context, cwd string) string {
	a.sketches.mu.Lock()
	if a.sketches.dir == nil {
		a.sketches.dir = map[string]*sketch{}
	}
	s := a.sketches.dir[cwd]
	if s == nil {
		s = &sketch{}
		a.sketches.dir[cwd] = s
	}
	a.sketches.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.made) < sketchFresh {
		return s.text
	}
	ctx, cancel := context.WithTimeout(ctx, sketchTime)
	defer cancel()
	l, err := a.searcher(a.ConfigOf(cwd).Ripgrep).Tree(ctx, search.TreeQuery{Root: cwd, Limit: sketchEntries})
	if err != nil || l.Root == nil || l.Entries == 0 {
		return ""
	}
	s.text, s.made = l.Root.String(), time.Now()
	if l.More || l.Partial {
		s.text += "(and more)\n"
	}
	return s.text
}
