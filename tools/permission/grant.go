package permission

import (
	"context"
	"errors"
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

// Scope says in one word where the grant counts. It becomes the Origin of the grant's rule, which people see as the reason.
func (g Grant) Scope() string {
	if g.Project == Everywhere {
		return string(ScopeEverywhere)
	}
	return string(ScopeProject)
}

// Grants stores project grants. Implementations are safe for concurrent use.
type Grants interface {
	// Add stores g and returns it with its ID. The same project, permission and pattern is stored once.
	Add(ctx context.Context, g Grant) (Grant, error)
	// List returns the grants of a project, oldest first; of all projects when project is empty.
	List(ctx context.Context, project string) ([]Grant, error)
	// Revoke deletes a grant. The error for an unknown id is ErrNoGrant.
	Revoke(ctx context.Context, id int64) error
}

// ErrNoGrant is the error for an id that no grant has.
var ErrNoGrant = errors.New("no such permission grant; `pillion permission list` shows them")
