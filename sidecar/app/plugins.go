package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/custom"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Plugins run the person's own tools and plugins, in one host for each directory.
type Plugins struct {
	app *App

	mu    sync.Mutex
	hosts map[string]*customHost // guarded by mu; by directory
	none  map[string]time.Time   // guarded by mu; by directory: when it was last found to have no tools and plugins

	settings map[string]*hookedExtensions // guarded by mu; by directory

	early map[string][]earlyNotice // guarded by mu; by directory: what was said while no session was open

	Changed func(cwd string) // called after plugins have changed the settings of a directory; nil: nobody listens
}

// earlyNotice is a text for the person that waits for a session. Plugins are loaded before the first session of their directory is open.
type earlyNotice struct{ level, text string }

// notice shows a text of a directory's plugins to the person, at the next step of a turn if no session is open.
func (c *Plugins) notice(cwd, level, text string) {
	if c.app.noticeIn(cwd, level, text) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.early == nil {
		c.early = map[string][]earlyNotice{}
	}
	c.early[cwd] = append(c.early[cwd], earlyNotice{level, text})
}

// sayEarly shows what waits for a session of a directory.
func (c *Plugins) sayEarly(cwd string) {
	c.mu.Lock()
	early := c.early[cwd]
	delete(c.early, cwd)
	c.mu.Unlock()
	for _, n := range early {
		c.app.noticeIn(cwd, n.level, n.text)
	}
}

// absentFor is how long a directory without tools and plugins is not searched again: every step of a turn asks, and a search needs a stat
// for each possible folder.
const absentFor = 2 * time.Second

// customHost is a host and what it was made from.
type customHost struct {
	*custom.Host
	config *config.Config    // guarded by Plugins.mu; compared by identity, the fastest test for a change
	key    string            // the settings on which the host depends, see Plugins.key
	ext    *agent.Extensions // made once, because hooked compares it by identity

	mu        sync.Mutex
	announced map[string]bool       // guarded by mu; replaced built-in tools of which the person was told
	defined   map[string]tools.Tool // guarded by mu; definitions changed by plugins, by id and original text
}

// newPlugins returns Plugins without hosts.
func newPlugins(a *App) *Plugins {
	return &Plugins{app: a, hosts: map[string]*customHost{}, none: map[string]time.Time{}, settings: map[string]*hookedExtensions{}}
}

// of returns a directory's host; nil when there are no custom tools and no plugins. A changed setting on which the host does not depend
// keeps it running, because a restart loses the plugins' state. It starts no process: the host does so at its first use.
func (c *Plugins) of(cwd string) *customHost {
	conf := c.app.ConfigOf(cwd)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[cwd]
	if h != nil && h.config == conf {
		return h
	}
	if h != nil && h.key == c.key(cwd, conf) { // another setting has changed
		h.config = conf
		return h
	}
	if h == nil && time.Since(c.none[cwd]) < absentFor {
		return nil
	}
	folders := c.dirs(cwd, conf)
	// Plugins in the settings may be packages, which are in none of the folders.
	if h == nil && len(conf.Plugin) == 0 && !holdsAny(folders, "tool", "tools", "plugin", "plugins") {
		c.none[cwd] = time.Now()
		return nil
	}
	// In the background, because the old host waits for its plugins.
	if h != nil {
		go h.Close()
	}
	h = &customHost{config: conf, key: c.key(cwd, conf), announced: map[string]bool{}, defined: map[string]tools.Tool{}}
	o := c.options(cwd, conf)
	if shown, err := c.shownConfig(cwd); err == nil {
		o.Config, o.Configured = shown, func(all []custom.Configured) { c.configured(cwd, o.ReasonOf, shown, all) }
	}
	h.Host = custom.New(o)
	h.ext = h.extensions(c.app, cwd)
	c.hosts[cwd] = h
	return h
}

// shownConfig is a directory's configuration as its plugins see it: without what they changed before.
func (c *Plugins) shownConfig(cwd string) (map[string]any, error) {
	conf, _ := config.Load(c.app.Place.sources(cwd))
	return conf.ForPlugins()
}

// configured puts what the config hooks of a directory's plugins changed into force, and tells the person what it is.
func (c *Plugins) configured(cwd string, reasonOf func(string) guard.Reason, shown map[string]any, all []custom.Configured) {
	var layers []config.PluginLayer
	for _, x := range all {
		text, said, err := config.PluginChange(x.File, shown, x.Config)
		if err != nil {
			said = err.Error()
		}
		if said != "" {
			c.notice(cwd, "info", x.File+" "+said)
		}
		if len(text) > 0 {
			layers = append(layers, config.PluginLayer{File: x.File, Folder: reasonOf(x.File).Folder, Text: text})
		}
	}
	c.app.Place.setPlugins(cwd, layers)
	// Not here: the host's files are locked, and what follows may ask it for tools.
	go func() {
		if set := c.app.MCP.of(cwd); set != nil {
			set.Start()
		}
		if c.Changed != nil {
			c.Changed(cwd)
		}
	}()
}

// configureLimit is how long the opening of a session waits for plugins. A package that is installed takes longer; what it changes counts
// from then on.
const configureLimit = 5 * time.Second

// Configure implements agent.Plugins: it waits until what a directory's plugins change of its settings is in force, so that their agents can
// be chosen.
func (c *Plugins) Configure(ctx context.Context, cwd string) {
	conf := c.app.ConfigOf(cwd)
	if len(conf.Plugin) == 0 && !holdsAny(c.dirs(cwd, conf), "plugin", "plugins") {
		return
	}
	h := c.of(cwd)
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, configureLimit)
	defer cancel()
	done := make(chan struct{})
	// Loading continues after the limit and ends with the host, so the caller's context must not cancel it.
	go func() {
		h.Has(context.WithoutCancel(ctx), "config")
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// options returns the options of a directory's host. A draft has a host of its own, which differs only in how its programs are started.
func (c *Plugins) options(cwd string, conf *config.Config) custom.Options {
	var listed []custom.Plugin
	// Relative paths of plugins start at the worktree's root, in whichever subfolder the session works.
	for _, p := range conf.Plugin {
		listed = append(listed, custom.Plugin{Spec: p.Name, Dir: paths.Worktree(cwd), Options: p.Options})
	}
	folders := c.dirs(cwd, conf)
	return custom.Options{
		Dirs: folders, Directory: cwd, Worktree: paths.Worktree(cwd), CacheDir: filepath.Join(c.app.Place.State, "cache"), Runtime: conf.JSRuntime, Reason: conf.Reason("js_runtime"), ReasonOf: c.reasonOf(cwd, conf, folders), Config: conf, Start: guard.Start, Log: c.app.O.Log,
		Plugins: listed, Accounts: pluginAccounts{c.app}, Client: pluginClient{c.app, cwd}.call, Notice: func(level, text string) { c.notice(cwd, level, text) },
	}
}

// reasonOf returns a function that tells where a file of code comes from: the person's folders, the project, or a package that a setting
// names.
func (c *Plugins) reasonOf(cwd string, conf *config.Config, folders []string) func(string) guard.Reason {
	root := paths.Worktree(cwd)
	return func(path string) guard.Reason {
		switch {
		// First, because a home folder may itself be a worktree.
		case slices.ContainsFunc(c.personal(), func(dir string) bool { return paths.Within(dir, path) }):
			return guard.Reason{}
		case paths.Within(root, path) || slices.ContainsFunc(folders, func(dir string) bool { return paths.Within(dir, path) }):
			return conf.FileReason(path, root)
		}
		return conf.Reason("plugin")
	}
}

// key returns the settings on which a host depends, as JSON. A further setting that a host uses must be added here, or changing it has no
// effect until the next start.
func (c *Plugins) key(cwd string, conf *config.Config) string {
	raw, _ := json.Marshal([]any{c.dirs(cwd, conf), conf.Plugin, conf.JSRuntime})
	return string(raw)
}

// refresh replaces a directory's host if its settings have changed, and notices added folders at once.
func (c *Plugins) refresh(cwd string) {
	c.mu.Lock()
	delete(c.none, cwd)
	c.mu.Unlock()
	c.of(cwd)
}

// dirs returns the folders that may hold tools and plugins; the one nearest to the session is last and wins. A project's own folders count
// only if it is trusted, because their files are programs.
func (c *Plugins) dirs(cwd string, conf *config.Config) []string {
	dirs := c.personal()
	if !conf.Trusted() {
		return dirs
	}
	for _, dir := range config.Between(paths.Worktree(cwd), cwd) {
		dirs = append(dirs, filepath.Join(dir, ".opencode"), filepath.Join(dir, ".pillion"))
	}
	return dirs
}

// personal returns the person's own folders of tools and plugins.
func (c *Plugins) personal() []string {
	dirs := []string{c.app.Place.User}
	if c.app.Place.Home != "" {
		dirs = append(dirs, c.app.Place.openCodeDir())
	}
	return dirs
}

// holdsAny reports whether one of the folders has a subfolder of one of the names; OpenCode's are accepted in singular and plural.
// It avoids starting Node where there is nothing to load.
func holdsAny(dirs []string, names ...string) bool {
	for _, dir := range dirs {
		for _, name := range names {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
				return true
			}
		}
	}
	return false
}

// extensions returns what a host adds to its directory's sessions. Hooks that no plugin has are skipped, because each costs a round trip to
// Node.
func (h *customHost) extensions(a *App, cwd string) *agent.Extensions {
	return &agent.Extensions{
		Over: func(ctx context.Context) []tools.Tool {
			// Tell the person: else they would take the results for those of the built-in tool.
			over := h.Tools(ctx)
			a.Plugins.sayEarly(cwd)
			var names []string
			for _, t := range over {
				if builtin.Named(t.ID) && h.firstUse(t.ID) {
					names = append(names, t.ID)
				}
			}
			if len(names) > 0 {
				a.noticeIn(cwd, "info", replaced(names))
			}
			return a.Drafts.beside(over, a.Plugins)
		},
		Hooks:      []tools.Hook{h.Hook()},
		Define:     h.define,
		Permission: h.Permission,
		Message:    h.chatMessage,
		Command:    h.command,
		Text: func(ctx context.Context, s agent.SessionInfo, message string, part int, text string) string {
			return h.TextComplete(ctx, s.ID, message, fmt.Sprintf("prt_%s_%d", message, part), text)
		},
		Messages: h.transform,
		Compacting: func(ctx context.Context, s agent.SessionInfo, _ bool, _ string) ([]string, string) {
			return h.Compacting(ctx, s.ID)
		},
		Continue: func(ctx context.Context, s agent.SessionInfo, m provider.Model, overflow bool) bool {
			return h.Continue(ctx, s.ID, s.Agent, m.Provider, m.ID, overflow)
		},
		Params: func(ctx context.Context, s agent.SessionInfo, r *provider.Request) {
			r.Headers = h.Headers(ctx, s.ID, s.Agent, r.Model.Provider, r.Model.ID)
			if h.Has(ctx, "experimental.chat.system.transform") {
				r.System = h.System(ctx, s.ID, r.Model.Provider, r.Model.ID, r.System)
			}
			if !h.Has(ctx, "chat.params") {
				return
			}
			p := h.ChatParams(ctx, s.ID, s.Agent, r.Model.Provider, r.Model.ID, custom.Params{Temperature: r.Temperature, TopP: r.TopP, MaxOutputTokens: r.MaxOutput, Options: pluginOptions(r)})
			r.Temperature, r.TopP, r.MaxOutput = p.Temperature, p.TopP, p.MaxOutputTokens
			r.Options = changedOptions(r, p.Options)
		},
		Event: h.Event,
	}
}

// replaced says in one line which built-in tools custom tools take the place of.
func replaced(names []string) string {
	if len(names) == 1 {
		return "The custom tool " + names[0] + " replaces the built-in tool of that name."
	}
	return "The custom tools " + strings.Join(names, ", ") + " replace the built-in tools of these names."
}

// pluginOptions returns the options of a request as plugins see them: those of the model and of the agent, merged.
func pluginOptions(r *provider.Request) map[string]any {
	out := map[string]any{}
	for k, v := range r.Model.Options.With(r.Options) {
		var x any
		if json.Unmarshal(v, &x) == nil {
			out[k] = x
		}
	}
	return out
}

// changedOptions returns a request's options after plugins have changed them. null replaces an option of the model that a plugin has
// removed.
func changedOptions(r *provider.Request, after map[string]any) provider.Options {
	out := provider.Options{}
	for k, v := range after {
		if raw, err := json.Marshal(v); err == nil {
			out[k] = raw
		}
	}
	for k := range r.Model.Options {
		if _, ok := after[k]; !ok {
			out[k] = json.RawMessage("null")
		}
	}
	return out
}

// firstUse reports whether the person has not yet been told that this tool replaces a built-in one, and records that they are told.
func (h *customHost) firstUse(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.announced[id]
	h.announced[id] = true
	return first
}

// define returns the tool as plugins describe it (hook tool.definition). The result is cached, because every step needs it; the key
// includes the original's text, so a changed original is shown to the plugins again. Plugins are called without mu, so two concurrent calls
// may both ask.
func (h *customHost) define(ctx context.Context, t tools.Tool) tools.Tool {
	if !h.Has(ctx, "tool.definition") {
		return t
	}
	key := t.ID + "\x00" + t.Description + "\x00" + string(t.Parameters)
	h.mu.Lock()
	d, ok := h.defined[key]
	h.mu.Unlock()
	if !ok {
		d = h.Define(ctx, t)
		h.mu.Lock()
		h.defined[key] = d
		h.mu.Unlock()
	}
	t.Description, t.Parameters = d.Description, d.Parameters
	return t
}

// Extensions implements agent.Plugins: it returns what plugins and the hooks of the settings add in a directory; nil where there are
// neither. Two calls return the same pointer as long as nothing has changed.
func (c *Plugins) Extensions(cwd string) *agent.Extensions {
	var ext *agent.Extensions
	if h := c.of(cwd); h != nil {
		ext = h.ext
	}
	conf := c.app.ConfigOf(cwd)
	if len(conf.Hooks) == 0 || conf.DisableAllHooks {
		return ext
	}
	return c.hooked(cwd, conf, ext)
}

// close ends all hosts concurrently.
func (c *Plugins) close() {
	c.mu.Lock()
	hosts := c.hosts
	c.hosts = map[string]*customHost{}
	c.mu.Unlock()
	var wait sync.WaitGroup
	for _, h := range hosts {
		wait.Go(h.Close)
	}
	wait.Wait()
}
