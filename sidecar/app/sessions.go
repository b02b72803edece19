package app

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/web"
)

// Sessions holds what the tools of each session share (builtin.Env). It is made for the session's first tool and kept until the session
// ends, because it records which files the session has read and which commands it runs.
type Sessions struct {
	app   *App
	locks *files.Locks // of files, across sessions

	mu   sync.Mutex
	envs map[string]builtin.Env // guarded by mu; by session
}

// Env returns a session's environment, and makes it if there is none. It is made without mu, because that calls configuration, plugins and
// editors; of two made concurrently, the second is dropped.
func (e *Sessions) Env(s agent.SessionInfo) builtin.Env {
	e.mu.Lock()
	env, ok := e.envs[s.ID]
	e.mu.Unlock()
	if ok {
		return env
	}
	c := e.app.ConfigOf(s.Cwd)
	root := paths.Worktree(s.Cwd)
	env = builtin.Env{
		Cwd: s.Cwd, Root: root, Extra: s.Extra, StateDir: e.app.Place.State, Own: []string{e.app.Place.User}, Home: e.app.Place.Home,
		Tracker: &files.Tracker{}, Locks: e.locks, Journal: e.app.Changes.journal, Search: e.app.project.searcher(c), Format: formatter(root, c),
		Skills: e.app.project.skills(s.Cwd, root, c), SubAgents: func() []tools.SubAgent { return e.app.Runtime.SubAgents(s.Cwd) }, Verdict: e.app.O.Verdict,
		Shell: e.shell(c, s), Web: e.web(c),
	}
	if c.RepairRounds == nil || *c.RepairRounds > 0 {
		env.Repairs = &builtin.Repairs{}
	}
	if e.app.O.Editors != nil {
		env.Buffers = e.app.O.Editors.Files(s.ID)
		env.Applier = e.app.O.Editors.Applier(s.ID, Disk{Writer: builtin.NewWriter(env)})
	}
	// Set after Search and Buffers, which the watch uses.
	env.Commands = e.app.Changes.watch(root, env.Search, env.Buffers)
	link := e.app.Servers.of(root, c)
	// Without servers, leave Bridge nil: an interface that holds a nil *Manager would not be nil.
	if link != nil {
		env.Bridge = link.Manager
		if e.app.O.EditorProblems != nil {
			env.Bridge = editors.NewBridge(link.Manager, root, env.Buffers, e.app.O.EditorProblems, e.app.O.Editors.TextChecker(s.ID))
		}
	}
	e.mu.Lock()
	if had, ok := e.envs[s.ID]; ok { // two first tools ran concurrently and must share one environment
		e.mu.Unlock()
		return had
	}
	e.envs[s.ID] = env
	e.mu.Unlock()
	if link != nil {
		for _, d := range link.use(s.ID) {
			e.app.Servers.notify(link, d)
		}
	}
	return env
}

// Ended stops the commands that a session has left running, and drops what was kept for it.
func (e *Sessions) Ended(session string) {
	e.mu.Lock()
	env, ok := e.envs[session]
	delete(e.envs, session)
	e.mu.Unlock()
	e.app.Servers.release(session)
	e.app.MCP.sessionEnded(session)
	e.app.Models.Forget(session)
	if ok {
		env.Shell.Close()
	}
}

// auto reports whether the effects of a command decide at present whether it needs approval (PermissionAuto); the mode can change while a
// turn runs.
func (e *Sessions) auto(s agent.SessionInfo) bool {
	if open, ok := e.app.Runtime.Session(s.ID); ok {
		s = open.Info() // its present head
	}
	return e.app.Runtime.Permission(s) == agent.PermissionAuto
}

// shell returns how the commands of a session run.
func (e *Sessions) shell(c *config.Config, s agent.SessionInfo) builtin.BashOptions {
	o := builtin.BashOptions{Shell: c.Shell, Reason: c.Reason("shell"), Runner: &run.Runner{}, Background: &run.Background{}, Sandbox: builtin.SandboxSettings{
		Mode: c.Sandbox, Network: c.SandboxNetwork, AutoAllow: c.SandboxAutoAllow, Auto: func() bool { return e.auto(s) }, Writable: c.SandboxWritable,
	}}
	own := map[string]string{}
	for name, record := range c.Programs {
		own[name] = string(record)
	}
	known, err := programs.NewSet(own)
	if err != nil { // the valid records are still used
		e.app.O.Log.Warn("records of programs", "err", err)
	}
	o.Programs = known
	// Computed for each command, because plugins may have been added or removed since the session began.
	o.More = func(ctx context.Context, dir string, call *tools.Call) map[string]string {
		out := map[string]string{}
		for _, v := range e.app.ConfigOf(s.Cwd).Environ(guard.Bash, "bash") {
			name, value, _ := strings.Cut(v, "=")
			out[name] = value
		}
		if h := e.app.Plugins.of(s.Cwd); h != nil && h.Has(ctx, "shell.env") {
			maps.Copy(out, h.ShellEnv(ctx, dir, call.SessionID, call.CallID))
		}
		return out
	}
	if e.app.O.Editors == nil {
		return o // no editor could show them
	}
	// A sub-agent shares the terminals of its parent, because only the parent's session is open in the editor.
	e.mu.Lock()
	defer e.mu.Unlock()
	if parent, ok := e.envs[s.Parent]; ok && s.Parent != "" && parent.Shell.Terminals != nil {
		o.Terminals, o.Lent = parent.Shell.Terminals, true
	} else {
		o.Terminals = &run.Terminals{}
	}
	return o
}

// Terminals returns the terminals in which a session's commands run; nil for a session that is not open.
func (e *Sessions) Terminals(session string) *run.Terminals {
	s, ok := e.app.Runtime.Session(session)
	if !ok {
		return nil
	}
	return e.Env(s.Info()).Shell.Terminals
}

// formatter returns nil unless the configuration asks for formatting, because the written text should be the one that the person accepted.
// With Project set, a trusted project's own formatters are found without configuration.
func formatter(root string, c *config.Config) builtin.Formatter {
	if o, ok := formatOptions(root, c); ok {
		return builtin.NewFormatter(o)
	}
	return nil
}

// formatOptions returns the configured options; ok is false when no formatter is configured.
func formatOptions(root string, c *config.Config) (o builtin.FormatOptions, ok bool) {
	if !c.Formatter.On {
		return o, false
	}
	o = builtin.FormatOptions{Root: root, Detect: true, Project: c.Trusted()}
	for _, name := range slices.Sorted(maps.Keys(c.Formatter.By)) {
		d := c.Formatter.By[name]
		o.Rules = append(o.Rules, builtin.FormatRule{Name: name, Command: d.Command, Extensions: d.Extensions, Env: d.Environment, Disabled: d.Disabled, Reason: c.Reason("formatter." + name)})
	}
	return o, true
}

// Disk is the fallback of editors.Registry.Applier: it writes files that are not open in an editor, in their own encodings.
type Disk struct{ Writer *builtin.Writer }

// Apply writes the set to the disk.
func (d Disk) Apply(ctx context.Context, set *change.Set) error { return d.Writer.WriteDisk(ctx, set) }

// web returns what the web tools may reach. OPENCODE_ENABLE_EXA, OpenCode's variable, turns on search where none is configured.
func (e *Sessions) web(c *config.Config) builtin.WebOptions {
	engine := web.Engine{Provider: c.WebSearch.Provider, URL: c.WebSearch.URL, Key: c.WebSearch.Key}
	engine.Reason = c.Reason("websearch")
	if on := os.Getenv("OPENCODE_ENABLE_EXA"); engine.Provider == "" && (on == "1" || on == "true") {
		engine.Provider = "exa"
	}
	// EXA_API_KEY is Exa's own variable.
	if engine.Provider == "exa" && engine.Key == "" {
		engine.Key = os.Getenv("EXA_API_KEY")
	}
	return builtin.WebOptions{Client: web.New(web.Options{Version: e.app.Place.version, Allow: c.Web.Allow}), Engine: engine}
}

// close ends the commands of sessions that did not end in time.
func (e *Sessions) close(wait *sync.WaitGroup) {
	e.mu.Lock()
	envs := e.envs
	e.envs = map[string]builtin.Env{}
	e.mu.Unlock()
	for _, env := range envs {
		wait.Go(env.Shell.Close)
	}
}
