package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// smallHeap is what the heap may grow to, in bytes, before it is collected, however little of it lives. Go's own
// minimum of 4 MB makes a small sidecar collect several times for each edit of a large file: a fifth of its time.
const smallHeap = 32 << 20

// heapPace is how often this process collects its heap, of which there is one.
var heapPace pace

// pace adjusts GOGC to the heap; see heapPercent. The zero value adjusts nothing before tune.
type pace struct {
	turns atomic.Int64 // prompts that are being answered

	mu   sync.Mutex
	on   bool // guarded by mu
	last int  // guarded by mu; GOGC as it is
}

// tuneHeap collects a small heap less often, and a heap of long texts more often. Memory in use at most doubles. A GOGC in the environment
// wins.
func tuneHeap() {
	if os.Getenv("GOGC") == "" {
		heapPace.tune()
	}
}

// tune adjusts GOGC now and after each collection.
func (p *pace) tune() {
	p.mu.Lock()
	p.on = true
	p.mu.Unlock()
	var again func(*sentinel)
	again = func(*sentinel) {
		p.adjust()
		runtime.SetFinalizer(new(sentinel), again) // runs after the next collection, in the one goroutine for finalizers
	}
	again(nil)
}

// sentinel is unreachable at once, so its finalizer runs after each collection: Go has no other call-back for that.
type sentinel struct{ _ *sentinel }

// adjust sets GOGC by what the last collection has found.
func (p *pace) adjust() {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(s)
	percent := heapPercent(s[0].Value.Uint64(), s[1].Value.Uint64(), p.turns.Load())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on && percent != p.last {
		p.last = percent
		debug.SetGCPercent(percent)
	}
}

// begin counts a turn. The first of several makes room for their garbage at once: the collection after which it would be made is the one
// to be spared.
func (p *pace) begin() {
	if n := p.turns.Add(1); n == 2 || n%8 == 0 {
		p.adjust()
	}
}

// end counts a turn less. The room that it had is given back by the next collection.
func (p *pace) end() { p.turns.Add(-1) }

// Where several turns run at once, each makes garbage of its own, and a collection searches what all sessions keep.
const (
	turnRoom  = 4 << 20 // bytes that may be allocated between two collections for each turn beside the first
	mostTurns = 24      // turns that count
)

// leastRoom is how much may always be allocated between two collections, in bytes, whatever lives.
const leastRoom = 8 << 20

// heapPercent is GOGC for a heap of which live bytes survived, in steps, since a change stops the world: up to 400 for a small one, and
// for a larger one half of what has to be searched for pointers (scan, in bytes), all of it for a very large one. Texts have no pointers,
// so they cost a collection nothing: where a few texts of 32 MB are most of the heap, it is collected after every 8 MB, and the copies
// that they leave behind are reused instead of adding up.
//
// Turns beside the first add to it: what they took goes back to the system when they have ended (releaseMemory).
func heapPercent(live, scan uint64, turns int64) int {
	live = max(live, 1<<20)
	scan = min(scan, live)
	room := scan / 2
	switch {
	case live < smallHeap/2:
		room = min(smallHeap-live, 4*live)
	case live >= 4*smallHeap:
		room = scan
	}
	room = max(room, leastRoom) + uint64(min(max(turns-1, 0), mostTurns))*turnRoom
	p := room * 100 / live
	step := uint64(50)
	if p < step {
		step = 5
	}
	return int(min(max(p/step*step, step), 1000))
}
