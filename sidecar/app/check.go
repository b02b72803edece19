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

// Check gives the verdict on a plan by language servers of its own, which end with it: those of the sessions show the files
// of the project, and a plan may be about another state. notice gets what a person should know about the servers.
func (p *Workplace) Check(ctx context.Context, plan *check.Plan, conf *config.Config, notice func(text string)) change.Verdict {
	servers := lspbridge.New(lspbridge.Options{Root: plan.Dir, Servers: ServerConfigs(conf), Bin: lspbridge.CacheBins(p.Servers()),
		Trusted: conf.Trusted(), NoWatch: true, Idle: -1, Start: guard.Start, Notice: func(_, text string) { notice(text) }})
	defer func() {
		// Two seconds for servers to end by themselves, also when the check itself was cancelled.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		servers.Close(end)
	}()
	return plan.Run(ctx, servers)
}

// Review checks a change that a person named, for an editor: what the language servers say of it, those of its changed lines
// first. target is the argument of /review. It fails where that names no change of the repository (a file that is
// no patch, words).
func (a *App) Review(ctx context.Context, cwd, target string) ([]check.Finding, error) {
	root := trust.RealPath(paths.Worktree(cwd))
	plan, err := check.Target(ctx, root, cwd, target, true)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	v := a.Place.Check(ctx, plan, a.ConfigOf(cwd), func(string) {}) // the session's own servers have said it
	return plan.Findings(v), nil
}

// Staged is check.Staged for the repository of a folder.
func (a *App) Staged(ctx context.Context, cwd string) (diff, earlier string, err error) {
	return check.Staged(ctx, paths.Worktree(cwd))
}

// NextEdit asks the language servers of a folder what an edit that a person made by hand leaves to be done elsewhere. before is the file's
// text before that edit. The result is nil where nothing is left to do, and where no server runs: none is started, since a person who types
// has not asked for anything yet.
func (a *App) NextEdit(ctx context.Context, cwd, path, before string) (*lspbridge.NextEdit, error) {
	m := a.Servers.of(paths.Worktree(cwd), a.ConfigOf(cwd))
	if m == nil || !m.Running() {
		return nil, nil
	}
	return m.NextEdit(ctx, path, before)
}
