package store

import (
	"context"
	"time"
)

// AddGrant remembers a permission for a project and returns when it is committed. Adding the same grant again changes nothing and returns
// the stored one.
func (s *Store) AddGrant(ctx context.Context, g Grant) (Grant, error) {
	if g.Created.IsZero() {
		g.Created = time.Now()
	}
	g.Project, g.Permission, g.Pattern = s.b.clean(g.Project), s.b.clean(g.Permission), s.b.clean(g.Pattern)
	err := s.do(ctx, func(tx tx) error {
		var created int64
		// The update changes nothing: it makes RETURNING give the stored grant, with the time of its first call.
		err := tx.QueryRow(`INSERT INTO grants(project, permission, pattern, created) VALUES (?,?,?,?)
			ON CONFLICT(project, permission, pattern) DO UPDATE SET pattern = excluded.pattern RETURNING id, created`,
			g.Project, g.Permission, g.Pattern, g.Created.UnixMicro()).Scan(&g.ID, &created)
		g.Created = unixMicro(created)
		return err
	})
	return g, err
}

// Grants lists the grants of a project ("" is all), the oldest first.
func (s *Store) Grants(ctx context.Context, project string) ([]Grant, error) {
	project = s.b.clean(project)
	var all []Grant
	err := s.reading(ctx, func(db db) error {
		all = nil
		// One statement serves both questions, so that it is prepared once.
		rows, err := db.Query(ctx, "SELECT id, project, permission, pattern, created FROM grants WHERE ? = '' OR project = ? ORDER BY id", project, project)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var g Grant
			var created int64
			if err := rows.Scan(&g.ID, &g.Project, &g.Permission, &g.Pattern, &created); err != nil {
				return err
			}
			g.Created = unixMicro(created)
			all = append(all, g)
		}
		return rows.Err()
	})
	return all, err
}

// RevokeGrant removes a grant and returns when that is committed: a revoked permission must not return after a crash. It returns
// ErrNotFound where there is none.
func (s *Store) RevokeGrant(ctx context.Context, id int64) error {
	return s.do(ctx, func(tx tx) error {
		res, err := tx.Exec("DELETE FROM grants WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return ErrNotFound
		}
		return nil
	})
}
