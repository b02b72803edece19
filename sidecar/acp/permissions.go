package acp

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// permissions answer _pillion/permission/*: the rules in force, and the grants.
type permissions struct {
	folders Folders
	grants  permission.Grants // nil: nothing is remembered
}

// rules are those of the session's present agent.
func (m *permissions) rules(es *editorSession) permission.Ruleset {
	info := es.Info()
	return m.folders.Rules(info.Cwd, info.Agent)
}

// wireRule is a rule for the wire.
func wireRule(r permission.Rule) protocol.PermissionRule {
	return protocol.PermissionRule{Permission: r.Permission, Pattern: r.Pattern, Action: string(r.Action), Origin: r.Origin}
}

// permissionList lists rules and grants; only grants have an id, and can be revoked. Rules come first, in their
// order, in which the last one that matches decides; the grants follow.
func (m *permissions) permissionList(ctx context.Context, es *editorSession, _ *protocol.PermissionListRequest) (*protocol.PermissionListResponse, error) {
	out := &protocol.PermissionListResponse{Rules: []protocol.PermissionRule{}}
	for _, r := range m.rules(es) {
		out.Rules = append(out.Rules, wireRule(r))
	}
	if m.grants == nil {
		return out, nil
	}
	grants, err := GrantsIn(ctx, m.grants, paths.Worktree(es.Info().Cwd))
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		out.Rules = append(out.Rules, protocol.PermissionRule{ID: strconv.FormatInt(g.ID, 10), Permission: g.Permission, Pattern: g.Pattern, Action: string(permission.Allow), Origin: "project"})
	}
	return out, nil
}

// permissionRevoke revokes a grant of this project or of every project.
func (m *permissions) permissionRevoke(ctx context.Context, es *editorSession, p *protocol.PermissionRevokeRequest) (*protocol.PermissionRevokeResponse, error) {
	id, err := strconv.ParseInt(p.ID, 10, 64)
	if err != nil {
		return nil, rpc.InvalidParams("id: %q is not the id of a grant", p.ID)
	}
	// Ids are numbers that can be guessed: one must not revoke another project's grant.
	grants, err := GrantsIn(ctx, m.grants, paths.Worktree(es.Info().Cwd))
	if err != nil {
		return nil, err
	}
	// A grant that is gone is not an error: two windows may revoke the same one.
	if !slices.ContainsFunc(grants, func(g permission.Grant) bool { return g.ID == id }) {
		return &protocol.PermissionRevokeResponse{}, nil
	}
	switch err := m.grants.Revoke(ctx, id); {
	case errors.Is(err, permission.ErrNoGrant):
		return &protocol.PermissionRevokeResponse{}, nil
	case err != nil:
		return nil, err
	}
	return &protocol.PermissionRevokeResponse{Revoked: true}, nil
}

// permissionExplain says what the rules decide about a pattern, and by which rule or grant.
func (m *permissions) permissionExplain(ctx context.Context, es *editorSession, p *protocol.PermissionExplainRequest) (*protocol.PermissionExplainResponse, error) {
	action, rule := m.rules(es).Evaluate(p.Permission, p.Pattern)
	out := &protocol.PermissionExplainResponse{Action: string(action)}
	if rule != nil {
		r := wireRule(*rule)
		out.Rule = &r
	}
	// A grant answers a question; it never overrules a rule that denies.
	if action == permission.Ask && m.grants != nil {
		grants, err := GrantsIn(ctx, m.grants, paths.Worktree(es.Info().Cwd))
		if err != nil {
			return nil, err
		}
		for _, g := range grants {
			// Evaluated like a rule, so that its pattern means the same as in the gate.
			granted := permission.Ruleset{{Permission: g.Permission, Pattern: g.Pattern, Action: permission.Allow, Origin: "project"}}
			if a, r := granted.Evaluate(p.Permission, p.Pattern); a == permission.Allow {
				w := wireRule(*r)
				w.ID = strconv.FormatInt(g.ID, 10)
				out.Action, out.Rule = string(a), &w
			}
		}
	}
	return out, nil
}

// GrantsIn are the grants that apply to a project: its own and those for every project. project "" returns all
// grants.
func GrantsIn(ctx context.Context, grants permission.Grants, project string) ([]permission.Grant, error) {
	list, err := grants.List(ctx, project)
	if err != nil || project == "" {
		return list, err
	}
	everywhere, err := grants.List(ctx, permission.Everywhere)
	return append(list, everywhere...), err
}
