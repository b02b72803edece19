// Package app assembles the parts of a folder from its configuration: stores, models, tools, language servers, MCP servers,
// plugins, the agent's runtime. It is the one place where concrete parts meet; making an App opens and starts nothing.
// Editors reach it through packages editors and review; it knows no connection and no command line.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/skill"
)

// Options say who sits in front of the agent.
type Options struct {
	Place     *Workplace
	Asker     permission.Asker
	Questions tools.Questioner
	Editors   *editors.Registry // nil: no editor, files are read from and written to the disk
	Ephemeral bool              // nothing is stored: scripts
	Theirs    *editors.Problems // with editors: what they say is wrong with files
	NoLSP     bool
	Verdict   builtin.VerdictMode // what the verdict means to Asker
	Log       *slog.Logger
	Problems  func(lspbridge.FileReport) // where changed problems go; nil: nobody listens
	Notices   io.Writer                  // what a person at a terminal should know; nil: only the log
}

// App is the one place where concrete parts meet. Making it opens and starts nothing.
type App struct {
	O       Options
	Place   *Workplace
	Store   *store.Store
	Grants  permission.Grants
	kept    *store.Store // of the grants, where store is forgotten
	Models  *models.Models
	Runtime *agent.Runtime
	journal files.Journal
	Blobs   *checkpoint.Blobs
	Desk    *review.Desk
	locks   *files.Locks

	traces  *traces // nil: not traced
	pages   instructionPages
	MCP     *mcpServers
	custom  *customHosts
	recover sync.Once
	prune   sync.Once
	pruning sync.WaitGroup
	trees   map[string]*checkpoint.Tree // guarded by mu; by worktree root

	sketches sketches

	mu      sync.Mutex
	finders map[string]*skill.Finder    // guarded by mu; by the places they look in
	bridges map[string]*servers         // guarded by mu; by worktree root, and whether it is trusted
	search  map[string]*search.Searcher // guarded by mu; by configured ripgrep
	envs    map[string]builtin.Env      // guarded by mu; by session
}

func New(o Options) *App {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{O: o, Place: o.Place, locks: &files.Locks{}, bridges: map[string]*servers{}, search: map[string]*search.Searcher{}, envs: map[string]builtin.Env{}, finders: map[string]*skill.Finder{}}
	if o.Ephemeral {
		a.Store = store.NewForgetful()
	} else {
		a.Store = store.New(a.Place.storePlace())
	}
	a.Grants = agent.Grants(a.Store)
	if o.Ephemeral && o.Asker != nil { // its sessions are forgotten, what a person allows for good is not
		a.kept = store.New(a.Place.storePlace())
		a.Grants = agent.Grants(a.kept)
	}
	a.journal = &files.DirJournal{Dir: filepath.Join(a.Place.State, "journal")}
	a.Blobs = &checkpoint.Blobs{Dir: filepath.Join(a.Place.State, "checkpoints")}
	a.Desk = review.NewDesk(KeptChanges{App: a})
	a.Models = models.New(models.Options{Config: a.ConfigOf, Env: os.Getenv, Keys: a.Place.Keys().All})
	a.pages.version = a.Place.version
	a.MCP, a.custom = newMCPServers(a), newCustomHosts(a)
	a.Runtime = agent.New(agent.Options{
		Store: a.Store, Models: a.Models, Grants: a.Grants, Asker: o.Asker, Questions: o.Questions, StateDir: a.Place.State, Log: o.Log,
		Configuration: configuration{a}, Toolbox: toolbox{a}, Project: projectContext{a}, Plugins: plugins{a}, Changes: changeKeeper{a}, Secrets: hider{a.Place},
		Tracing: a.tracing(),
	})
	return a
}

// ConfigOf is asked many times in each step of a turn.
func (a *App) ConfigOf(cwd string) *config.Config { return a.Place.lately(cwd) }

// Rules are the effective ones of an agent, in the order the gate judges them.
func (a *App) Rules(cwd, name string) permission.Ruleset {
	rules := a.Place.Rules(cwd)
	for _, x := range a.Runtime.Agents(cwd) {
		if x.Name == name {
			rules = append(rules, x.Rules...)
		}
	}
	return rules
}

// Env is what the tools of a session share; it lasts as long as the session's read state must.
func (a *App) Env(s agent.SessionInfo) builtin.Env {
	a.mu.Lock()
	env, ok := a.envs[s.ID]
	a.mu.Unlock()
	if ok {
		return env
	}
	c := a.ConfigOf(s.Cwd)
	root := paths.Worktree(s.Cwd)
	env = builtin.Env{
		Cwd: s.Cwd, Root: root, Extra: s.Extra, StateDir: a.Place.State, Own: []string{a.Place.User}, Home: a.Place.Home,
		Tracker: &files.Tracker{}, Locks: a.locks, Journal: a.journal, Search: a.searcher(c.Ripgrep), Format: formatter(root, c),
		Skills: a.skills(s.Cwd, root, c), SubAgents: a.subAgents(s.Cwd), Verdict: a.O.Verdict,
		Shell: a.shell(c, s), Web: a.webOptions(c),
	}
	if a.O.Editors != nil {
		env.Buffers = a.O.Editors.Files(s.ID)
		env.Applier = a.O.Editors.Applier(s.ID, Disk{Writer: builtin.NewWriter(env)})
	}
	env.Commands = a.watch(root, env.Search, env.Buffers)
	link := a.bridge(root, c)
	if link != nil {
		env.Bridge = link.Manager
		if a.O.Theirs != nil {
			env.Bridge = editors.NewBridge(link.Manager, root, env.Buffers, a.O.Theirs)
		}
	}
	a.mu.Lock()
	if had, ok := a.envs[s.ID]; ok { // made twice at once: the first one counts
		a.mu.Unlock()
		return had
	}
	a.envs[s.ID] = env
	a.mu.Unlock()
	if link != nil {
		for _, text := range link.hold(s.ID) {
			a.tell(link, text)
		}
	}
	return env
}

// Ended ends what a session's commands left running, and lets go of what was kept for it.
func (a *App) Ended(session string) {
	a.mu.Lock()
	env, ok := a.envs[session]
	delete(a.envs, session)
	links := slices.Collect(maps.Values(a.bridges))
	a.mu.Unlock()
	for _, link := range links {
		link.release(session)
	}
	a.MCP.ended(session)
	a.Models.Forget(session)
	if ok {
		env.Shell.Close()
	}
}

// KeptChanges are the app's change sets: written through the session's own locks and editor, texts beside the sessions.
type KeptChanges struct{ App *App }

// Files implements ChangeStore.
func (k KeptChanges) Files(session string) review.Files {
	s, ok := k.App.Runtime.Session(session)
	if !ok {
		return nil
	}
	return builtin.NewWriter(k.App.Env(s.Info()))
}

// Load implements ChangeStore.
func (k KeptChanges) Load(set *change.Set) (*change.Set, error) { return k.App.Blobs.Load(set) }

// searcher is shared by sessions: it looks for rg once.
func (a *App) searcher(ripgrep string) *search.Searcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.search[ripgrep]
	if s == nil {
		s = search.New(search.Options{Ripgrep: ripgrep})
		a.search[ripgrep] = s
	}
	return s
}

// shell is how the commands of a session run. What they leave running ends with it.
func (a *App) shell(c *config.Config, s agent.SessionInfo) builtin.BashOptions {
	o := builtin.BashOptions{Shell: c.Shell, Runner: &run.Runner{}, Background: &run.Background{}, Sandbox: builtin.SandboxSettings{
		Mode: c.Sandbox, Network: c.SandboxNetwork, AutoAllow: c.SandboxAutoAllow, Writable: c.SandboxWritable,
	}}
	o.More = func(ctx context.Context, dir string, call *tools.Call) map[string]string {
		if h := a.custom.of(s.Cwd); h != nil && h.Has(ctx, "shell.env") {
			return h.ShellEnv(ctx, dir, call.SessionID, call.CallID)
		}
		return nil
	}
	if a.O.Editors == nil {
		return o // nobody watches
	}
	// An editor knows a sub-agent's terminals as those of the session it has open.
	a.mu.Lock()
	defer a.mu.Unlock()
	if parent, ok := a.envs[s.Parent]; ok && s.Parent != "" && parent.Shell.Terminals != nil {
		o.Terminals, o.Lent = parent.Shell.Terminals, true
	} else {
		o.Terminals = &run.Terminals{}
	}
	return o
}

// Terminals are a session's.
func (a *App) Terminals(session string) *run.Terminals {
	s, ok := a.Runtime.Session(session)
	if !ok {
		return nil
	}
	return a.Env(s.Info()).Shell.Terminals
}

// formatter runs after edits only where the configuration asks for it: a text that comes out other than it was
// accepted is nothing to surprise people with.
func formatter(root string, c *config.Config) builtin.Formatter {
	if !c.Formatter.On {
		return nil
	}
	o := builtin.FormatOptions{Root: root, Detect: true, Project: c.Trusted()}
	for _, name := range slices.Sorted(maps.Keys(c.Formatter.By)) {
		d := c.Formatter.By[name]
		o.Rules = append(o.Rules, builtin.FormatRule{Name: name, Command: d.Command, Extensions: d.Extensions, Env: d.Environment, Disabled: d.Disabled})
	}
	return builtin.NewFormatter(o)
}

// Disk writes a set in the encodings its files have.
type Disk struct{ Writer *builtin.Writer }

func (d Disk) Apply(ctx context.Context, set *change.Set) error { return d.Writer.WriteDisk(ctx, set) }

// RecoverOnce ends what a crash left half-done, before the first tool of this process can look at a file.
func (a *App) RecoverOnce(ctx context.Context) {
	a.recover.Do(func() {
		done, err := files.Recover(ctx, a.journal)
		if err != nil {
			a.O.Log.Error("recovery", "err", err)
			if a.O.Notices != nil {
				fmt.Fprintln(a.O.Notices, "pillion: a change that was interrupted earlier could not be ended:", err)
			}
		}
		for _, r := range done {
			a.O.Log.Warn("recovered an interrupted change", "what", r)
			if a.O.Notices != nil {
				fmt.Fprintln(a.O.Notices, "pillion: a change that was interrupted earlier:", r)
			}
		}
	})
}

// bridge is the language servers' manager of a worktree, nil where they are switched off.
func (a *App) bridge(root string, c *config.Config) *servers {
	if a.O.NoLSP || c.LSP.Set && !c.LSP.On {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := root
	if c.Trusted() { // a folder may come to be trusted while we run; servers started before stay as they are
		key += "\x00trusted"
	}
	if m := a.bridges[key]; m != nil {
		return m
	}
	o := lspbridge.Options{Root: root, Servers: ServerConfigs(c), Log: a.O.Log, Trusted: c.Trusted(), Bin: lspbridge.CacheBins(a.Place.Servers()), Start: guard.Start}
	if a.O.Editors != nil {
		o.Buffer = func(path string) (string, bool) {
			b, ok := a.O.Editors.AnyBuffer(path)
			return b.Text, ok
		}
		o.Unsaved = a.O.Editors.Unsaved
	}
	o.Diagnostics = a.O.Problems
	link := &servers{uses: map[string]func(){}}
	o.Notice = func(_, text string) { a.tell(link, text) }
	o.ApplyEdit = func(ctx context.Context, server, label string, edits []lspbridge.FileEdit) error {
		return a.applyEdit(ctx, link, server, label, edits)
	}
	link.Manager = lspbridge.New(o)
	a.bridges[key] = link
	return link
}

// Touched says to the language servers that a buffer has changed, so that what is told of its problems follows.
func (a *App) Touched(path string) {
	a.mu.Lock()
	links := slices.Collect(maps.Values(a.bridges))
	a.mu.Unlock()
	for _, l := range links {
		l.Touched(path)
	}
}

func ServerConfigs(c *config.Config) map[string]lspbridge.ServerConfig {
	out := map[string]lspbridge.ServerConfig{}
	for id, s := range c.LSP.By {
		out[id] = lspbridge.ServerConfig{Command: s.Command, Extensions: s.Extensions, Env: s.Env, Initialization: json.RawMessage(s.Initialization), Settings: json.RawMessage(s.Settings),
			Roots: s.Roots, Share: s.Share, Disabled: s.Disabled}
	}
	return out
}

// Problems is what is still wrong in a project, for the end of a turn. ok is false when no server has been asked.
func (a *App) Problems(ctx context.Context, cwd string) (left []change.Problem, ok bool) {
	m := a.bridge(paths.Worktree(cwd), a.ConfigOf(cwd))
	left = []change.Problem{}
	if m == nil || !m.Running() { // what was not needed for the turn is not started for its last line
		return left, false
	}
	for _, f := range m.ProjectDiagnostics(ctx) {
		if f.Certainty != change.Fresh && f.Certainty != change.Partial {
			continue
		}
		ok = true
		for _, p := range f.Items {
			if p.IsError() && paths.Within(cwd, p.Path) {
				left = append(left, p)
			}
		}
	}
	return left, ok
}

// Close ends everything that was started: turns, then servers, then the store.
func (a *App) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := a.Runtime.Close(ctx); err != nil {
		a.O.Log.Error("closing sessions", "err", err)
	}
	a.mu.Lock()
	bridges, envs := a.bridges, a.envs
	a.bridges, a.envs = map[string]*servers{}, map[string]builtin.Env{}
	a.mu.Unlock()
	var wait sync.WaitGroup
	for _, env := range envs { // of sessions that could not be closed in time
		wait.Go(env.Shell.Close)
	}
	for _, m := range bridges {
		wait.Go(func() { m.Close(ctx) })
	}
	wait.Go(func() { a.MCP.close(ctx) })
	wait.Go(a.custom.close)
	wait.Wait()
	a.traces.close()
	a.pruning.Wait()
	for _, st := range []*store.Store{a.Store, a.kept} {
		if st == nil {
			continue
		}
		if err := st.Close(); err != nil {
			a.O.Log.Error("closing the store", "err", err)
		}
	}
}
