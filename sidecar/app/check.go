package app

import (
	"context"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/check"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Check returns the verdict on a plan, from language servers of its own that end with it: the servers of the sessions have the project's
// present files, and a plan may be about another state. notice is called with what a person should know about the servers.
func (p *Workplace) Check(ctx context.Context, plan *check.Plan, conf *config.Config, notice func(text string)) change.Verdict {
	servers := lspbridge.New(lspbridge.Options{Root: plan.Dir, Servers: ServerConfigs(conf), Bin: lspbridge.CacheBins(p.Servers()),
		Trusted: conf.Trusted(), NoWatch: true, Idle: -1, Start: guard.Start, Notice: func(_, text string) { notice(text) }})
	defer func() {
		// Servers have two seconds to exit, also when the check itself was cancelled.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		servers.Close(end)
	}()
	return plan.Run(ctx, servers, notice)
}

// Review checks a change that a person named, for an editor: the problems that the language servers report, those of the changed lines
// first. target is the argument of /review. It fails when target names no change of the repository (a file that is not a patch, or plain
// words).
func (a *App) Review(ctx context.Context, cwd, target string) ([]check.Finding, error) {
	root := trust.RealPath(paths.Worktree(cwd))
	plan, err := check.Target(ctx, root, cwd, target, true)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	v := a.Place.Check(ctx, plan, a.ConfigOf(cwd), func(string) {}) // the session's own servers have reported the same
	return plan.Findings(v), nil
}

// Staged is check.Staged for the repository of a folder.
func (a *App) Staged(ctx context.Context, cwd string) (diff, earlier string, err error) {
	return check.Staged(ctx, paths.Worktree(cwd))
}

// NextEdit asks the language servers of a folder for the follow-up of an edit that a person made by hand. before is the file's text before
// that edit. It returns nil when there is none and when no server runs: none is started, because a person who types has not asked for
// anything.
func (a *App) NextEdit(ctx context.Context, cwd, path, before string) (*lspbridge.NextEdit, error) {
	m := a.Servers.of(paths.Worktree(cwd), a.ConfigOf(cwd))
	if m == nil || !m.Running() {
		return nil, nil
	}
	return m.NextEdit(ctx, path, before)
}
