package lspbridge

import (
	"context"
	"fmt"
	"time"
)

// Limits on the memory that all servers of a project use together. Large servers take a gigabyte each, and
// their owner did not start them.
const (
	defaultMemory = 4 << 30          // bytes
	memoryEvery   = time.Minute      // at most so often they are measured: it reads /proc for every process
	spareFor      = 30 * time.Second // a server used within that time is not stopped
)

// stopOverBudget stops the server that has been unused longest while all together exceed Options.Memory. Where the
// memory of a process is unknown nothing is stopped.
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
	// When every server was used lately none is stopped, however much they use.
	if total <= f.o.Memory || idlest == nil {
		return
	}
	f.log.Info("servers are over their memory", "bytes", total, "budget", f.o.Memory)
	idlest.stop(context.Background(), fmt.Sprintf("the language servers use %d MB together", total>>20))
	f.mu.Lock()
	f.measured = time.Time{} // one may not be enough: the next start measures again
	f.mu.Unlock()
}
