package agent

import (
	"slices"
	"sync"
)

// waitingCalls are the calls of a session that wait for the person. They also count for the parents of a sub-agent's session, because the
// person looks at the outermost one.
type waitingCalls struct {
	above   *waitingCalls // the parent session's; nil: none
	changed func()        // called after each change, without the lock

	mu    sync.Mutex
	calls []string // guarded by mu; replaced, never changed in place
}

// add marks a call as waiting until remove is called.
func (w *waitingCalls) add(call string) {
	// Hold one lock at a time: no session's lock while its parent's is acquired.
	for ; w != nil; w = w.above {
		w.mu.Lock()
		w.calls = append(slices.Clone(w.calls), call)
		w.mu.Unlock()
		w.changed()
	}
}

// remove undoes one add, in this session and its parents.
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

// list returns the waiting calls. The slice is not changed later.
func (w *waitingCalls) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// Waiting marks a call outside a turn as waiting for the person until done is called.
func (w *waitingCalls) Waiting(call string) (done func()) {
	w.add(call)
	return func() { w.remove(call) }
}

// watchers holds functions that are called when the state or the queue of a session may have changed.
type watchers struct {
	mu  sync.Mutex
	all []*func() // guarded by mu; replaced, never changed in place
}

// Watch calls f whenever the results of Queue or State may have changed. f must not block and must not call Watch; it may be called
// concurrently. After stop returns, no further call begins.
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

// notify calls the watchers. The caller must hold no lock of the session, because watchers call Queue and State.
func (w *watchers) notify() {
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}
