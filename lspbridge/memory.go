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

// weigh stops the server that has been unused longest while all together exceed Options.Memory. Where the
// memory of a process is unknown nothing is stopped.
func (m *Manager) weigh() {
	m.mu.Lock()
	if time.Since(m.weighed) < memoryEvery || m.o.Memory < 0 {
		m.mu.Unlock()
		return
	}
	m.weighed = time.Now()
	m.mu.Unlock()
	var total int64
	var idlest *slot
	var since time.Time
	for _, s := range m.running() {
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
	if total <= m.o.Memory || idlest == nil {
		return
	}
	m.log.Info("servers are over their memory", "bytes", total, "budget", m.o.Memory)
	idlest.stop(context.Background(), fmt.Sprintf("the language servers weigh %d MB together", total>>20))
	m.mu.Lock()
	m.weighed = time.Time{} // one may not be enough: the next start measures again
	m.mu.Unlock()
}
