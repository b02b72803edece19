// Package app assembles the parts of a folder from its configuration: stores, models, tools, language servers, MCP servers, plugins, the
// agent's runtime. It is the only package in which the concrete parts meet; making an App opens and starts nothing. Editors reach it
// through packages editors and review; it knows neither connections nor the command line.
package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/skill"
)

// Options configure an App and say how its agent reaches a person.
type Options struct {
	Place *Workplace
	// Asker shows approval requests to the person, Questions the agent's own questions. Without Questions the question tool is not offered.
	Asker          permission.Asker
	Questions      tools.Questioner
	Editors        *editors.Registry // nil: no editor, files are read from and written to the disk
	Ephemeral      bool              // sessions are not stored, as for pillion tool call
	EditorProblems *editors.Problems // with editors: the diagnostics that they report
	NoLSP          bool
	NoMCP          bool                // no MCP server is started, whatever the settings say; for a call that needs none
	Hold           bool                // do not ask about proposals of drafts; they wait for pillion drafts land
	Verdict        builtin.VerdictMode // whether approval waits for the verdict of an edit
	Log            *slog.Logger
	Problems       func(lspbridge.FileReport) // called when problems have changed; nil: they are not followed live
	Notices        io.Writer                  // receives notices for a person at a terminal; nil: they go only to the log
}

// App holds the parts. The exported fields do not change after New. Each part has its own lock; there is no common one.
type App struct {
	O          Options
	Place      *Workplace
	Store      *store.Store
	grantStore *store.Store // stores the grants when Store is in memory only
	Grants     permission.Grants
	Models     *models.Models
	Runtime    *agent.Runtime
	Desk       *review.Desk

	Changes  *Changes
	Sessions *Sessions
	Servers  *LanguageServers
	MCP      *MCPServers
	Plugins  *Plugins
	Drafts   *Drafts
	External *ExternalAgents
	project  *project
	traces   *traces // nil: not traced

	// background is the context of work that nobody waits for, such as asynchronous hooks. Close cancels it by end.
	background context.Context
	end        context.CancelFunc
	refreshing sync.WaitGroup // KeepCatalogue's work
}

// New assembles the parts. Nothing is opened, connected or started before it is needed: `pillion models` must not
// open the session store, and a start must take milliseconds.
func New(o Options) *App {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{O: o, Place: o.Place}
	a.background, a.end = context.WithCancel(context.Background())
	if o.Ephemeral {
		a.Store = store.NewForgetful()
	} else {
		a.Store = store.New(a.Place.storePlace())
		// Events wait in this folder while a PostgreSQL server cannot store them.
		a.Store.SpoolIn(filepath.Join(a.Place.State, "spool"))
	}
	a.Grants = agent.Grants(a.Store)
	if o.Ephemeral && o.Asker != nil { // "always" is stored although the session is not
		a.grantStore = store.New(a.Place.storePlace())
		a.Grants = agent.Grants(a.grantStore)
	}
	a.Changes = &Changes{Blobs: &checkpoint.Blobs{Dir: filepath.Join(a.Place.State, "checkpoints")}, drafts: filepath.Join(a.Place.State, "drafts"), journal: &files.DirJournal{Dir: filepath.Join(a.Place.State, "journal")},
		log: o.Log, notices: o.Notices, ephemeral: o.Ephemeral}
	a.Sessions = &Sessions{app: a, locks: &files.Locks{}, envs: map[string]builtin.Env{}}
	a.Servers = &LanguageServers{app: a, by: map[string]*servers{}}
	a.project = &project{app: a, pages: instructionPages{version: a.Place.version}, finders: map[string]*skill.Finder{}, search: map[string]*search.Searcher{}}
	a.MCP, a.Plugins = newMCPServers(a), newPlugins(a)
	a.Drafts = &Drafts{app: a}
	a.Desk = review.NewDesk(KeptChanges{App: a})
	a.External = newExternalAgents(a)
	a.Models = models.New(models.Options{Config: a.ConfigOf, Env: os.Getenv, Keys: a.Place.Keys().All, Accounts: a.Place.Keys().Accounts, Access: access{a}, External: a.External})
	a.Runtime = agent.New(agent.Options{
		Store: a.Store, Models: a.Models, Grants: a.Grants, Asker: o.Asker, Questions: o.Questions, StateDir: a.Place.State, Log: o.Log,
		Configuration: configuration{a.Place}, Toolbox: toolbox{a}, Project: a.project, Plugins: a.Plugins, Changes: a.Changes, Drafts: a.Drafts, Secrets: keyHider{a.Place},
		Tracing: a.tracing(),
	})
	// Each needs the other; nothing runs before New returns.
	a.Changes.runtime = a.Runtime
	return a
}

// ConfigOf returns the configuration of a directory, at most 100 ms old: each tool call needs it several times.
func (a *App) ConfigOf(cwd string) *config.Config { return a.Place.recentConfig(cwd) }

// Rules returns the effective rules of an agent in a directory, in the order in which the gate reads them: the last match wins.
func (a *App) Rules(cwd, name string) permission.Ruleset {
	rules := a.Place.Rules(cwd)
	for _, x := range a.Runtime.Agents(cwd) {
		if x.Name == name {
			rules = append(rules, x.Rules...)
		}
	}
	return rules
}

// Finder returns a new search for what @ can mention: files, declarations, resources of MCP servers. The caller closes it.
func (a *App) Finder() *mention.Finder {
	return mention.New(mention.Options{
		Searcher: func(cwd string) *search.Searcher { return a.project.searcher(a.ConfigOf(cwd)) },
		Servers: func(cwd string) *lspbridge.Manager {
			if link := a.Servers.of(paths.Worktree(cwd), a.ConfigOf(cwd)); link != nil {
				return link.Manager
			}
			return nil
		},
		Resources: a.MCP.resources,
	})
}

// noticeIn sends a notice to every open session of a directory. Without one it is dropped: it is about the present state, which a later
// session notices itself.
func (a *App) noticeIn(cwd, level, text string) (told bool) {
	for _, s := range a.Runtime.Live() {
		if s.Info().Cwd == cwd {
			s.Notice(level, text)
			told = true
		}
	}
	return told
}

// KeepCatalogue fetches the catalogue of hosted models once a day, where the person's own settings say refresh_models, until Close. It
// returns at once: no request waits for it.
func (a *App) KeepCatalogue() {
	a.refreshing.Go(func() {
		a.Place.Catalogue.Keep(a.background, func() bool { return a.Place.own().Refresh }, func(err error) { a.O.Log.Info("the catalogue of models was not refreshed", "err", err) })
	})
}

// Close ends everything that was started, within two seconds: VS Code's extension kills a sidecar that takes more than three. The order
// matters: turns first, because they use the rest; the store last, because ending turns are stored.
func (a *App) Close() {
	// Not a caller's context, which has usually ended when the program exits.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := a.Runtime.Close(ctx); err != nil {
		a.O.Log.Error("closing sessions", "err", err)
	}
	a.end()
	var wait sync.WaitGroup
	wait.Go(a.External.close)
	wait.Go(a.Drafts.close)
	// Concurrently: each part may use all the remaining time, and they no longer depend on each other.
	a.Sessions.close(&wait)
	a.Servers.close(ctx, &wait)
	wait.Go(a.refreshing.Wait)
	wait.Go(func() { a.MCP.close(ctx) })
	wait.Go(a.Plugins.close)
	wait.Go(a.project.close)
	wait.Wait()
	a.traces.close()
	a.Changes.pruning.Wait()
	for _, st := range []*store.Store{a.Store, a.grantStore} {
		if st == nil {
			continue
		}
		if err := st.Close(); err != nil {
			a.O.Log.Error("closing the store", "err", err)
		}
	}
}
