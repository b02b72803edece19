package permission

import (
	"context"
	"sync"
)

// memoryGrants keeps grants for the life of the process. The zero value is ready.
type memoryGrants struct {
	mu   sync.Mutex
	last int64
	list []Grant
}

func (m *memoryGrants) Add(_ context.Context, g Grant) (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, have := range m.list {
		if have.Project == g.Project && have.Permission == g.Permission && have.Pattern == g.Pattern {
			return have, nil
		}
	}
	m.last++
	g.ID = m.last
	m.list = append(m.list, g)
	return g, nil
}

func (m *memoryGrants) List(_ context.Context, project string) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Grant
	for _, g := range m.list {
		if project == "" || g.Project == project {
			out = append(out, g)
		}
	}
	return out, nil
}

func (m *memoryGrants) Revoke(_ context.Context, id int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, g := range m.list {
		if g.ID == id {
			m.list = append(m.list[:i:i], m.list[i+1:]...)
			return nil
		}
	}
	return ErrNoGrant
}
