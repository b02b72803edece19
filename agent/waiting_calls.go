package agent

import (
	"slices"
	"sync"
)

// waitingCalls are the calls of a session that wait for the person. The sessions above a sub-agent wait as well: the person looks at
// the outermost one.
type waitingCalls struct {
	above   *waitingCalls // the parent session's; nil: none
	changed func()        // called after each change, without the lock

	mu    sync.Mutex
	calls []string // guarded by mu; replaced, never changed in place
}

// add notes that a call waits, until remove is called.
func (w *waitingCalls) add(call string) {
	// One lock at a time: none of a session is held while one of its parent is taken.
	for ; w != nil; w = w.above {
		w.mu.Lock()
		w.calls = append(slices.Clone(w.calls), call)
		w.mu.Unlock()
		w.changed()
	}
}

// remove undoes one add, in this session and in those above it.
func (w *waitingCalls) remove(call string) {
	for ; w != nil; w = w.above {
		w.mu.Lock()
		if i := slices.Index(w.calls, call); i >= 0 {
			w.calls = slices.Delete(slices.Clone(w.calls), i, i+1)
		}
		w.mu.Unlock()
		w.changed()
	}
}

// list are the calls that wait now. The slice is not changed later.
func (w *waitingCalls) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// Waiting says that a call outside a turn waits for the user, until done.
func (w *waitingCalls) Waiting(call string) (done func()) {
	w.add(call)
	return func() { w.remove(call) }
}

// watchers are called when the state or the queue of a session may say something else.
type watchers struct {
	mu  sync.Mutex
	all []*func() // guarded by mu; replaced, never changed in place
}

// Watch calls f whenever Queue or State may say something else. f must not block and must not call Watch; it may be
// called by several goroutines at once. After stop no call begins.
func (w *watchers) Watch(f func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(slices.Clone(w.all), &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = slices.DeleteFunc(slices.Clone(w.all), func(x *func()) bool { return x == &f })
	}
}

// notify calls the watchers. The caller must hold no lock of the session, because they read Queue and State.
func (w *watchers) notify() {
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}
