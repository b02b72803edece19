package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
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

// Plugins run the person's own tools and plugins, one host for each directory.
type Plugins struct {
	app *App

	mu    sync.Mutex
	hosts map[string]*customHost // guarded by mu; by directory
	none  map[string]time.Time   // guarded by mu; by directory, when it was last seen to have nothing
}

// lookAfter is how soon folders for tools are looked for again where there were none.
const lookAfter = 2 * time.Second

// customHost is a host with what it was made from.
type customHost struct {
	*custom.Host
	config *config.Config // guarded by Plugins.mu
	key    string         // what of it the host was made from
	ext    *agent.Extensions

	mu      sync.Mutex
	shown   map[string]bool       // guarded by mu: tools that were told to stand before ours
	defined map[string]tools.Tool // guarded by mu: definitions as plugins worded them, by id and what they were made from
}

func newPlugins(a *App) *Plugins {
	return &Plugins{app: a, hosts: map[string]*customHost{}, none: map[string]time.Time{}}
}

// of is a directory's host; nil where it has no custom tools and no plugins.
func (c *Plugins) of(cwd string) *customHost {
	conf := c.app.ConfigOf(cwd)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[cwd]
	if h != nil && h.config == conf {
		return h
	}
	if h != nil && h.key == c.key(cwd, conf) { // another setting changed: what runs goes on
		h.config = conf
		return h
	}
	if h == nil && time.Since(c.none[cwd]) < lookAfter {
		return nil
	}
	folders := c.dirs(cwd, conf)
	if h == nil && len(conf.Plugin) == 0 && !holdsAny(folders) {
		c.none[cwd] = time.Now()
		return nil
	}
	if h != nil {
		go h.Close()
	}
	var listed []custom.Plugin
	for _, p := range conf.Plugin {
		listed = append(listed, custom.Plugin{Spec: p.Name, Dir: paths.Worktree(cwd), Options: p.Options})
	}
	h = &customHost{config: conf, key: c.key(cwd, conf), shown: map[string]bool{}, defined: map[string]tools.Tool{}}
	h.Host = custom.New(custom.Options{
		Dirs: folders, Directory: cwd, Worktree: paths.Worktree(cwd), CacheDir: filepath.Join(c.app.Place.State, "cache"), Runtime: conf.JSRuntime, Config: conf, Start: guard.Start, Log: c.app.O.Log,
		Plugins: listed, Client: pluginClient{c.app, cwd}.call, Notice: func(level, text string) { c.app.noticeIn(cwd, level, text) },
	})
	h.ext = h.extensions(c.app, cwd)
	c.hosts[cwd] = h
	return h
}

// key is what of a configuration a host is made from.
func (c *Plugins) key(cwd string, conf *config.Config) string {
	raw, _ := json.Marshal([]any{c.dirs(cwd, conf), conf.Plugin, conf.JSRuntime})
	return string(raw)
}

// lookAgain makes a directory's host anew where its settings ask for it.
func (c *Plugins) lookAgain(cwd string) {
	c.mu.Lock()
	delete(c.none, cwd)
	c.mu.Unlock()
	c.of(cwd)
}

// dirs are the folders that may hold tools and plugins, the nearest to the session last. A project's own count
// when its folder is trusted.
func (c *Plugins) dirs(cwd string, conf *config.Config) []string {
	dirs := []string{c.app.Place.User}
	if c.app.Place.Home != "" {
		dirs = append(dirs, filepath.Join(c.app.Place.Home, ".config", "opencode"))
	}
	if !conf.Trusted() {
		return dirs
	}
	for _, dir := range config.Between(paths.Worktree(cwd), cwd) {
		dirs = append(dirs, filepath.Join(dir, ".opencode"), filepath.Join(dir, ".pillion"))
	}
	return dirs
}

// holdsAny looks for folders only, so that nothing is made where there is nothing.
func holdsAny(dirs []string) bool {
	for _, dir := range dirs {
		for _, name := range []string{"tool", "tools", "plugin", "plugins"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
				return true
			}
		}
	}
	return false
}

// extensions are what a host adds to its directory's sessions.
func (h *customHost) extensions(a *App, cwd string) *agent.Extensions {
	return &agent.Extensions{
		Over: func(ctx context.Context) []tools.Tool {
			over := h.Tools(ctx)
			for _, t := range over {
				if builtin.Named(t.ID) && h.first(t.ID) {
					a.noticeIn(cwd, "info", "The custom tool "+t.ID+" takes the place of Pillion's own.")
				}
			}
			return over
		},
		Hooks:      []tools.Hook{h.Hook()},
		Define:     h.define,
		Permission: h.Permission,
		Message:    h.chatMessage,
		Params: func(ctx context.Context, s agent.SessionInfo, r *provider.Request) {
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

// pluginOptions are the options of a request as plugins see them: the model's and the agent's in one.
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

// changedOptions are a request's options after plugins have seen them: null takes one of the model's away.
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

func (h *customHost) first(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.shown[id]
	h.shown[id] = true
	return first
}

// define keeps what plugins made of a definition: it is asked for at every step.
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

// Extensions implements agent.Plugins: they are what the person's own code adds in a directory.
func (c *Plugins) Extensions(cwd string) *agent.Extensions {
	if h := c.of(cwd); h != nil {
		return h.ext
	}
	return nil
}

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
