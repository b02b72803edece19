package files

import (
	"context"
	"slices"
	"sync"
)

// Locks serializes writers per real path within the process: sessions and subagents edit the same files. The zero value is ready.
// Writers of other processes are serialized by the journal.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock // guarded by mu
}

// lock is one path's entry in Locks.
type lock struct {
	ch   chan struct{} // holds one token while locked; a channel, because a mutex cannot be given up with a context
	refs int           // holders and waiters; guarded by Locks.mu; at 0 the entry is deleted, so the map does not grow
}

// Lock acquires the locks of all paths and returns the function that releases them. The paths must be real ones (see Real),
// or two names of one file would be two locks. They are acquired in sorted order, so two callers cannot wait for each
// other. When ctx ends first, no lock is held and the error is the context's. A caller must not lock a path it holds.
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
			// The caller no longer waits for p, and releases what it acquired before.
			l.put(p, false)
			unlock()
			return nil, ctx.Err()
		}
	}
	return unlock, nil
}

// get returns the lock of a path and counts the caller among its users; every get needs a put.
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

// put ends a caller's use of a lock, which it holds when locked is true. Receiving under mu cannot block: the holder's own token is
// in the channel.
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
