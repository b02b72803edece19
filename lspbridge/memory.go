package lspbridge

import (
	"context"
	"fmt"
	"time"
)

// What all servers of a project may weigh together before those that nobody needs now are stopped.
const (
	defaultMemory = 4 << 30          // bytes
	memoryEvery   = time.Minute      // how often they are weighed, at most
	spareFor      = 30 * time.Second // used so lately a server is needed
)

// weigh stops the longest unused servers while all of them together are over the budget. Without a word on how much a
// process weighs nothing is stopped.
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
	m.weighed = time.Time{} // the next one that starts weighs again
	m.mu.Unlock()
}
