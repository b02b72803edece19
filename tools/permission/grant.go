package permission

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Grant is a remembered "always": calls of this permission that the pattern covers are not asked again in the
// project. It never outweighs a configured deny.
type Grant struct {
	ID         int64
	Project    string // absolute path of the worktree root, or Everywhere
	Permission string
	Pattern    string
	Created    time.Time
}

// Everywhere is the Project of a grant that counts in every project.
const Everywhere = "*"

// Scope says in one word where the grant counts: the origin of the rule it is.
func (g Grant) Scope() string {
	if g.Project == Everywhere {
		return string(ScopeEverywhere)
	}
	return string(ScopeProject)
}

// Grants is where project grants are kept. Implementations are safe for concurrent use.
type Grants interface {
	// Add remembers g and returns it with its ID. The same project, permission and pattern is kept once.
	Add(ctx context.Context, g Grant) (Grant, error)
	// List returns the grants of a project, oldest first; of all projects when project is empty.
	List(ctx context.Context, project string) ([]Grant, error)
	// Revoke forgets a grant. An unknown id is ErrNoGrant.
	Revoke(ctx context.Context, id int64) error
}

// ErrNoGrant: there is no grant with this id.
var ErrNoGrant = errors.New("no such permission grant; `pillion permission list` shows them")

// MemoryGrants keeps grants for the life of the process. The zero value is ready.
type MemoryGrants struct {
	mu   sync.Mutex
	last int64
	list []Grant
}

// Add implements Grants.
func (m *MemoryGrants) Add(_ context.Context, g Grant) (Grant, error) {
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

// List implements Grants.
func (m *MemoryGrants) List(_ context.Context, project string) ([]Grant, error) {
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

// Revoke implements Grants.
func (m *MemoryGrants) Revoke(_ context.Context, id int64) error {
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
