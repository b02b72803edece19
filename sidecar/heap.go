package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is what the heap may grow to, in bytes, before it is collected, however little of it lives. Go's own
// minimum of 4 MB makes a small sidecar collect several times for each edit of a large file: a fifth of its time.
const smallHeap = 32 << 20

// tuneHeap collects a small heap less often and leaves a large one to Go's own pace: memory in use at most doubles.
// A GOGC in the environment wins.
func tuneHeap() {
	if os.Getenv("GOGC") != "" {
		return
	}
	var tune func(*sentinel)
	last := 0
	tune = func(*sentinel) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if p := heapPercent(live[0].Value.Uint64()); p != last {
			last = p
			debug.SetGCPercent(p)
		}
		runtime.SetFinalizer(new(sentinel), tune) // runs after the next collection, in the one goroutine for finalizers
	}
	tune(nil)
}

// sentinel is unreachable at once, so its finalizer runs after each collection: Go has no other call-back for that.
type sentinel struct{ _ *sentinel }

// heapPercent is GOGC for a heap of which live bytes survived, in steps, since a change stops the world: up to 400 for a
// small one, 50 for one that a long session or a slow editor makes, 100 for what is larger.
func heapPercent(live uint64) int {
	const step = 50
	p := smallHeap*100/max(live, 1<<20) - 100
	switch {
	case live >= 4*smallHeap:
		p = 100
	case live >= smallHeap/2:
		p = 50
	}
	return int(min(max(p/step*step, 50), 400))
}
