package main

import (
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/search"
)

// finder knows what @ may mention. end ends what it still lists.
func (a *app) finder() (f *Finder, end func()) {
	l := newListings(func(cwd string) *search.Searcher { return a.searcher(a.configOf(cwd).Ripgrep) })
	d := &declarations{names: l.names, ctx: l.ctx, kept: map[string]*index{}, bridge: func(cwd string) *lspbridge.Manager {
		if link := a.bridge(paths.Worktree(cwd), a.configOf(cwd)); link != nil {
			return link.Manager
		}
		return nil
	}}
	return &Finder{Names: l.names, Symbols: d.find, Resources: a.resources}, func() {
		l.close()
		d.wg.Wait()
	}
}
