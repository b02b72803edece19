package main

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

// appOptions say who sits in front of the agent.
type appOptions struct {
	place     *workplace
	asker     permission.Asker
	questions tools.Questioner
	editors   *editors.Registry // nil: no editor, files are read from and written to the disk
	ephemeral bool              // nothing is stored: scripts
	theirs    *editors.Problems // with editors: what they say is wrong with files
	noLSP     bool
	log       *slog.Logger
	problems  func(lspbridge.FileReport) // where changed problems go; nil: nobody listens
	notices   io.Writer                  // what a person at a terminal should know; nil: only the log
}

// app is the one place where concrete parts meet. Making it opens and starts nothing.
type app struct {
	o       appOptions
	place   *workplace
	store   *store.Store
	grants  permission.Grants
	kept    *store.Store // of the grants, where store is forgotten
	models  *models.Models
	runtime *agent.Runtime
	journal files.Journal
	blobs   *checkpoint.Blobs
	desk    *review.Desk
	locks   *files.Locks

	traces  *traces // nil: not traced
	pages   instructionPages
	mcp     *mcpServers
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

func newApp(o appOptions) *app {
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	a := &app{o: o, place: o.place, locks: &files.Locks{}, bridges: map[string]*servers{}, search: map[string]*search.Searcher{}, envs: map[string]builtin.Env{}, finders: map[string]*skill.Finder{}}
	if o.ephemeral {
		a.store = store.NewForgetful()
	} else {
		a.store = store.New(a.place.storePlace())
	}
	a.grants = agent.Grants(a.store)
	if o.ephemeral && o.asker != nil { // its sessions are forgotten, what a person allows for good is not
		a.kept = store.New(a.place.storePlace())
		a.grants = agent.Grants(a.kept)
	}
	a.journal = &files.DirJournal{Dir: filepath.Join(a.place.state, "journal")}
	a.blobs = &checkpoint.Blobs{Dir: filepath.Join(a.place.state, "checkpoints")}
	a.desk = review.NewDesk(keptChanges{a})
	a.models = models.New(models.Options{Config: a.configOf, Env: os.Getenv, Keys: a.place.keys().All})
	a.pages.version = a.place.version
	a.mcp, a.custom = newMCPServers(a), newCustomHosts(a)
	a.runtime = agent.New(agent.Options{
		Store: a.store, Models: a.models, Grants: a.grants, Asker: o.asker, Questions: o.questions, StateDir: a.place.state, Log: o.log,
		Configuration: configuration{a}, Toolbox: toolbox{a}, Project: projectContext{a}, Plugins: plugins{a}, Changes: changeKeeper{a}, Secrets: hider{a.place},
		Tracing: a.tracing(),
	})
	return a
}

// configOf is asked many times in each step of a turn.
func (a *app) configOf(cwd string) *config.Config { return a.place.lately(cwd) }

// rules are the effective ones of an agent, in the order the gate judges them.
func (a *app) rules(cwd, name string) permission.Ruleset {
	rules := a.place.rules(cwd)
	for _, x := range a.runtime.Agents(cwd) {
		if x.Name == name {
			rules = append(rules, x.Rules...)
		}
	}
	return rules
}

// env is what the tools of a session share; it lasts as long as the session's read state must.
func (a *app) env(s agent.SessionInfo) builtin.Env {
	a.mu.Lock()
	env, ok := a.envs[s.ID]
	a.mu.Unlock()
	if ok {
		return env
	}
	c := a.configOf(s.Cwd)
	root := paths.Worktree(s.Cwd)
	env = builtin.Env{
		Cwd: s.Cwd, Root: root, Extra: s.Extra, StateDir: a.place.state, Own: []string{a.place.user}, Home: a.place.home,
		Tracker: &files.Tracker{}, Locks: a.locks, Journal: a.journal, Search: a.searcher(c.Ripgrep), Format: formatter(root, c),
		Skills: a.skills(s.Cwd, root, c), SubAgents: a.subAgents(s.Cwd),
		Shell: a.shell(c, s), Web: a.webOptions(c),
	}
	if a.o.editors != nil {
		env.Buffers = a.o.editors.Files(s.ID)
		env.Applier = a.o.editors.Applier(s.ID, disk{builtin.NewWriter(env)})
	}
	env.Commands = a.watch(root, env.Search, env.Buffers)
	link := a.bridge(root, c)
	if link != nil {
		env.Bridge = link.Manager
		if a.o.theirs != nil {
			env.Bridge = editors.NewBridge(link.Manager, root, env.Buffers, a.o.theirs)
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

// ended ends what a session's commands left running, and lets go of what was kept for it.
func (a *app) ended(session string) {
	a.mu.Lock()
	env, ok := a.envs[session]
	delete(a.envs, session)
	links := slices.Collect(maps.Values(a.bridges))
	a.mu.Unlock()
	for _, link := range links {
		link.release(session)
	}
	a.mcp.ended(session)
	a.models.Forget(session)
	if ok {
		env.Shell.Close()
	}
}

// keptChanges are the app's change sets: written through the session's own locks and editor, texts beside the sessions.
type keptChanges struct{ a *app }

// Files implements ChangeStore.
func (k keptChanges) Files(session string) review.Files {
	s, ok := k.a.runtime.Session(session)
	if !ok {
		return nil
	}
	return builtin.NewWriter(k.a.env(s.Info()))
}

// Load implements ChangeStore.
func (k keptChanges) Load(set *change.Set) (*change.Set, error) { return k.a.blobs.Load(set) }

// searcher is shared by sessions: it looks for rg once.
func (a *app) searcher(ripgrep string) *search.Searcher {
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
func (a *app) shell(c *config.Config, s agent.SessionInfo) builtin.BashOptions {
	o := builtin.BashOptions{Shell: c.Shell, Runner: &run.Runner{}, Background: &run.Background{}, Sandbox: builtin.SandboxSettings{
		Mode: c.Sandbox, Network: c.SandboxNetwork, AutoAllow: c.SandboxAutoAllow, Writable: c.SandboxWritable,
	}}
	o.More = func(ctx context.Context, dir string, call *tools.Call) map[string]string {
		if h := a.custom.of(s.Cwd); h != nil && h.Has(ctx, "shell.env") {
			return h.ShellEnv(ctx, dir, call.SessionID, call.CallID)
		}
		return nil
	}
	if a.o.editors == nil {
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

// terminals are a session's.
func (a *app) terminals(session string) *run.Terminals {
	s, ok := a.runtime.Session(session)
	if !ok {
		return nil
	}
	return a.env(s.Info()).Shell.Terminals
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

// disk writes a set in the encodings its files have.
type disk struct{ writer *builtin.Writer }

func (d disk) Apply(ctx context.Context, set *change.Set) error { return d.writer.WriteDisk(ctx, set) }

// recoverOnce ends what a crash left half-done, before the first tool of this process can look at a file.
func (a *app) recoverOnce(ctx context.Context) {
	a.recover.Do(func() {
		done, err := files.Recover(ctx, a.journal)
		if err != nil {
			a.o.log.Error("recovery", "err", err)
			if a.o.notices != nil {
				fmt.Fprintln(a.o.notices, "pillion: a change that was interrupted earlier could not be ended:", err)
			}
		}
		for _, r := range done {
			a.o.log.Warn("recovered an interrupted change", "what", r)
			if a.o.notices != nil {
				fmt.Fprintln(a.o.notices, "pillion: a change that was interrupted earlier:", r)
			}
		}
	})
}

// bridge is the language servers' manager of a worktree, nil where they are switched off.
func (a *app) bridge(root string, c *config.Config) *servers {
	if a.o.noLSP || c.LSP.Set && !c.LSP.On {
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
	o := lspbridge.Options{Root: root, Servers: lspConfig(c), Log: a.o.log, Trusted: c.Trusted(), Bin: lspbridge.CacheBins(a.place.servers()), Start: guard.Start}
	if a.o.editors != nil {
		o.Buffer = func(path string) (string, bool) {
			b, ok := a.o.editors.AnyBuffer(path)
			return b.Text, ok
		}
		o.Unsaved = a.o.editors.Unsaved
	}
	o.Diagnostics = a.o.problems
	link := &servers{uses: map[string]func(){}}
	o.Notice = func(_, text string) { a.tell(link, text) }
	o.ApplyEdit = func(ctx context.Context, server, label string, edits []lspbridge.FileEdit) error {
		return a.applyEdit(ctx, link, server, label, edits)
	}
	link.Manager = lspbridge.New(o)
	a.bridges[key] = link
	return link
}

// touched says to the language servers that a buffer has changed, so that what is told of its problems follows.
func (a *app) touched(path string) {
	a.mu.Lock()
	links := slices.Collect(maps.Values(a.bridges))
	a.mu.Unlock()
	for _, l := range links {
		l.Touched(path)
	}
}

func lspConfig(c *config.Config) map[string]lspbridge.ServerConfig {
	out := map[string]lspbridge.ServerConfig{}
	for id, s := range c.LSP.By {
		out[id] = lspbridge.ServerConfig{Command: s.Command, Extensions: s.Extensions, Env: s.Env, Initialization: json.RawMessage(s.Initialization), Settings: json.RawMessage(s.Settings),
			Roots: s.Roots, Share: s.Share, Disabled: s.Disabled}
	}
	return out
}

// problems is what is still wrong in a project, for the end of a turn. ok is false when no server has been asked.
func (a *app) problems(ctx context.Context, cwd string) (left []change.Problem, ok bool) {
	m := a.bridge(paths.Worktree(cwd), a.configOf(cwd))
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

// close ends everything that was started: turns, then servers, then the store.
func (a *app) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := a.runtime.Close(ctx); err != nil {
		a.o.log.Error("closing sessions", "err", err)
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
	wait.Go(func() { a.mcp.close(ctx) })
	wait.Go(a.custom.close)
	wait.Wait()
	a.traces.close()
	a.pruning.Wait()
	for _, st := range []*store.Store{a.store, a.kept} {
		if st == nil {
			continue
		}
		if err := st.Close(); err != nil {
			a.o.log.Error("closing the store", "err", err)
		}
	}
}
