package lspbridge

import (
	"fmt"
	"time"
)

// Limits on the memory that all servers of a project use together. Large servers take a gigabyte each, and the person did not start them.
const (
	defaultMemory = 4 << 30          // bytes
	memoryEvery   = time.Minute      // time between measurements, each of which reads /proc for every process
	spareFor      = 30 * time.Second // a server that was used within this time is not stopped
	scarceIdle    = time.Minute      // an unused server is stopped after this time, if that is less than Options.Idle, where the machine has little memory left
)

// idleTime is how long a server may be unused now.
func (f *fleet) idleTime() time.Duration {
	if f.o.Idle > scarceIdle && f.scarce() {
		return scarceIdle
	}
	return f.o.Idle
}

// stopOverBudget stops the least recently used server while all together exceed Options.Memory. Where the memory of processes is unknown,
// nothing is stopped.
func (f *fleet) stopOverBudget() {
	f.mu.Lock()
	if time.Since(f.measured) < memoryEvery || f.o.Memory < 0 {
		f.mu.Unlock()
		return
	}
	f.measured = time.Now()
	f.mu.Unlock()
	var total int64
	var idlest *slot
	var since time.Time
	for _, s := range f.running() {
		c := s.current()
		if c == nil || c.proc == nil {
			continue
		}
		total += groupMemory(c.proc.pid)
		s.mu.Lock()
		used := s.used
		s.mu.Unlock()
		if time.Since(used) > spareFor && (idlest == nil || used.Before(since)) {
			idlest, since = s, used
		}
	}
	// Servers that were all used lately keep running, however much they use.
	if total <= f.o.Memory || idlest == nil {
		return
	}
	f.log.Info("servers are over their memory", "bytes", total, "budget", f.o.Memory)
	if !idlest.stopIfUnused(spareFor, fmt.Sprintf("the language servers use %d MB together", total>>20)) {
		return // a question waits for it, which makes it the one used last
	}
	f.mu.Lock()
	f.measured = time.Time{} // one may not be enough, so the next start measures again
	f.mu.Unlock()
}
