package agent

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/permission"
)

// storeGrants keeps the grants of projects in the session store.
type storeGrants struct{ st *store.Store }

// Grants returns a store's grants in the form that the gate and "pillion permission" use.
func Grants(st *store.Store) permission.Grants { return storeGrants{st} }

// Add, List and Revoke convert between the store's type and permission's. The store does not import permission, so that programs that only
// read sessions can use it.
func (g storeGrants) Add(ctx context.Context, p permission.Grant) (permission.Grant, error) {
	got, err := g.st.AddGrant(ctx, store.Grant{Project: p.Project, Permission: p.Permission, Pattern: p.Pattern, Created: p.Created})
	return permission.Grant{ID: got.ID, Project: got.Project, Permission: got.Permission, Pattern: got.Pattern, Created: got.Created}, err
}

// List returns the grants of a project.
func (g storeGrants) List(ctx context.Context, project string) ([]permission.Grant, error) {
	all, err := g.st.Grants(ctx, project)
	if err != nil {
		return nil, err
	}
	out := make([]permission.Grant, len(all))
	for i, one := range all {
		out[i] = permission.Grant{ID: one.ID, Project: one.Project, Permission: one.Permission, Pattern: one.Pattern, Created: one.Created}
	}
	return out, nil
}

// Revoke removes a grant; permission.ErrNoGrant when there is none with this id.
func (g storeGrants) Revoke(ctx context.Context, id int64) error {
	err := g.st.RevokeGrant(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return permission.ErrNoGrant
	}
	return err
}
