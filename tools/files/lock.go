package files

import (
	"context"
	"slices"
	"sync"
)

// Locks serialises writers per real path within the process. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock // guarded by mu
}

type lock struct {
	ch   chan struct{} // holds one token while locked
	refs int
}

// Lock takes the locks of all paths (real ones, see Real), in an order that cannot deadlock, and returns what
// releases them. It gives up with the context.
func (l *Locks) Lock(ctx context.Context, paths ...string) (unlock func(), err error) {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	var got []string
	unlock = func() {
		for _, p := range got {
			l.put(p, true)
		}
		got = nil
	}
	for _, p := range paths {
		k := l.get(p)
		select {
		case k.ch <- struct{}{}:
			got = append(got, p)
		case <-ctx.Done():
			l.put(p, false)
			unlock()
			return nil, ctx.Err()
		}
	}
	return unlock, nil
}

func (l *Locks) get(p string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[p]
	if k == nil {
		k = &lock{ch: make(chan struct{}, 1)}
		l.held[p] = k
	}
	k.refs++
	return k
}

func (l *Locks) put(p string, locked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.held[p]
	if locked {
		<-k.ch
	}
	if k.refs--; k.refs == 0 {
		delete(l.held, p)
	}
}
