package app

import (
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/search"
)

// Finder knows what @ may mention.
func (a *App) Finder() *mention.Finder {
	return mention.New(mention.Options{
		Searcher: func(cwd string) *search.Searcher { return a.searcher(a.ConfigOf(cwd).Ripgrep) },
		Servers: func(cwd string) *lspbridge.Manager {
			if link := a.bridge(paths.Worktree(cwd), a.ConfigOf(cwd)); link != nil {
				return link.Manager
			}
			return nil
		},
		Resources: a.resources,
	})
}
